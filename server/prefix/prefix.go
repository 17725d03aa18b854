// Package prefix, internal to the server, counts calls of limiters and locks and deliveries of queues: for all keys together,
// and by the key prefixes in the parameter metrics-prefixes. So metrics can distinguish customers, services or environments
// without a series for each key.
package prefix

import (
	"slices"
	"sort"
	"strings"
	"sync/atomic"

	"github.com/limitkv/limitkv/server/histogram"
)

// Max is the largest number of prefixes, since each one has a dozen series.
const Max = 1000

// stripes is the number of copies of each counter, so that sessions on different cores do not share cache lines.
const stripes = 16

// Calls are the calls of limiters, or of locks.
type Calls [stripes]struct {
	granted, refused atomic.Int64
	_                [48]byte
}

// Count counts a call by a session.
func (c *Calls) Count(session int64, granted bool) {
	if s := &c[uint64(session)%stripes]; granted {
		s.granted.Add(1)
	} else {
		s.refused.Add(1)
	}
}

// Sum returns how many calls were granted and refused.
func (c *Calls) Sum() (granted, refused int64) {
	for i := range c {
		granted += c[i].granted.Load()
		refused += c[i].refused.Load()
	}
	return granted, refused
}

// Lateness is how long after their due times entries were delivered.
type Lateness struct {
	Times      histogram.Histogram
	max, total atomic.Int64
}

// Note counts a delivery, micros after its due time.
func (l *Lateness) Note(micros int64) {
	l.Times.Add(micros, 1)
	l.total.Add(max(micros, 0))
	for {
		most := l.max.Load()
		if micros <= most || l.max.CompareAndSwap(most, micros) {
			return
		}
	}
}

// Max is the longest delay in microseconds, Total the sum of all.
func (l *Lateness) Max() int64   { return l.max.Load() }
func (l *Lateness) Total() int64 { return l.total.Load() }

// Counts holds the counters of a set of keys.
type Counts struct {
	Limiters, Locks Calls
	Late            Lateness
}

// Prefix is a prefix of keys, with its counters.
type Prefix struct {
	Name string
	Counts
}

// Set holds the prefixes, and the counters of all keys, including those without a prefix. The zero value has no prefix.
type Set struct {
	All  Counts
	list atomic.Pointer[list]
}

// list holds the prefixes in order. shorter is the index of the longest other prefix that a prefix begins with, -1 if there is
// none.
type list struct {
	prefixes []*Prefix
	shorter  []int
}

// Configure sets the prefixes, at most Max. Those that existed before keep their counters.
func (s *Set) Configure(names []string) {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	if len(names) == 0 {
		s.list.Store(nil)
		return
	}
	l := new(list)
	for i, name := range names {
		p := s.Of([]byte(name))
		if p == nil || p.Name != name {
			p = &Prefix{Name: name}
		}
		at := i - 1
		for at >= 0 && !strings.HasPrefix(name, names[at]) {
			at = l.shorter[at]
		}
		l.prefixes, l.shorter = append(l.prefixes, p), append(l.shorter, at)
	}
	s.list.Store(l)
}

// Each calls fn for each prefix, in order.
func (s *Set) Each(fn func(p *Prefix)) {
	if l := s.list.Load(); l != nil {
		for _, p := range l.prefixes {
			fn(p)
		}
	}
}

// Of returns the longest prefix of a key, nil if there is none.
func (s *Set) Of(key []byte) *Prefix {
	l := s.list.Load()
	if l == nil {
		return nil
	}
	// Any prefix that sorts between a prefix of the key and the key begins with that prefix of the key.
	at := sort.Search(len(l.prefixes), func(i int) bool { return l.prefixes[i].Name > string(key) }) - 1
	for at >= 0 && !begins(key, l.prefixes[at].Name) {
		at = l.shorter[at]
	}
	if at < 0 {
		return nil
	}
	return l.prefixes[at]
}

func begins(key []byte, name string) bool {
	return len(key) >= len(name) && string(key[:len(name)]) == name
}

// Limiter counts a call of a limiter.
func (s *Set) Limiter(key []byte, session int64, granted bool) {
	s.All.Limiters.Count(session, granted)
	if p := s.Of(key); p != nil {
		p.Limiters.Count(session, granted)
	}
}

// Lock counts a call of a lock.
func (s *Set) Lock(key []byte, session int64, granted bool) {
	s.All.Locks.Count(session, granted)
	if p := s.Of(key); p != nil {
		p.Locks.Count(session, granted)
	}
}

// Delivered counts an entry of a queue that was delivered micros after its due time.
func (s *Set) Delivered(key []byte, micros int64) {
	s.All.Late.Note(micros)
	if p := s.Of(key); p != nil {
		p.Late.Note(micros)
	}
}
