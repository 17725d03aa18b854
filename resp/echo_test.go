package resp

// The handler that the tests of this package serve.

import (
	"bytes"
	"sync/atomic"
	"time"
)

// echo is a handler for tests: PING answers PONG, ECHO its argument, AWAY too, but
// after a handover; a few other commands call a function of the test.
type echo struct {
	opened, closed atomic.Int64
	away           atomic.Int64 // handed over
	onOpen         func(c *Conn)
	onClose        func(c *Conn)
	on             map[string]func(c *Conn, cmd Command)
	unknown        func(c *Conn, cmd Command)
}

func (e *echo) Opened(c *Conn) {
	e.opened.Add(1)
	if e.onOpen != nil {
		e.onOpen(c)
	}
}

func (e *echo) Closed(c *Conn) {
	e.closed.Add(1)
	if e.onClose != nil {
		e.onClose(c)
	}
}

func (e *echo) Serve(c *Conn, batch []Command) int {
	for i, cmd := range batch {
		name := string(bytes.ToLower(cmd.Args[0]))
		switch fn := e.on[name]; {
		case fn != nil:
			fn(c, cmd)
		case name == "ping" && len(cmd.Args) == 1:
			c.Out.Status("PONG")
		case name == "echo" && len(cmd.Args) == 2:
			c.Out.Bulk(cmd.Args[1])
		case name == "away" && len(cmd.Args) == 2:
			out, mark := c.Out, c.Out.Mark()
			handedOver := c.HandOver(i+1, mark)
			time.Sleep(time.Duration(len(cmd.Args[1])%8) * 100 * time.Microsecond)
			out.Bulk(cmd.Args[1]) // nothing has overwritten it meanwhile
			if handedOver {
				e.away.Add(1)
				c.Post(func() {
					if !c.Gone() {
						c.Out.Raw(out.Buf[mark:])
					}
					c.Return()
				})
				return -1
			}
		case name == "quit":
			c.Out.OK()
			c.Close(true)
			return i + 1
		case e.unknown != nil:
			e.unknown(c, cmd)
		default:
			c.Out.Array(len(cmd.Args))
			for _, a := range cmd.Args {
				c.Out.Bulk(a)
			}
		}
		if c.Paused() {
			return i + 1
		}
	}
	return len(batch)
}

func micros() int64 { return time.Now().UnixMicro() }
