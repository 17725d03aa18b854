package lkv

// LKV.JOURNAL shows a test the effects of what clients do, as a file or a replica would get them. It also checks that the
// effects are complete: applied to an empty keyspace they make the same keys.

import (
	"fmt"
	"strconv"
	"sync"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/journal"
	"github.com/limitkv/limitkv/resp"
	"github.com/limitkv/limitkv/server"
	"github.com/limitkv/limitkv/server/command"
)

// journalBytesMax is how many bytes are kept until they are taken or checked.
const journalBytesMax = 1 << 30

// reading is the reading of one keyspace's journal.
type reading struct {
	mu    sync.Mutex
	on    bool
	place *journal.Follower
	taken []byte // effects since the last TAKE
	fresh []byte // effects that the copy does not have yet
	lost  bool   // there were more effects than are kept
	// The copy is a namespace of its own, and the session applies the effects.
	copy *command.Namespace
	sess *command.Session
}

// Append implements journal.Sink.
func (r *reading) Append(_ journal.LSN, _ int64, framed []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.taken)+len(framed) > journalBytesMax || len(r.fresh)+len(framed) > journalBytesMax {
		r.taken, r.fresh, r.lost = nil, nil, true
		return
	}
	r.taken = append(r.taken, framed...)
	r.fresh = append(r.fresh, framed...)
}

type journals struct {
	s      *server.Server
	places command.PerKeyspace[reading]
}

func journalRow(s *server.Server) *command.Command {
	f, j := family{s}, &journals{s: s}
	j.places.Begin(s.Server, nil)
	start := f.row("start", 2, "", "Begins to read the journal of an empty keyspace.", j.start)
	check := f.row("check", 2, "", "Applies the effects to a copy and compares it with the keyspace.", j.check)
	pictures := f.row("pictures", -2, "[COPY]", "Returns all that there is, in words, of the keyspace or of the copy.", j.pictures)
	for _, row := range []*command.Command{start, check, pictures} {
		row.Flags |= command.WholeKeyspace
		row.Complexity = "O(N) in the number of keys"
	}
	return &command.Command{
		Name: "lkv.journal", Arity: -2, Group: command.GroupTest, Since: "0.2.0",
		Flags:      command.Test | command.NoScript | command.NoMulti | command.Loading | command.Stale,
		Summary:    "Reads the effects of commands, and proves that they are enough.",
		Complexity: "That of the subcommand",
		Sub: []*command.Command{
			start,
			check,
			f.row("apply", -3, "word:string...", "Applies an effect, of another server too, to the copy.", j.apply),
			pictures,
			f.row("take", 2, "", "Returns the effects since the last time, each with its database before it.", j.take),
			f.row("stop", 2, "", "Ends reading.", j.stop),
		},
	}
}

const errNoJournal = "ERR the journal is not read, see LKV.JOURNAL START"

func (j *journals) start(c *command.Ctx) {
	db, keys := c.DB, 0
	for c.DB = range c.KS.Databases() {
		keys += c.Count()
	}
	if c.DB = db; keys != 0 {
		c.Error("ERR there are keys already")
		return
	}
	r := j.places.Of(c.KS)
	if r.on {
		r.place.Leave()
		j.s.Namespaces.Drop(j.s.Server, r.copy)
	}
	name := fmt.Sprintf("lkv.journal:%p", c.KS)
	ns := j.s.Namespaces.Make(j.s.Server, name)
	if ns == nil {
		c.Error(errNamespaceMany)
		return
	}
	ns.Keyspace.Follow(true)
	sess := &command.Session{Authenticated: true}
	sess.SetNamespace(ns)
	*r = reading{on: true, copy: ns, sess: sess}
	j.s.Functions.Load(ns.Keyspace, j.s.Functions.Save(c.KS), true, true)
	r.place = c.KS.Journal.Follow(r)
	c.OK()
}

func (j *journals) stop(c *command.Ctx) {
	r := j.places.Of(c.KS)
	if r.on {
		r.place.Leave()
		j.s.Namespaces.Drop(j.s.Server, r.copy)
		*r = reading{}
	}
	c.OK()
}

