package resp

// Handover: a handler may find in the middle of a command that the command takes long. It then hands the rest of its
// goroutine's work to another goroutine, which continues with the loop and its connections. The command keeps its stack
// and runs on. Short commands, which are nearly all, pay nothing for this, and nobody must know in advance how long a
// command takes.
//
// The command's goroutine keeps what the command still uses: the bytes of its arguments (the loop gets another read buffer,
// or does not touch the part of the connection's own buffer that holds them), the batch, and the Writer for its reply. The
// loop keeps what belongs to the connection: its socket, its later commands and its mailbox. The connection is paused until
// Return.
//
// Go's scheduler treats a goroutine in a long system call the same way: the goroutine stays on its thread, and its processor
// goes to another thread. Two other designs were rejected. To run every command that may take long on another goroutine from
// the start costs two thread switches per command, several times the time of a small script. To move a running command is
// not possible, since its stack holds slices of all these buffers.

import "slices"

// HandOver hands everything but the running command to another goroutine. The handler calls it within Serve. ran is how many
// commands of the batch are done, including the running one; mark is where its reply begins in c.Out. HandOver returns false,
// and changes nothing, if it is not possible. After true, the caller keeps the old Writer of c.Out, the batch and its bytes;
// c.Out is a new Writer. From then on the caller may touch c only through Post, and Serve must return a negative number. When
// the command has ended, the caller posts a function that appends the reply to c.Out and calls c.Return.
func (c *Conn) HandOver(ran, mark int) bool {
	return !c.away && c.owner.handOver(ran, mark)
}

// Return ends what HandOver began, and the pause. If the connection ended meanwhile, Return calls the handler's Closed, which
// had to wait because the command still used the handler's state of the connection.
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

// Yield gives the other connections their turn: Serve returns how many commands it ran, and gets the rest later.
func (c *Conn) Yield() { c.more = true }

// Turn counts c's turns.
func (c *Conn) Turn() uint64 { return c.turn }

// detach separates c from the buffers that the command still uses, and pauses c.
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
