// Leases: bound to a connection, renewed, and lost; and which clients learn of a loss.
package lock_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/commands/livetest"
)

// A lease that is bound to a connection ends with it, however that ends.
func TestBound(t *testing.T) {
	for _, end := range []string{"close", "kill", "quit"} {
		t.Run(end, func(t *testing.T) {
			s, c := start(t)
			h, w := s.Client(), s.Client()
			id := h.Do("CLIENT", "ID")
			h.Want(granted(0, -1), "LK.ACQUIRE", "k", "h", 0)
			h.Want(granted(1, -1), "LK.ACQUIRE", "j", "h", 0, "SHARED", "DELAY", 200)
			c.Want(granted(2, 9000), "LK.ACQUIRE", "j", "c", 9000, "SHARED")
			c.Want(refused(0, -1, 0), "LK.ACQUIRE", "k", "w", 1000)
			c.Want(refused(1, -1, 0), "LK.ACQUIRE", "j", "w", 1000)
			c.Want("OK", "LK.GUARD", "k", fence(0))
			w.Send("LK.ACQUIRE", "k", "w", 1000, "BLOCK", 0)
			s.Blocked(1)
			s.Advance(100_000_000)
			w.Silent()
			switch end {
			case "close":
				h.Close()
			case "kill":
				c.Want("1", "CLIENT", "KILL", "ID", id)
			case "quit":
				h.Want("OK", "QUIT")
			}
			if got := w.Read(); got != fmt.Sprintf("[1 %d 1000 0]", s.Now()*1000) {
				t.Error(got)
			}
			c.Want("-FENCED the lock was lost", "LK.GUARD", "k", fence(0))
			c.Want("[0 0 200 0]", "LK.ACQUIRE", "j", "w", 1000) // its delay begins
			s.Advance(200)
			c.Want("0", "EXISTS", "j")
		})
	}
}

// A lease is bound to its key as well as to its connection; databases may be swapped.
func TestBoundMoves(t *testing.T) {
	s, c := start(t)
	h := s.Client()
	h.Want(granted(0, -1), "LK.ACQUIRE", "k", "h", 0)
	c.Want("1", "COPY", "k", "j")
	s.Advance(1)
	c.Want("0", "EXISTS", "j")
	c.Want("1", "EXISTS", "k")
	c.Want("OK", "RENAME", "k", "j")
	s.Advance(1)
	c.Want("0", "EXISTS", "j")
	h.Do("LK.ACQUIRE", "k", "h", 0)
	for i := range 12 {
		h.Do("LK.ACQUIRE", "many", fmt.Sprint("h", i), 0, "SHARED")
	}
	c.Want("1", "COPY", "many", "many2")
	s.Advance(1)
	c.Want("0", "EXISTS", "many2")
	c.Want("OK", "SWAPDB", 0, 1)
	c.Want("OK", "SELECT", 1)
	c.Want("2", "DBSIZE")
	h.Want("0", "LK.TOUCH", "h3", 5000, "many") // in database 0 there is no such lock
	h.Close()
	for c.Do("DBSIZE") != "0" {
	}
}

func TestTouch(t *testing.T) {
	s, c := start(t)
	for i, key := range []string{"a", "b", "c"} {
		c.Want(granted(int64(i), 100), "LK.ACQUIRE", key, "me", 100)
	}
	c.Do("RPUSH", "list", "x")
	c.Do("SET", "plain", "me")
	c.Want("2", "LK.TOUCH", "me", 1000, "a", "missing", "b", "list", "plain")
	c.Want("0", "LK.TOUCH", "you", 1000, "a", "b", "c")
	s.Advance(100)
	c.Want("2", "EXISTS", "a", "b", "c")
	h := s.Client()
	h.Want("1", "LK.TOUCH", "me", 0, "a") // from now on it lasts as long as that connection
	s.Advance(10_000)
	c.Want("1", "EXISTS", "a", "b")
	h.Close()
	for c.Do("EXISTS", "a") != "0" {
	}
}

// RESP3 clients get a push when they lose what they hold by their connection.
func TestLostIsTold(t *testing.T) {
	s, c := start(t)
	c.Want("OK", "CONFIG", "SET", "notify-keyspace-events", "KEA")
	h := s.Client()
	h.Do("HELLO", 3)
	e := s.Client()
	e.Want("[subscribe __keyevent@0__:lklost 1]", "SUBSCRIBE", "__keyevent@0__:lklost")
	lost := func(n int64, event bool) {
		t.Helper()
		if got := h.Read(); got != fmt.Sprintf("[lklost k %d]", fence(n)) {
			t.Error(got)
		}
		if event {
			if got := e.Read(); got != "[message __keyevent@0__:lklost k]" {
				t.Error(got)
			}
		}
	}
	h.Want(granted(0, 100), "LK.ACQUIRE", "k", "h", 100)
	s.Advance(100)
	lost(0, true)
	c.Want("OK", "LKV.CLOCK", "FREEZE", livetest.Epoch)
	n := int64(0)
	for _, do := range [][]any{{"DEL", "k"}, {"SET", "k", "v"}, {"FLUSHALL"}, {"FLUSHDB"}, {"RENAME", "k", "j"}, {"PEXPIREAT", "k", 1}} {
		for _, lease := range []int{0, 100} {
			n++
			left := lease
			if lease == 0 {
				left = -1
			}
			h.Want(granted(n, int64(left)), "LK.ACQUIRE", "k", "h", lease)
			if got := c.Do(do...); strings.HasPrefix(got, "-") {
				t.Error(got)
			}
			lost(n, false)
			if c.Do("DEL", "k", "j") != "0" && do[0] == "RENAME" && lease != 0 {
				if got := h.Read(); got != fmt.Sprintf("[lklost j %d]", fence(n)) { // it was locked under the other name
					t.Error(got)
				}
			}
		}
	}
	c.Do("FLUSHALL")
	// Nobody gets a push for a lock that was released, or that was taken over RESP2.
	h.Do("LK.ACQUIRE", "k", "h", 100)
	h.Want("1", "LK.RELEASE", "k", "h")
	c.Do("LK.ACQUIRE", "k", "c", 100)
	s.Advance(100)
	h.Silent()
	c.Silent()
}

// While keys come from a primary, the end of a connection ends no lease: the primary sends that, or it happens when the
// server becomes a primary again.
func TestBoundFollows(t *testing.T) {
	s, c := start(t)
	h := s.Client()
	h.Want(granted(0, -1), "LK.ACQUIRE", "k", "h", 0)
	c.Want(granted(1, -1), "LK.ACQUIRE", "j", "c", 0)
	id := h.Do("CLIENT", "ID")
	s.Keyspace.Leave(true)
	c.Want("1", "CLIENT", "KILL", "ID", id)
	for c.Do("CLIENT", "LIST", "ID", id) != "" {
	}
	c.Want("1", "EXISTS", "k")
	s.Keyspace.Leave(false)
	for c.Do("EXISTS", "k") != "0" {
	}
	c.Want("1", "EXISTS", "j")
}