// commandsOf reads the commands that effects consist of.
func commandsOf(effects []byte, fn func(args [][]byte) error) error {
	var p resp.Parser
	var args [][]byte
	for len(effects) > 0 {
		n, found, err := p.Next(effects, args[:0])
		if err != nil {
			return err
		}
		if n == 0 {
			return fmt.Errorf("an effect is cut off")
		}
		effects, args = effects[n:], found
		if err := fn(found); err != nil {
			return err
		}
	}
	return nil
}

func (j *journals) take(c *command.Ctx) {
	r := j.places.Of(c.KS)
	if !r.on {
		c.Error(errNoJournal)
		return
	}
	r.mu.Lock()
	effects := r.taken
	r.taken = nil
	r.mu.Unlock()
	var all [][][]byte
	if err := commandsOf(effects, func(args [][]byte) error {
		all = append(all, command.Clone(args))
		return nil
	}); err != nil {
		c.Error("ERR " + err.Error())
		return
	}
	c.Array(len(all))
	for _, args := range all {
		c.Array(len(args))
		for _, a := range args {
			c.Bulk(a)
		}
	}
}

func (j *journals) check(c *command.Ctx) {
	r := j.places.Of(c.KS)
	switch {
	case !r.on:
		c.Error(errNoJournal)
		return
	case r.lost:
		c.Error("ERR there were too many effects")
		return
	}
	r.mu.Lock()
	effects := r.fresh
	r.fresh = nil
	r.mu.Unlock()
	if err := commandsOf(effects, func(args [][]byte) error { return j.s.Apply(r.sess, args) }); err != nil {
		c.Error("ERR " + err.Error())
		return
	}
	db := c.DB
	defer func() { c.DB = db }()
	r.copy.Keyspace.Inspect(engine.WholeKeyspace(), func(copied *engine.Reader) {
		for c.DB = range c.KS.Databases() {
			copied.DB, copied.Now = c.DB, c.Now
			if text := differ(c.Reader(), copied); text != "" {
				c.Error("ERR database " + strconv.Itoa(c.DB) + ": " + text)
				return
			}
		}
		c.OK()
	})
}

// apply applies an effect to the copy.
func (j *journals) apply(c *command.Ctx) {
	r := j.places.Of(c.KS)
	if !r.on {
		c.Error(errNoJournal)
		return
	}
	if err := j.s.Apply(r.sess, c.Args[2:]); err != nil {
		c.Error("ERR " + err.Error())
		return
	}
	c.OK()
}

// pictures replies the database, the key and the picture of each entry.
func (j *journals) pictures(c *command.Ctx) {
	a := c.Cursor(2)
	copied := a.More() && a.Is("COPY")
	if a.More() {
		a.Syntax()
	}
	if a.Failed(c) {
		return
	}
	r := j.places.Of(c.KS)
	switch {
	case !copied:
		picturesOf(c, c.Reader())
	case !r.on:
		c.Error(errNoJournal)
	default:
		r.copy.Keyspace.Inspect(engine.WholeKeyspace(), func(r *engine.Reader) { picturesOf(c, r) })
	}
}

func picturesOf(c *command.Ctx, r *engine.Reader) {
	defer func(db int) { r.DB = db }(r.DB)
	var all [][3]string
	for r.DB = range r.KS.Databases() {
		r.EachStored(func(e engine.Entry) {
			all = append(all, [3]string{strconv.Itoa(r.DB), string(e.Key()), picture(e)})
		})
	}
	c.Array(len(all))
	for _, parts := range all {
		c.Array(len(parts))
		for _, part := range parts {
			c.BulkString(part)
		}
	}
}

// differ compares a database of two keyspaces. The second keyspace was made from the effects of the first one.
func differ(r, copied *engine.Reader) (text string) {
	there := 0
	r.EachStored(func(e engine.Entry) {
		if text != "" || e.Kind() == engine.KindLimiter && r.Idle(e) {
			return
		}
		there++
		x := copied.Find(e.Key())
		if a, b := picture(e), picture(x); a != b {
			text = fmt.Sprintf("%q is %s, but by its effects %s", e.Key(), a, b)
		}
	})
	if text != "" {
		return text
	}
	copied.EachStored(func(e engine.Entry) {
		if e.Kind() == engine.KindLimiter && copied.Idle(e) {
			return
		}
		there--
		if text == "" && !r.Find(e.Key()).Ok() {
			text = fmt.Sprintf("by its effects there is %q", e.Key())
		}
	})
	return text
}
