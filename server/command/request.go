package command

// Request is a command on its way from its arguments to its reply.

import (
	"github.com/limitkv/limitkv/engine"
)

// Request is a command on its way. It is resolved once, and carries what was found to the locks, to the handler, and with a
// transaction's queue to EXEC.
type Request struct {
	// Args are the command's name and arguments. They alias what the client sent and
	// must be copied to be kept, but for those that Owns tells of.
	Args [][]byte
	// Own, if it is not 0, is how long an argument is that may be kept as it is.
	Own int
	// Cmd is as from Table.Resolve, as Known is.
	Cmd   *Command
	Known bool
	// Sole is the position of the only key, 0 if there is none or there are several.
	// Place is the key's.
	Sole  int
	Place engine.Place
	// Prepared is what the row's Prepare found, and NumKeys how many keys, if that is
	// an argument: -1 if it is wrong.
	Prepared any
	NumKeys  int
	// Began and Ended are monotonic times, 0 where the clock was not read.
	Began, Ended int64
}

// Start is when the command began.
func (r *Request) Start() int64 {
	if r.Began == 0 {
		return engine.Monotonic()
	}
	return r.Began
}

// Resolve finds the row that arguments call, and where its key is if there is one.
func (r *Request) Resolve(t *Table, args [][]byte) {
	r.Args, r.Own, r.Sole, r.Prepared, r.Began, r.Ended = args, 0, 0, nil, 0, 0
	r.Cmd = t.Find(args[0])
	if r.Known = r.Cmd != nil; !r.Known {
		return
	}
	if len(r.Cmd.subs) > 0 {
		r.Cmd, r.Known = t.Resolve(args)
	}
	if r.Known && r.Cmd.Plan == nil && r.Cmd.Flags&WholeKeyspace == 0 {
		if r.Sole = r.Cmd.SoleKey(args); r.Sole > 0 {
			r.Place = engine.PlaceOf(args[r.Sole])
		}
	}
}

// Ahead is the place of the first key, if it is worth prefetching before the request runs, as one of so many in a row.
func (r *Request) Ahead(of int) (at engine.Place, ok bool) {
	if r.Sole > 0 {
		return r.Place, true
	}
	if of > 1 && r.Known {
		if i := r.Cmd.FirstKey(r.Args); i > 0 {
			return engine.PlaceOf(r.Args[i]), true
		}
	}
	return at, false
}

// Call makes the request one of a command that is known, within another one.
func (r *Request) Call(cmd *Command, args [][]byte) {
	r.Args, r.Own, r.Cmd, r.Known = args, 0, cmd, true
	if r.Sole = cmd.SoleKey(args); r.Sole > 0 {
		r.Place = engine.PlaceOf(args[r.Sole])
	}
}

// Owns tells whether an argument has memory of its own, which the command may keep. Others may still read it, so it must not
// be written to.
func (r *Request) Owns(arg []byte) bool { return r.Own > 0 && len(arg) >= r.Own }

// Clone is the request with arguments of its own.
func (r *Request) Clone() Request {
	kept := *r
	kept.Args, kept.Own = Clone(r.Args), 0
	return kept
}

// Replayer runs the commands of a primary, in their order, for one goroutine. When its session is Killed, which happens under
// the locks of all keys, it changes nothing any more.
type Replayer interface {
	// Ahead tells of the commands that come next, at most RequestsMax.
	Ahead(commands [][][]byte)
	// Run runs the nth of these, of which raw is what was read, and returns the error that came of it, which changes nothing
	// of how it goes on.
	Run(nth int, args [][]byte, raw []byte) (failure string)
	// Pass is Run for what changes nothing, and Select for what selects a database.
	Pass(raw []byte)
	Select(db int, raw []byte)
	// End gives back what it used. A transaction that has begun is forgotten.
	End()
}
