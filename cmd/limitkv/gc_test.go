package main

// The process's memory after a peak and under load.

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// resident is the process's memory in bytes.
func (p *process) resident() int64 {
	p.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.cmd.Process.Pid))
	if err != nil {
		p.t.Fatal(err)
	}
	pages, _ := strconv.ParseInt(strings.Fields(string(b))[1], 10, 64)
	return pages * int64(os.Getpagesize())
}

// memory returns a field of INFO memory.
func (c *client) memory(field string) (n int64) {
	c.t.Helper()
	c.send("INFO memory")
	text, err := c.reply(patience)
	if err != nil {
		c.t.Fatal(err)
	}
	_, text, _ = strings.Cut(text, "\n"+field+":")
	_, _ = fmt.Sscan(text, &n)
	return n
}

// After a peak, memory is returned to the system within ten seconds: that of a script, of an unfinished command, and of
// deleted keys.
func TestMemoryAfterPeaks(t *testing.T) {
	if testing.Short() {
		t.Skip("it is about size")
	}
	if runtime.GOOS != "linux" {
		t.Log("there is no /proc")
		return
	}
	const peak = 128 << 20
	for _, limit := range []string{"0", "1gb"} {
		p := start(t, "--maxmemory", limit)
		c := p.client()
		for name, do := range map[string]func(){
			"script": func() {
				c.send(`EVAL "local s = string.rep('x', 64) for i = 1, 21 do s = s .. s end return #s" 0`)
				if got, err := c.reply(patience); err != nil || got != ":134217728\r\n" {
					t.Fatal(got, err)
				}
			},
			"unfinished": func() {
				other := p.client()
				_, _ = fmt.Fprintf(other.conn, "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$%d\r\n", peak+1)
				chunk := bytes.Repeat([]byte("x"), 1<<20)
				for range peak >> 20 {
					if _, err := other.conn.Write(chunk); err != nil {
						t.Fatal(err)
					}
				}
				for end := time.Now().Add(patience); p.resident() < peak && time.Now().Before(end); {
					time.Sleep(time.Millisecond)
				}
				other.conn.Close()
			},
			"keys": func() {
				c.send("DEBUG POPULATE 500000 k 200", "FLUSHALL")
				for range 2 {
					if got, err := c.reply(patience); err != nil || got != "+OK\r\n" {
						t.Fatal(got, err)
					}
				}
			},
		} {
			var most int64
			stop, done := make(chan bool), make(chan bool)
			go func() {
				defer close(done)
				for {
					select {
					case <-stop:
						return
					default:
						most = max(most, p.resident())
						time.Sleep(time.Millisecond)
					}
				}
			}()
			do()
			began := time.Now()
			for {
				has, used := p.resident(), c.memory("used_memory")
				if raceBuild {
					has = c.memory("allocator_active")
				}
				if has <= used+used/2+64<<20 {
					t.Logf("maxmemory %s, %s: %d MB after %v", limit, name, has>>20, time.Since(began).Round(time.Millisecond))
					break
				}
				if time.Since(began) > 10*time.Second {
					t.Errorf("maxmemory %s, %s: the process has %d MB where %d are in use", limit, name, has>>20, used>>20)
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
			close(stop)
			<-done
			if most < 100<<20 {
				t.Errorf("%s: there was no peak: %d MB", name, most>>20)
			}
		}
	}
}

// Under heavy writes the server does not repeatedly return memory that it needs a moment later.
func TestKeeperUnderLoad(t *testing.T) {
	k := newKeeper()
	defer runtime.GC()
	var live, kept [][]byte
	for range 64 {
		live = append(live, make([]byte, 1<<20))
	}
	fill := func() {
		kept = nil
		for range 90 {
			kept = append(kept, bytes.Repeat([]byte("x"), 1<<20))
		}
	}
	fill()
	k.look(64<<20, 0, false) // the first look: much has been allocated
	if !k.next.IsZero() {
		t.Error("what garbage there may be under load was given back")
	}
	k.look(64<<20, 0, false) // nothing was allocated since
	if k.next.IsZero() {
		t.Error("too much was not given back")
	}
	if k.left == 0 || k.leftUsed != 64<<20 {
		t.Errorf("it left %d bytes with %d in use", k.left, k.leftUsed)
	}
	first := k.next
	k.look(64<<20, 0, false)
	if k.next != first {
		t.Error("it was tried again at once")
	}
	runtime.KeepAlive(live)
	runtime.KeepAlive(kept)
}

// An idle server returns the memory that it does not need, but only once: it does not try repeatedly when there is nothing to
// return.
func TestKeeperIdle(t *testing.T) {
	k := newKeeper()
	defer runtime.GC()
	live := make([][]byte, 40)
	for i := range live {
		live[i] = bytes.Repeat([]byte("x"), 1<<20)
	}
	k.look(40<<20, 0, false) // all this was allocated
	if !k.next.IsZero() {
		t.Error("memory was given back under load")
	}
	func() {
		garbage := bytes.Repeat([]byte("x"), 30<<20)
		runtime.KeepAlive(garbage)
	}()
	k.look(40<<20, 0, false)
	k.look(40<<20, 0, false) // nothing was allocated since: it is idle
	if k.left == 0 || k.left > 60<<20 {
		t.Errorf("%d MB of 40 are left", k.left>>20)
	}
	k.next, k.rest, k.soonest = time.Now().Add(time.Hour), time.Hour, time.Time{}
	k.look(20<<20, 0, false) // less is in use, which is worth another try in spite of the pause
	if k.leftUsed != 20<<20 {
		t.Error("it was not tried again where an eighth less is in use")
	}
	k.next, k.rest = time.Time{}, 0
	k.look(20<<20, 0, false)
	if !k.next.IsZero() {
		t.Error("it was tried again where nothing is to be had")
	}
	runtime.KeepAlive(live)
}
