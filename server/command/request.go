package command

// Request is a command on its way from its arguments to its reply.

import (
	"github.com/limitkv/limitkv/engine"
)

// Request is a command on its way. It is resolved once, and carries the result to the locks, to the handler, and, in a
// transaction's queue, to EXEC.
type Request struct {
	// Args are the command's name and arguments. They alias the client's input and must be copied to be kept, except those for
	// which Owns is true.
	Args [][]byte
	// Own, if not 0, is the length from which an argument has its own memory and may be kept.
	Own int
	// Cmd and Known are the results of Table.Resolve.
	Cmd   *Command
	Known bool
	// Sole is the position of the only key, 0 if there is none or there are several. Place is that key's place.
	Sole  int
	Place engine.Place
	// Prepared is the result of the row's Prepare. NumKeys is the number of keys if it is an argument, -1 if that is wrong.
	Prepared any
	NumKeys  int
	// Began and Ended are monotonic times, 0 if the clock was not read.
	Began, Ended int64
}

// Start is when the command began.
func (r *Request) Start() int64 {
	if r.Began == 0 {
		return engine.Monotonic()
	}
	return r.Began
}

// Resolve finds the row for arguments, and the place of the key if there is only one.
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

// Ahead returns the place of the first key, if prefetching it pays. of is the number of requests in a row.
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

// Call sets the request to a known command, which another command calls.
func (r *Request) Call(cmd *Command, args [][]byte) {
	r.Args, r.Own, r.Cmd, r.Known = args, 0, cmd, true
	if r.Sole = cmd.SoleKey(args); r.Sole > 0 {
		r.Place = engine.PlaceOf(args[r.Sole])
	}
}

// Owns tells whether an argument has its own memory, which the command may keep. Others may still read it, so nobody may write
// to it.
func (r *Request) Owns(arg []byte) bool { return r.Own > 0 && len(arg) >= r.Own }

// Clone returns the request with its own copy of the arguments.
func (r *Request) Clone() Request {
	kept := *r
	kept.Args, kept.Own = Clone(r.Args), 0
	return kept
}

// Replayer runs the commands of a primary, in order, on one goroutine. Once its session is Killed, which happens under the
// locks of all keys, it makes no more changes.
type Replayer interface {
	// Ahead announces the next commands, at most RequestsMax.
	Ahead(commands [][][]byte)
	// Run runs the nth of these. raw is its bytes in the stream. It returns the command's error, after which replay continues.
	Run(nth int, args [][]byte, raw []byte) (failure string)
	// Pass takes a command that changes nothing, Select one that selects a database.
	Pass(raw []byte)
	Select(db int, raw []byte)
	// End releases its resources. It drops a transaction that is not complete.
	End()
}
