// Package dumpfile, internal to the server, writes and reads files in Redis's dump format, with all keys of a keyspace and its
// functions.
package dumpfile

import (
	"errors"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/rdb"
	"github.com/limitkv/limitkv/replication"
	"github.com/limitkv/limitkv/server/command"
)

// What says what a file contains. The zero value means everything.
type What struct {
	NoKeys, NoFunctions bool
	Base                bool // it is the base of an append-only file
	// Without, if not nil, tells which keys are left out.
	Without func(e engine.Entry) bool
	// For says who reads the file.
	For rdb.Audience
	// Facts are more fields of the file's header.
	Facts [][2]string
}

// The names of the facts about the replication stream after a file: its ID, the offset where the file was made, and the
// database that is selected there.
const (
	factID       = "repl-id"
	factOffset   = "repl-offset"
	factSelected = "repl-stream-db"
)

// Facts returns the facts about a place in the replication stream.
func Facts(at replication.Place) [][2]string {
	return [][2]string{
		{factSelected, strconv.Itoa(at.Selected)}, {factID, at.ID}, {factOffset, strconv.FormatInt(at.Offset, 10)},
	}
}

// factTime is the name of a fact: when the file was made, in Unix microseconds.
const factTime = "limitkv-time"

// factFence is the name of a fact: the last fence that was given.
const factFence = "limitkv-fence"

// factPast is the name of a fact: a time in Unix microseconds that numbers made from the time have reached, but not the clock,
// because it was set back.
const factPast = "limitkv-past"

// BeyondMicros is how far after the latest time in the files the clock for numbers (Clock.ForNumbers) starts. Such numbers have
// a resolution of a millisecond, so none is given twice.
const BeyondMicros = 1000

// Begin begins a file at a time, with its header, more facts, and libraries.
func Begin(s *command.Server, to io.Writer, nowMicros int64, base bool, libraries []string, format rdb.Format, facts ...[2]string) *rdb.Writer {
	more := append(facts, [2]string{factTime, strconv.FormatInt(nowMicros, 10)})
	if fence := s.Keyspace.Fences.Last(); fence != 0 {
		more = append(more, [2]string{factFence, strconv.FormatInt(fence, 10)})
	}
	if past := s.Keyspace.Clock.ForNumbers(nowMicros); past > nowMicros {
		more = append(more, [2]string{factPast, strconv.FormatInt(past, 10)})
	}
	w := rdb.NewWriter(to, format, s.Config.Value("rdbchecksum") == "yes")
	w.Origin(rdb.Origin{Version: command.RedisVersion, NowMicros: nowMicros, UsedMemory: uint64(max(s.Keyspace.KeysBytes(), 0)), Base: base,
		More: more})
	for _, code := range libraries {
		w.Library(code)
	}
	return w
}

// Write writes a file of the present keys. The caller holds all locks.
func Write(c *command.Ctx, to io.Writer, what What) (err error) {
	var libraries []string
	if !what.NoFunctions {
		libraries = c.Server.Functions.Libraries(c.KS)
	}
	format := c.Server.Config.Dumps().FileFormat()
	format.For = what.For
	w := Begin(c.Server, to, c.Now, what.Base, libraries, format, what.Facts...)
	defer func(db int) { c.DB = db }(c.DB)
	tally := c.Tables()
	for c.DB = 0; c.DB < c.KS.Databases() && !what.NoKeys && err == nil; c.DB++ {
		if st := &tally.DBs[c.DB]; st.Keys > 0 && what.Without == nil {
			w.Database(c.DB, st.Keys, st.Expires)
		}
		c.EachStored(func(e engine.Entry) {
			if err == nil && (what.Without == nil || !what.Without(e)) {
				err = w.Entry(&c.View, e)
			}
		})
	}
	if err != nil {
		return err
	}
	return w.End()
}

// reader reads a file and collects the code of its libraries.
type reader struct {
	*rdb.Loader
	s        *command.Server
	codes    [][]byte
	id       string
	selected int
	told     Told
}

// Told holds functions that are called while a file is read. All may be nil.
type Told struct {
	// Entering is called before some keys are entered, with their number.
	Entering func(keys int)
	// Place is called with the file's place in the replication stream.
	Place func(at replication.Place)
	// Expired is called for keys that are not entered because they have expired.
	Expired func(db int, key []byte)
}

// open makes a reader. It leaves out keys that have expired at nowMillis, unless that is 0.
func open(s *command.Server, ks *engine.Keyspace, from io.Reader, size, nowMillis int64, enter func([]rdb.Item) error) *reader {
	r := &reader{s: s}
	r.Loader = rdb.NewLoader(from, rdb.LoadOptions{
		Limits:    s.Config.Dumps().Limits(),
		Databases: ks.Databases(),
		Size:      size,
		Unchecked: s.Config.Value("rdbchecksum") == "no",
		NowMillis: nowMillis,
		Enter:     enter,
		Library: func(code []byte) error {
			r.codes = append(r.codes, append([]byte(nil), code...))
			return nil
		},
		Aux:    r.fact,
		Passed: func(_ int, key []byte) { s.Logf('n', "RDB: skipping empty key: %.200s", key) },
		Repaired: func(db int, key []byte, repairs []string) {
			s.Repaired.Add(1)
			s.Logf('w', "RDB: repaired the value of key %.200q of database %d: %s", key, db, strings.Join(repairs, "; "))
		},
		Expired: func(db int, key []byte) {
			if r.told.Expired != nil {
				r.told.Expired(db, key)
			}
		},
	})
	return r
}

