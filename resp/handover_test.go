package resp

// The end of a connection whose peer disconnects while one of its commands is handed over.

import (
	"net"
	"testing"
	"time"
)

// TestClosedAfterReturn disconnects during a command that was handed over: Closed is called when the command has
// returned, not before, since the command uses the state of the connection.
func TestClosedAfterReturn(t *testing.T) {
	for _, how := range []string{"peer", "handler"} {
		t.Run(how, func(t *testing.T) {
			bothServers(t, func(t *testing.T, o Options) { closedAfterReturn(t, o, how) })
		})
	}
}

func closedAfterReturn(t *testing.T, o Options, how string) {
	begun, goOn, gone := make(chan *Conn, 1), make(chan struct{}), make(chan struct{})
	h := &echo{on: map[string]func(c *Conn, cmd Command){}}
	h.onClose = func(c *Conn) {
		if *c.Data.(*string) != "ended" {
			t.Error("closed while the command ran")
		}
	}
	stay := &staying{echo: h, begun: begun, goOn: goOn}
	_, addr := start(t, stay, o)
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if _, err := nc.Write(command("STAY")); err != nil {
		t.Fatal(err)
	}
	c := <-begun
	if how == "peer" {
		nc.Close()
	} else {
		c.Post(func() { c.Close(false) })
	}
	go func() {
		for !isGone(c) {
			time.Sleep(time.Millisecond)
		}
		close(gone)
	}()
	select {
	case <-gone:
	case <-time.After(10 * time.Second):
		t.Fatal("the connection does not end")
	}
	if n := h.closed.Load(); n != 0 {
		t.Errorf("%d closed while the command ran", n)
	}
	close(goOn)
	eventually(t, "it is closed", func() bool { return h.closed.Load() == 1 })
}

// isGone asks the goroutine that owns c.
func isGone(c *Conn) bool {
	told := make(chan bool, 1)
	return !c.Post(func() { told <- c.Gone() }) || <-told
}

// staying is echo with STAY, a command that is handed over and ends only after goOn.
type staying struct {
	*echo
	begun chan *Conn
	goOn  chan struct{}
}

func (s *staying) Serve(c *Conn, batch []Command) int {
	state := new(string)
	c.Data = state
	mark := c.Out.Mark()
	if !c.HandOver(len(batch), mark) {
		panic("not handed over")
	}
	s.begun <- c
	<-s.goOn
	*state = "ended"
	c.Post(c.Return)
	return -1
}
