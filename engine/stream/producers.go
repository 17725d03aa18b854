package stream

import (
	"slices"
	"strings"
	"unsafe"
)

// The limits of what a stream remembers of its producers, and what a new stream has.
const (
	DedupSecondsMax     = 86400
	DedupEntriesMax     = 10000
	dedupSecondsDefault = 100
	dedupEntriesDefault = 100
)

// Dedup is what a stream remembers of entries that producers added with an ID of their own, so that the same ID adds
// nothing for some time.
type Dedup struct {
	// Seconds is for how long an ID is remembered, Entries how many there may be of a producer.
	Seconds, Entries uint64
	// Added and Duplicates count the IDs that were new, and those that were not, since the stream was made.
	Added, Duplicates uint64

	producers []*Producer // by name
}

// Producer is one who adds entries, with the IDs that it used, the oldest first.
type Producer struct {
	Name string
	IDs  []Produced
}

// Produced is a producer's ID, and the entry that it added.
type Produced struct {
	ID    string
	Entry ID
}

// Dedup returns what the stream remembers of its producers.
func (s *Stream) Dedup() Dedup {
	if s.dedup == nil {
		return Dedup{Seconds: dedupSecondsDefault, Entries: dedupEntriesDefault}
	}
	return *s.dedup
}

// Plain reports whether the stream has nothing that Redis 8.0 does not know.
func (s *Stream) Plain() bool { return s.dedup == nil }

// Producers are those that the stream remembers, by name.
func (d *Dedup) Producers() []*Producer { return d.producers }

// RestoreDedup sets what the stream remembers. It fails if a limit is out of range or a producer is there twice.
func (s *Stream) RestoreDedup(d Dedup, producers []*Producer) (ok bool) {
	if d.Seconds < 1 || d.Seconds > DedupSecondsMax || d.Entries < 1 || d.Entries > DedupEntriesMax {
		return false
	}
	slices.SortFunc(producers, func(a, b *Producer) int { return strings.Compare(a.Name, b.Name) })
	for i, p := range producers {
		if i > 0 && producers[i-1].Name == p.Name {
			return false
		}
	}
	d.producers = producers
	if len(producers) > 0 || d.Added > 0 || d.Seconds != dedupSecondsDefault || d.Entries != dedupEntriesDefault {
		s.dedup = &d
	}
	return true
}

// image returns a copy that does not change with the original.
func (d *Dedup) image() *Dedup {
	if d == nil {
		return nil
	}
	c := *d
	c.producers = make([]*Producer, len(d.producers))
	for i, p := range d.producers {
		own := *p
		own.IDs = slices.Clone(p.IDs)
		c.producers[i] = &own
	}
	return &c
}

// memoryUsage is about how many bytes the producers take.
func (d *Dedup) memoryUsage() int {
	if d == nil {
		return 0
	}
	n := int(unsafe.Sizeof(*d))
	for _, p := range d.producers {
		n += int(unsafe.Sizeof(*p)) + len(p.Name) + cap(p.IDs)*int(unsafe.Sizeof(Produced{}))
		for _, id := range p.IDs {
			n += len(id.ID)
		}
	}
	return n
}