// fact handles a field of the file's header.
func (r *reader) fact(name, value []byte) error {
	if string(name) == factID {
		r.id = string(value)
		return nil
	}
	n, err := strconv.ParseInt(string(value), 10, 64)
	switch {
	case err != nil:
	case string(name) == factOffset:
		if r.told.Place != nil && r.id != "" && n >= 0 && r.selected >= 0 {
			r.told.Place(replication.Place{ID: r.id, Offset: n, Selected: r.selected})
		}
	case string(name) == factTime:
		r.s.Keyspace.Clock.Passed(n + BeyondMicros)
		r.s.Loading.Until(n)
	case string(name) == factPast:
		r.s.Keyspace.Clock.Passed(n)
	case string(name) == factFence:
		r.s.Keyspace.Fences.After(n)
	case string(name) == factSelected:
		r.selected = int(n)
	case string(name) == "used-mem":
		r.s.Loading.Took(n)
	}
	return nil
}

// enter loads the libraries of the file, and sets the counters of loaded keys.
func (r *reader) enter(c *command.Ctx, flush, replace bool) error {
	r.s.LoadedKeys.Store(r.Keys())
	r.s.ExpiredKeys.Store(r.Expired())
	if problem := r.s.Functions.LoadCode(c, r.codes, flush, replace); problem != "" {
		return errors.New(problem)
	}
	return nil
}

// Enter loads a file. The caller holds all locks. Without replace, a key or library that exists already is an error. flush
// first removes the existing libraries.
func Enter(c *command.Ctx, from io.Reader, size int64, flush, replace bool) error {
	into := rdb.Into{KS: c.KS, View: &c.View, Replace: replace}
	r := open(c.Server, c.KS, from, size, c.Now/1000, into.Enter)
	if err := r.Load(); err != nil {
		return err
	}
	into.Done()
	if c.Server.Config.Value("sanitize-dump-payload") == "yes" {
		c.Server.Verified.Add(r.Verified())
	}
	return r.enter(c, flush, replace)
}

// Start loads a file before any client is served. It leaves out keys that have expired at nowMillis, unless that is 0. It
// returns where the file ends.
func Start(s *command.Server, from io.Reader, size, nowMillis int64, told Told) (end int64, err error) {
	w, err := Read(s, s.Keyspace, from, size, nowMillis, told)
	if err != nil {
		return 0, err
	}
	rest, err := io.Copy(io.Discard, w.r.Rest())
	if err != nil {
		return 0, err
	}
	return size - rest, w.Enter(s.OwnCtx(), false, false)
}

// Whole is a file whose keys have been entered, but not its libraries.
type Whole struct {
	// Selected is the database that is selected in the replication stream after the file.
	Selected int
	r        *reader
}

// Read enters the keys of a file into a keyspace, under their locks, with the same options as Start.
func Read(s *command.Server, ks *engine.Keyspace, from io.Reader, size, nowMillis int64, told Told) (*Whole, error) {
	into := rdb.Into{KS: ks}
	r := open(s, ks, from, size, nowMillis, func(items []rdb.Item) error {
		if told.Entering != nil {
			told.Entering(len(items))
		}
		return into.Enter(items)
	})
	r.told = told
	if err := r.Load(); err != nil {
		return nil, err
	}
	into.Done()
	if n := r.Empty(); n > 0 {
		s.Logf('n', "empty keys skipped: %d", n)
	}
	return &Whole{r.selected, r}, nil
}

// Enter loads the file's libraries. The caller holds all locks. Without replace, a library that exists already is an error.
// flush first removes the existing ones.
func (w *Whole) Enter(c *command.Ctx, flush, replace bool) error {
	c.Worker = c.Server.Workers.Get(c.Server)
	defer c.Server.Workers.Put(c.Worker)
	return w.r.enter(c, flush, replace)
}

// Check reads a file without entering anything.
func Check(c *command.Ctx, from io.Reader, size int64) error {
	return open(c.Server, c.KS, from, size, 0, func([]rdb.Item) error { return nil }).Load()
}

// Clashes tells whether a file has a key that exists already. The caller holds all locks.
func Clashes(c *command.Ctx, from io.Reader, size int64) (bool, error) {
	found := false
	var mu sync.Mutex
	defer func(db int) { c.DB = db }(c.DB)
	r := open(c.Server, c.KS, from, size, c.Now/1000, func(items []rdb.Item) error {
		mu.Lock()
		defer mu.Unlock()
		for i := range items {
			c.DB = items[i].DB
			found = found || c.Peek(items[i].Key).Ok()
		}
		return nil
	})
	return found, r.Load()
}
