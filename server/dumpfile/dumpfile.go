// Package dumpfile, internal to the server, writes and reads files in Redis's dump format for who
// does: all keys of a keyspace, and its functions.
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

// What is to be in a file. The zero value is all that there is.
type What struct {
	NoKeys, NoFunctions bool
	Base                bool // it is the base of an append-only file
	// Without, if not nil, tells which keys are to be left out.
	Without func(e engine.Entry) bool
	// For is who is to read the file.
	For rdb.Audience
	// Facts are more of what the file says of itself.
	Facts [][2]string
}

// The names of the facts about the stream of commands that comes behind a file: its name, how many bytes of it come before,
// and the database that it has selected.
const (
	factID       = "repl-id"
	factOffset   = "repl-offset"
	factSelected = "repl-stream-db"
)

// Facts are what a file says of the place in the stream that it is of.
func Facts(at replication.Place) [][2]string {
	return [][2]string{
		{factSelected, strconv.Itoa(at.Selected)}, {factID, at.ID}, {factOffset, strconv.FormatInt(at.Offset, 10)},
	}
}

// factTime is the name of a fact in files: when they were made, in Unix microseconds.
const factTime = "limitkv-time"

// factFence is the name of a fact: the last fence of a lock's grant.
const factFence = "limitkv-fence"

// factPast is the name of a fact: a time, in Unix microseconds, that what is numbered by the time has reached, and the clock
// has not, since it went back.
const factPast = "limitkv-past"

// BeyondMicros is by how much what is numbered by the time is beyond all that files tell of when the server begins: to the
// millisecond, it has no number twice.
const BeyondMicros = 1000

// Begin begins a file at a time, with its origin, some more facts and libraries.
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

// Write writes a file of what there is. All keys are held.
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

// reader reads a file and gathers the code of its libraries.
type reader struct {
	*rdb.Loader
	s        *command.Server
	codes    [][]byte
	id       string
	selected int
	told     Told
}

// Told is told of what is read. All functions may be nil.
type Told struct {
	// Entering is called with the number of keys before some are entered.
	Entering func(keys int)
	// Place is called with the place in the stream of commands that the file is of.
	Place func(at replication.Place)
	// Expired is called with keys that are left out.
	Expired func(db int, key []byte)
}

// open makes a reader. Keys are left out that have expired by a time, unless it is 0.
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

// fact takes over what a file says of itself.
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

// enter takes over what is in the file beside the keys.
func (r *reader) enter(c *command.Ctx, flush, replace bool) error {
	r.s.LoadedKeys.Store(r.Keys())
	r.s.ExpiredKeys.Store(r.Expired())
	if problem := r.s.Functions.LoadCode(c, r.codes, flush, replace); problem != "" {
		return errors.New(problem)
	}
	return nil
}

// Enter enters what a file has, under the locks of all keys. Without replace a key or
// a library that is there already is an error; flush has the libraries removed that
// there are.
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

// Start enters what a file has before anybody is served, without the keys that have
// expired by a time, unless it is 0. It returns where the file ends.
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

// Whole is a file that was read, of which the keys are entered.
type Whole struct {
	// Selected is the database that the stream of commands behind the file has selected.
	Selected int
	r        *reader
}

// Read enters the keys of a file in a keyspace, taking their locks, as Start does.
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

// Enter enters what is in the file beside the keys, under the locks of all keys. Without replace a library that is there
// already is an error; flush has those removed that there are.
func (w *Whole) Enter(c *command.Ctx, flush, replace bool) error {
	c.Worker = c.Server.Workers.Get(c.Server)
	defer c.Server.Workers.Put(c.Worker)
	return w.r.enter(c, flush, replace)
}

// Check reads a file and enters nothing.
func Check(c *command.Ctx, from io.Reader, size int64) error {
	return open(c.Server, c.KS, from, size, 0, func([]rdb.Item) error { return nil }).Load()
}

// Clashes tells whether a file has a key that is there already. All keys are held.
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
