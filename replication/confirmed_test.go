package replication

// Readers get everything that is confirmed, and nothing else.

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/limitkv/limitkv/engine/journal"
)

// disk is a store that confirms what the test says, or everything while it is not on.
type disk struct {
	journal.Store
	on        bool
	confirmed journal.LSN
}

func (d *disk) Holds() bool     { return d.on }
func (d *disk) Refusal() string { return "" }
func (d *disk) Confirmed() journal.LSN {
	if !d.on {
		return journal.MaxLSN
	}
	return d.confirmed
}

func TestConfirmed(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 5))
	log, disk := journal.New(), &disk{}
	log.Keep(disk)
	var end journal.LSN
	s := NewStream(32<<10, func() string { return NoID }, log)
	s.Begin(0)
	woken := 0
	c := s.Follow(func() { woken++ })
	var all []byte
	places := map[journal.LSN]int64{0: 0} // the stream's end at each place of the files
	free, read, waited := int64(0), int64(0), 0
	for i := range 20_000 {
		switch r.IntN(10) {
		case 0: // a sync ends at a random place of what was written
			if disk.on {
				for disk.confirmed < end && r.IntN(4) != 0 {
					for disk.confirmed++; disk.confirmed < end && places[disk.confirmed] == 0; disk.confirmed++ {
					}
				}
				s.Release()
				free = max(free, places[disk.confirmed])
			}
		case 1:
			if i%50 == 0 {
				disk.on, disk.confirmed = !disk.on, end
				if log.Release(); !disk.on || free < int64(len(all)) {
					s.Release()
				}
				free = int64(len(all))
			}
		default:
			b := bytes.Repeat([]byte{byte(i)}, 1+r.IntN(100))
			if r.IntN(5) != 0 { // otherwise it is ReplicasOnly
				end += journal.LSN(len(b) + 3)
				log.Skip(end)
			}
			all = append(all, b...)
			places[end] = int64(len(all))
			if end <= disk.confirmed || !disk.on {
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

// However much waits, few places are recorded, and in the end everything is read.
func TestConfirmedLong(t *testing.T) {
	log, disk := journal.New(), &disk{on: true}
	log.Keep(disk)
	s := NewStream(32<<10, func() string { return NoID }, log)
	s.Begin(0)
	c := s.Follow(func() {})
	const n = 5 * unconfirmedMax
	for range n {
		log.Skip(log.End() + 1)
		s.Append(0, 0, []byte("x"))
	}
	if len(s.unconfirmed.marks) > unconfirmedMax {
		t.Errorf("%d places are noted", len(s.unconfirmed.marks))
	}
	read := 0
	for ; disk.confirmed <= n; disk.confirmed += n / 10 {
		s.Release()
		for b := c.Next(); len(b) > 0; b = c.Next() {
			read += len(b)
			c.Advance(len(b))
		}
		if read > int(disk.confirmed) {
			t.Fatalf("%d bytes were read, %d are confirmed", read, disk.confirmed)
		}
	}
	if read != n || s.unconfirmed.any() {
		t.Errorf("%d bytes were read of %d", read, n)
	}
}
