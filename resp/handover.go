package resp

// Handing over: a handler that finds, in the middle of a command, that the command takes long gives away everything
// else that its goroutine does. Another goroutine goes on with the loop and its connections; the command keeps its
// stack and runs on. Commands that end soon, which are nearly all, cost nothing for that: nobody has to know in advance
// which will.
//
// What the command still uses stays with its goroutine: the bytes of its arguments (the loop gets another read buffer,
// or does not touch what a connection's own buffer had before), the batch, the Writer that it replies to. What belongs
// to the connection goes with the loop: its socket, the commands behind this one, its mailbox. The connection is paused
// until Return.
//
// Go's scheduler treats a goroutine in a long system call the same way: it stays where it is, and its processor goes to
// another thread. Rejected: to run what may take long on another goroutine from the start, which costs two switches
// between threads for each, several times what a small script takes; and to move a running command, whose stack holds
// slices of all of that.

import "slices"

// HandOver is to be called by the handler within Serve. ran is how many commands of the batch are done with, the one
// that runs included; mark is where its reply begins in c.Out. It reports false where it cannot be done: then nothing
// has changed. Otherwise the Writer that c.Out was, the batch and its bytes stay the caller's; c.Out is another, and
// Serve has to return a negative number and to have touched c by Post alone. Once the command has ended, a function
// given to Post is to append its reply to c.Out and to call c.Return.
func (c *Conn) HandOver(ran, mark int) bool {
	return !c.away && c.owner.handOver(ran, mark)
}

// Return ends what HandOver began, and the pause. A connection that ended meanwhile is closed now: until here the command
// used what the handler keeps of it.
func (c *Conn) Return() {
	switch {
	case !c.away:
	case c.gone:
		c.away = false
		c.handler.Closed(c)
	default:
		c.away, c.in.lent = false, false
		c.Resume()
	}
}

// over is called once, when c has ended.
func (c *Conn) over() {
	c.gone = true
	c.parser.forgetLarge()
	if !c.away {
		c.handler.Closed(c)
	}
}

// Yield gives the other connections their turn: Serve returns how many commands it ran, and is given the rest later.
func (c *Conn) Yield() { c.more = true }

// Turn counts c's turns.
func (c *Conn) Turn() uint64 { return c.turn }

// detach leaves to the command what it uses, and pauses c.
func (c *Conn) detach(s *scratch, ran, mark int) {
	done := s.ends[ran-1]
	if s.own {
		c.in.off += done
		c.in.lent = true
	} else {
		c.in = backlog{buf: slices.Clone(s.data[done:])}
	}
	*s = scratch{}
	c.parser.scratch = nil
	c.parser.reset()
	c.parser.forgetLarge()
	c.paused, c.away, c.more = true, true, false
	c.Out = &Writer{Proto: c.Out.Proto, Buf: slices.Clone(c.Out.Buf[:mark]), sharing: c.Out.sharing}
	c.noteQueryBytes()
}
