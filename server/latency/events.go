package latency

// The latency monitor: the worst latency of each second, by kind of event.

import (
	"slices"
	"strings"
	"sync"
)

// samplesMax is the largest number of samples of an event.
const samplesMax = 160

// Events holds all kinds of events.
type Events struct {
	mu     sync.Mutex
	events map[string]*Event
}

// Event is one kind, with the worst latency of each second.
type Event struct {
	Name    string
	Samples []Sample // the latest last
	Worst   int64
}

// Sample is the worst latency in a second.
type Sample struct{ AtSeconds, Millis int64 }

// add records a latency. For each second the worst one is stored.
func (m *Events) add(event string, atSeconds, millis int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.events == nil {
		m.events = make(map[string]*Event)
	}
	e := m.events[event]
	if e == nil {
		e = &Event{Name: event}
		m.events[event] = e
	}
	e.Worst = max(e.Worst, millis)
	if n := len(e.Samples); n > 0 && e.Samples[n-1].AtSeconds == atSeconds {
		e.Samples[n-1].Millis = max(e.Samples[n-1].Millis, millis)
		return
	}
	if len(e.Samples) == samplesMax {
		e.Samples = append(e.Samples[:0], e.Samples[1:]...)
	}
	e.Samples = append(e.Samples, Sample{atSeconds, millis})
}

// All returns the events that have samples, by name.
func (m *Events) All() (list []Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.events {
		list = append(list, e.copy())
	}
	slices.SortFunc(list, func(a, b Event) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Named returns the event with this name. ok is false if it has no samples.
func (m *Events) Named(name string) (e Event, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.events[name]; e != nil {
		return e.copy(), true
	}
	return e, false
}

func (e *Event) copy() Event { return Event{e.Name, slices.Clone(e.Samples), e.Worst} }

// Reset removes events, all if none is named, and returns how many it removed.
func (m *Events) Reset(names [][]byte) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	was := len(m.events)
	if len(names) == 0 {
		clear(m.events)
	}
	for _, name := range names {
		delete(m.events, string(name))
	}
	return was - len(m.events)
}
