package resp

// Sources: a connection with a source sends the source's bytes, as fast as its peer takes them, instead of replies. Replicas
// get their snapshot and then the stream this way. The bytes are not copied per connection: a hundred megabytes that wait for
// ten replicas are in memory once.
//
// A connection with a source sends nothing else. A command that replies ends the connection, since the peer would take the
// reply for a part of the source's bytes.

// Source is where the output comes from. Its methods are called by the goroutine that owns the connection.
type Source interface {
	// Next returns the next bytes to send, none if there are none yet. The bytes do not change until Sent is called.
	Next() []byte
	// Sent says that n bytes of them were sent.
	Sent(n int)
	// Unsent is how many bytes wait to be sent. They count towards the limits of output.
	Unsent() int64
}

// Attach makes the connection send the bytes of s, after those in Out. When the source has more, Post wakes the connection;
// Nudge does so too, but may let it wait for even more. Only functions given to Post may call Attach.
func (c *Conn) Attach(s Source) {
	c.owner.flush()
	c.source, c.owed = s, len(c.Out.Buf)
}

// Gather makes the system send fewer, larger packets to the peer (Nagle's algorithm), where it can.
func (c *Conn) Gather() { c.owner.gather() }

// Nudge says that the source has more. A busy loop sends it within nudgeMicros, together with what was added until then: to
// send after each turn of a client would cost a system call each time and wake the peer each time. A loop with nothing else
// to do sends it at once. Nudge may be called from anywhere.
func (c *Conn) Nudge() { c.owner.nudge() }

// strayReply ends a connection that has a source and yet replied something.
func (c *Conn) strayReply() {
	if c.source != nil && len(c.Out.Buf) > c.owed {
		c.Out.Cut(0)
		c.close(false, ReasonHandler)
	}
}

// sourced is how many bytes wait in the source.
func (c *Conn) sourced() int64 {
	if c.source == nil {
		return 0
	}
	return c.source.Unsent()
}
