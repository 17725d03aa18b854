package persistence_test

// Syncs that run concurrently with event loops, on a disk that a test stops or fails.

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/limitkv/limitkv/engine/vfs"
)

// Beside runs each sync of the disk on a goroutine.
func (d *disk) Beside() vfs.Beside {
	if d.waited {
		return nil
	}
	event, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		panic(err)
	}
	return &beside{d: d, event: event, ends: make(chan error, 1)}
}

type beside struct {
	d     *disk
	event int
	ends  chan error
}

func (b *beside) Begin(f vfs.File) bool {
	b.d.beside.Add(1)
	go func() {
		b.ends <- f.Sync()
		_, _ = unix.Write(b.event, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	}()
	return true
}

func (b *beside) Ended() (bool, error) {
	select {
	case err := <-b.ends:
		return true, err
	default:
		return false, nil
	}
}

func (b *beside) Wait() error     { return <-b.ends }
func (b *beside) Descriptor() int { return b.event }
func (b *beside) Close() error    { return unix.Close(b.event) }

// TestWritersOfAllKinds: with always, every write is synced and acknowledged in time, whoever writes: loops, connections on
// goroutines, timers, scripts that leave their loop. Nothing waits for another event.
func TestWritersOfAllKinds(t *testing.T) {
	for name, waited := range map[string]bool{"beside": false, "waited for": true} {
		t.Run(name, func(t *testing.T) {
			d := newDisk()
			d.waited = waited
			s := start(t, d, "always")
			prompt := func(what string, do func()) {
				t.Helper()
				began := time.Now()
				if do(); time.Since(began) > 5*time.Second {
					t.Errorf("%s took %v", what, time.Since(began))
				}
			}
			c, popper := s.Client(), s.Client()
			for i := range 8 {
				prompt("a write", func() { c.Want("1", "INCR", fmt.Sprint("k", i)) })
				// A timer delivers due entries while no loop is in a round.
				popper.Send("DQ.POP", "q", "BLOCK", 0)
				s.Blocked(1)
				c.Do("DQ.ADD", "q", "DELAY", 30, "x")
				prompt("what a timer delivers", func() { s.Advance(40); popper.Read() })
				prompt("a long script", func() {
					c.Want("OK", "EVAL", "for i = 1, 2e5 do end return redis.call('SET', KEYS[1], 1)", 1, "script")
				})
			}
			// Many at once, each waiting for its reply.
			var all sync.WaitGroup
			prompt("many writers", func() {
				for n := range 8 {
					w := s.Client()
					all.Add(1)
					go func() {
						defer all.Done()
						for i := range 50 {
							w.Want("OK", "SET", fmt.Sprint("w", n), i)
						}
					}()
				}
				all.Wait()
			})
			if n := d.beside.Load(); waited != (n == 0) {
				t.Errorf("%d syncs ran beside", n)
			}
			// The policy changes while a sync runs.
			d.stop()
			c.Send("SET", "last", 1)
			other := s.Client()
			for end := time.Now().Add(60 * time.Second); d.asking.Load() == 0 && time.Now().Before(end); {
				time.Sleep(time.Millisecond)
			}
			other.Want("OK", "CONFIG", "SET", "appendfsync", "everysec")
			if got := c.Read(); got != "OK" { // everysec does not wait for the sync
				t.Errorf("got %s", got)
			}
			d.let()
			c.Want("OK", "SET", "more", 1)
		})
	}
}
