package replication

// What is not confirmed no reader gets, and all that is it does.

import (
	"bytes"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/limitkv/limitkv/engine/journal"
)

func TestGate(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 5))
	var on atomic.Bool
	var end, confirmed journal.LSN
	upTo := func() journal.LSN {
		if !on.Load() {
			return journal.MaxLSN
		}
		return confirmed
	}
	s := NewGated(32<<10, func() string { return NoID }, Gate{On: &on, Within: func() journal.LSN { return end }, End: func() journal.LSN { return end }, Confirmed: upTo})
	s.Begin(0)
	woken := 0
	c := s.Follow(func() { woken++ })
	var all []byte
	places := map[journal.LSN]int64{0: 0} // the stream's end at each place of the files
	free, read, waited := int64(0), int64(0), 0
	for i := range 20_000 {
		switch r.IntN(10) {
		case 0: // a sync ends somewhere in what was written
			if on.Load() {
				for confirmed < end && r.IntN(4) != 0 {
					for confirmed++; confirmed < end && places[confirmed] == 0; confirmed++ {
					}
				}
				s.Release()
				free = max(free, places[confirmed])
			}
		case 1:
			if i%50 == 0 {
				on.Store(!on.Load())
				if confirmed = end; !on.Load() || free < int64(len(all)) {
					s.Release()
				}
				free = int64(len(all))
			}
		default:
			b := bytes.Repeat([]byte{byte(i)}, 1+r.IntN(100))
			if r.IntN(5) != 0 { // else it is for replicas alone
				end += journal.LSN(len(b) + 3)
			}
			all = append(all, b...)
			places[end] = int64(len(all))
			if end <= confirmed || !on.Load() {
				free = int64(len(all))
			}
			if r.IntN(2) == 0 {
				s.Append(0, 0, b)
			} else {
				s.Feed(b)
			}
		}
		if r.IntN(3) == 0 {
			continue
		}
		for {
			b := c.Next()
			if len(b) == 0 {
				break
			}
			if !bytes.Equal(b, all[read:read+int64(len(b))]) {
				t.Fatalf("other bytes at %d", read)
			}
			read += int64(len(b))
			c.Advance(len(b))
		}
		if read != free {
			t.Fatalf("step %d: %d bytes were read, %d may be, there are %d", i, read, free, len(all))
		}
		if read < int64(len(all)) {
			waited++
		}
	}
	if waited < 100 || woken < 100 || read < 100_000 {
		t.Errorf("%d times something waited, the reader was woken %d times and read %d bytes", waited, woken, read)
	}
}

// However much waits, the places that are noted are few, and in the end all is read.
func TestGateLong(t *testing.T) {
	var on atomic.Bool
	on.Store(true)
	var end, confirmed journal.LSN
	s := NewGated(32<<10, func() string { return NoID }, Gate{On: &on, Within: func() journal.LSN { return end }, Confirmed: func() journal.LSN { return confirmed }})
	s.Begin(0)
	c := s.Follow(func() {})
	const n = 5 * heldMax
	for range n {
		end++
		s.Append(0, 0, []byte("x"))
	}
	if len(s.held.marks) > heldMax {
		t.Errorf("%d places are noted", len(s.held.marks))
	}
	read := 0
	for confirmed = 0; confirmed <= n; confirmed += n / 10 {
		s.Release()
		for b := c.Next(); len(b) > 0; b = c.Next() {
			read += len(b)
			c.Advance(len(b))
		}
		if read > int(confirmed) {
			t.Fatalf("%d bytes were read, %d are confirmed", read, confirmed)
		}
	}
	if read != n || s.held.any() {
		t.Errorf("%d bytes were read of %d", read, n)
	}
}
