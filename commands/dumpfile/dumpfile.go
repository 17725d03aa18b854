// Package dumpfile writes and reads files in Redis's dump format for the families that do: all keys of a keyspace, and its
// functions.
package dumpfile

import (
	"errors"
	"io"
	"strconv"
	"sync"

	"github.com/limitkv/limitkv/commands/command"
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/rdb"
)

// What is to be in a file. The zero value is all that there is.
type What struct {
	NoKeys, NoFunctions bool
	Base                bool // it is the base of an append-only file
}

// factTime is the name of a fact in files: when they were made, in Unix microseconds.
const factTime = "limitkv-time"

// BeyondMicros is by how much the clock is beyond all that files tell of when the server
// begins: what it numbers by the millisecond has no number twice.
const BeyondMicros = 1000

// Begin begins a file at a time, with its origin and libraries.
func Begin(s *command.Server, to io.Writer, nowMicros int64, base bool, libraries []string) *rdb.Writer {
	w := rdb.NewWriter(to, s.Config.Dumps().FileFormat(), s.Config.Value("rdbchecksum") == "yes")
	w.Origin(rdb.Origin{Version: command.RedisVersion, NowMicros: nowMicros, UsedMemory: uint64(max(s.Keyspace.KeysBytes(), 0)), Base: base,
		More: [][2]string{{factTime, strconv.FormatInt(nowMicros, 10)}}})
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
	w := Begin(c.Server, to, c.Now, what.Base, libraries)
	defer func(db int) { c.DB = db }(c.DB)
	tally := c.Tally()
	for c.DB = 0; c.DB < c.KS.Databases() && !what.NoKeys && err == nil; c.DB++ {
		if st := &tally.DBs[c.DB]; st.Keys > 0 {
			w.Database(c.DB, st.Keys, st.Expires)
		}
		c.EachStored(func(e engine.Entry) {
			if err == nil {
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
	s     *command.Server
	codes [][]byte
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
		Passed: func(_ int, key []byte) { s.Logf('n', "a key is left out since its value is empty: %.200q", key) },
	})
	return r
}

// fact takes over what a file says of itself.
func (r *reader) fact(name, value []byte) error {
	n, err := strconv.ParseInt(string(value), 10, 64)
	switch {
	case err != nil:
	case string(name) == factTime:
		r.s.Keyspace.Clock.NotBefore(n + BeyondMicros)
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
// expired by a time, unless it is 0. before is called with the number of keys before
// some are entered. It returns where the file ends.
func Start(s *command.Server, from io.Reader, size, nowMillis int64, before func(keys int)) (end int64, err error) {
	into := rdb.Into{KS: s.Keyspace}
	r := open(s, s.Keyspace, from, size, nowMillis, func(items []rdb.Item) error {
		before(len(items))
		return into.Enter(items)
	})
	if err := r.Load(); err != nil {
		return 0, err
	}
	rest, err := io.Copy(io.Discard, r.Rest())
	if err != nil {
		return 0, err
	}
	into.Done()
	c := s.OwnCtx()
	c.Worker = s.Workers.Get(s)
	defer s.Workers.Put(c.Worker)
	return size - rest, r.enter(c, false, false)
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
