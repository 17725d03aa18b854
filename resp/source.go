package resp

// Sources: output that a connection is sent as fast as its peer takes it, in place of replies. A replica's snapshot and the
// stream behind it come so. The bytes stay where they are until they are sent, and are nobody's copy: a hundred megabytes
// that wait for ten replicas are there once.
//
// A connection with a source sends nothing else. Whatever makes a reply ends it, as its peer would take the reply for a
// part of what the source sends.

// Source is where the output comes from. Its methods are called by the goroutine that owns the connection.
type Source interface {
	// Next returns what is to be sent next, nothing while there is nothing. The bytes do not change until Sent is called.
	Next() []byte
	// Sent says that so many bytes of them are sent.
	Sent(n int)
	// Unsent is how much waits to be sent, which counts towards the limits of output.
	Unsent() int64
}

// Attach has the connection sent what the source has, behind what is in Out. Post wakes it when there is more, and Nudge when
// that may wait for even more. It is for functions given to Post.
func (c *Conn) Attach(s Source) {
	c.owner.flush()
	c.source, c.owed = s, len(c.Out.Buf)
}

// Gather has the system send what the connection is sent in fewer, larger packets (Nagle's algorithm). Where it cannot, the
// packets stay as they are.
func (c *Conn) Gather() { c.owner.gather() }

// Nudge says that the source has more. A loop that is busy sends it within nudgeMicros, with what has come until then: to
// send what each turn of clients makes by itself costs a system call and wakes the peer for it. A loop with nothing else to
// do sends it at once. It may be called from anywhere.
func (c *Conn) Nudge() { c.owner.nudge() }

// strayReply ends a connection with a source that has replied something.
func (c *Conn) strayReply() {
	if c.source != nil && len(c.Out.Buf) > c.owed {
		c.Out.Cut(0)
		c.close(false, ReasonHandler)
	}
}

// sourced is how much waits in the source.
func (c *Conn) sourced() int64 {
	if c.source == nil {
		return 0
	}
	return c.source.Unsent()
}
