package command

// Ctx is what a handler works with: its arguments, the keyspace under the locks that the pipeline took, the time, and the
// reply.

import (
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/delayqueue"
	"github.com/limitkv/limitkv/engine/list"
	"github.com/limitkv/limitkv/engine/set"
	"github.com/limitkv/limitkv/engine/stream"
	"github.com/limitkv/limitkv/resp"
	"github.com/limitkv/limitkv/server/longrun"
)

// Replier is the protocol's writer.
type Replier = *resp.Writer

// Ctx is the context of one command. Handlers compute first and reply last; an error removes what was replied before.
type Ctx struct {
	*resp.Writer
	// View reads and changes the keyspace. View.Now is the time of the command in Unix microseconds, View.DB the database.
	engine.View
	// Request is the command with its arguments. While EXEC or a script runs another command, it is that one.
	*Request
	Session *Session
	Server  *Server
	Worker  *Worker

	// Script is set while a script runs the command, Exec while EXEC does.
	Script, Exec bool
	// OutOfMemory: memory use was above maxmemory when the client's command began.
	OutOfMemory bool
	// Mark is where this command's reply begins in the output.
	Mark int
	// Failure is the error that the command replied, empty if none.
	Failure string
	// Counted: INFO errorstats has already counted the error, which an inner command replied.
	Counted bool
	// Waits is set if the command called Block.
	Waits bool
	// Long is set once the command, or the one that contains it, takes long.
	Long *longrun.Run
}

// Error replies an error: the whole text with its code. It removes what the command replied before.
func (c *Ctx) Error(text string) {
	c.Cut(c.Mark)
	c.Writer.Error(text)
	c.Failure = text
}

// WrongType replies the error for a key of another type.
func (c *Ctx) WrongType() { c.Error(ErrWrongType) }

// Key returns the argument at index i.
func (c *Ctx) Key(i int) []byte { return c.Args[i] }

// Lookup finds a key of a kind for reading. If the key has another kind, it replies the error and reports false. A missing key
// is the zero Entry.
func (c *Ctx) Lookup(key []byte, kind engine.Kind) (engine.Entry, bool) {
	return c.check(c.Get(key), kind)
}

// LookupWrite is Lookup for a key that the command will change.
func (c *Ctx) LookupWrite(key []byte, kind engine.Kind) (engine.Entry, bool) {
	return c.check(c.GetWrite(key), kind)
}

func (c *Ctx) check(e engine.Entry, kind engine.Kind) (engine.Entry, bool) {
	if e.Ok() && e.Kind() != kind {
		c.WrongType()
		return engine.Entry{}, false
	}
	return e, true
}

// Object finds an object of a kind for reading, nil if the key is missing. If the key has another kind, it replies the error,
// and ok is false.
func Object[T any](c *Ctx, key []byte, kind engine.Kind) (obj T, ok bool) {
	e, ok := c.Lookup(key, kind)
	if ok && e.Ok() {
		obj, _ = e.Object().(T)
	}
	return obj, ok
}

// object is a type that commands change in place. Hashes and sorted sets are not among them: small ones are stored as plain
// bytes, and must be stored again after a change (View.EditHash, View.EditZSet).
type object interface {
	*list.List | *set.Set | *stream.Stream | *delayqueue.Queue
}

// ObjectWrite is Object for a key that the command will change.
func ObjectWrite[T object](c *Ctx, key []byte, kind engine.Kind) (obj T, ok bool) {
	e, ok := c.LookupWrite(key, kind)
	if ok && e.Ok() {
		obj, _ = e.Object().(T)
	}
	return obj, ok
}

// Reach locks a key that is not one of the command's, if that is possible at once.
func (c *Ctx) Reach(key []byte) bool {
	switch {
	case c.Held.Covers(key):
		return true
	case c.Reserved || !c.View.Reach(key):
		return false
	}
	if c.Worker != nil { // otherwise a wait is being served
		c.Worker.Locked = c.Held
	}
	return true
}

// inlineElements is how many elements a command may process on its event loop: about half a millisecond of work. Moving the
// loop to another goroutine and the locks to a reservation costs about 20 microseconds.
const inlineElements = 4000

// Expect announces that the command is about to process so many elements. Callers count elements that take much longer than a
// field's reply, or much less, as more or less than one. It must be called before the command changes or replies anything. If
// there are many elements, the command becomes one that takes long, and others do not wait for it.
func (c *Ctx) Expect(elements int) {
	if elements > inlineElements && c.Long == nil && c.Worker != nil && c.Session.Conn != nil && c.Held != (engine.LockSet{}) {
		c.Server.Host.GoLong(c, engine.Monotonic())
	}
}

// Step releases the locks of a command that searches in steps, and takes them again. Keys may have changed meanwhile, but the
// command's time stays. In MULTI, in a script, and for a command that does not take long, Step keeps the locks. It reports
// false if nobody waits for the reply any more.
func (c *Ctx) Step() (wanted bool) {
	if c.Long == nil || c.Script || c.Exec {
		return true
	}
	c.Server.Host.Step(c)
	return !c.Session.Killed.Load() && !c.Long.Stopped()
}

// ExpectBytes is Expect for bytes of strings.
func (c *Ctx) ExpectBytes(n int) { c.Expect(n / engine.ElementBytes) }

// Random returns a random number from the server's source, which LKV.SEED can make repeatable.
func (c *Ctx) Random() uint64 { return c.Server.Random() }

// RandomN returns a random number from 0 to n-1.
func (c *Ctx) RandomN(n int) int { return int(c.Random() % uint64(n)) }

// Trusted tells whether the command comes from a primary or a log. It was allowed there, so it is not refused here.
func (c *Ctx) Trusted() bool { return c.Session.Conn == nil }

// StringMax returns the largest length of a string that the command may make. configured is the limit for clients.
func (c *Ctx) StringMax(configured int64) int64 {
	if c.Trusted() { // it may have had another limit at its origin
		return max(configured, resp.CommandBytesMax)
	}
	return configured
}

// CanBlock tells whether the command may wait: not in MULTI, and not in a script.
func (c *Ctx) CanBlock() bool { return !c.Script && !c.Exec && c.Session.Conn != nil }

// FlushDB removes the keys of the database, sends invalidations to clients that track keys, and returns how many keys it
// removed.
func (c *Ctx) FlushDB() int {
	n := c.Count()
	c.Flush()
	c.flushed()
	return n
}

// FlushAll is FlushDB for all databases.
func (c *Ctx) FlushAll() (n int) {
	db := c.DB
	for c.DB = 0; c.DB < c.KS.Databases(); c.DB++ {
		n += c.Count()
		c.Flush()
	}
	c.DB = db
	c.flushed()
	return n
}

func (c *Ctx) flushed() {
	if c.Server.Tracking.Load() != 0 {
		c.Server.Host.Flushed(c)
	}
}
