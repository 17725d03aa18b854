package delayqueue

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// naive is a queue as a plain list, written from the meaning of the commands.
type naive struct {
	list     []*naiveEntry
	order    int
	settings Settings
	totals   Totals
	known    map[string]known // the ids that are remembered
	turns    map[string]int   // of the groups, the last one under " "
	plans    map[string]*naivePlan
	behind   map[string]*naiveEntry // new versions of what is leased
}

type known struct {
	until int64
	order int
}

type naiveEntry struct {
	id, payload   string
	due, until    int64
	order         int
	attempt, base int64
	state         State // Ready stands for waiting here
	Extra
	reason string
}

// naivePlan is a schedule.
type naivePlan struct {
	id, payload              string
	every, base, after, next int64
	Extra
}

func (p *naivePlan) occurrence() string { return fmt.Sprintf("%s@%d", p.id, p.next/1000) }

// plan is the schedule whose present occurrence an entry is.
func (m *naive) plan(e *naiveEntry) *naivePlan {
	for _, p := range m.plans {
		if p.occurrence() == e.id {
			return p
		}
	}
	return nil
}

// spawn adds the next occurrence: the last one that was missed or, if none was, the next one.
func (m *naive) spawn(p *naivePlan, now int64) {
	for {
		for p.next = p.base + p.every; p.next <= p.after || p.next+p.every <= now; {
			p.next += p.every
		}
		if _, known := m.known[p.occurrence()]; !known && m.get(p.occurrence()) == nil {
			break // neither there nor remembered
		}
		p.after = max(p.after, p.next)
	}
	e := &naiveEntry{id: p.occurrence(), payload: p.payload, Extra: p.Extra}
	m.list = append(m.list, e)
	m.totals.Added++
	m.wait(e, p.next)
}

// pass records that an occurrence, and all before it, are past, when it is delivered or given up. That is final: what
// happens to the entry afterwards does not matter to a schedule that replaces its own.
func (m *naive) pass(e *naiveEntry) *naivePlan {
	p := m.plan(e)
	if p != nil && e.state == Ready && e.attempt == 0 {
		p.after = max(p.after, p.next)
	}
	return p
}

// leave is an entry that goes, for whatever reason.
func (m *naive) leave(e *naiveEntry, now int64) {
	if m.succeed(e) {
		return
	}
	m.drop(e)
	if p := m.pass(e); p != nil {
		m.spawn(p, now)
	}
}

// unschedule ends a schedule. It returns the time of the occurrence that is left.
func (m *naive) unschedule(id string) (next int64, ok bool) {
	p := m.plans[id]
	if p == nil {
		return 0, false
	}
	delete(m.plans, id)
	e := m.get(p.occurrence())
	if e.state == Ready {
		m.drop(e)
		return 0, true
	}
	return p.next, true
}

// succeed puts the new version of an entry in its place.
func (m *naive) succeed(e *naiveEntry) bool {
	next := m.behind[e.id]
	if next == nil {
		return false
	}
	delete(m.behind, e.id)
	e.payload, e.Extra, e.reason, e.base = next.payload, next.Extra, "", e.attempt
	m.wait(e, next.due)
	return true
}

// debounced is when what replaces an entry that waits, of which was is, falls due: MAXWAIT counts from the first one.
func debounced(was, x *Extra, now, due int64) int64 {
	first := now
	if was.MaxWaitMicros > 0 {
		first = min(was.FirstMicros, now)
		if x.MaxWaitMicros == 0 {
			x.MaxWaitMicros = was.MaxWaitMicros
		}
	}
	if x.MaxWaitMicros > 0 {
		x.FirstMicros = first
		due = min(due, first+x.MaxWaitMicros)
	}
	return due
}

// postpone is add for a leased entry.
func (m *naive) postpone(now int64, e *naiveEntry, payload string, due int64, x Extra) {
	x.Occurrence = m.plan(e) != nil
	var was Extra
	if next := m.behind[e.id]; next != nil {
		was = next.Extra
	}
	due = debounced(&was, &x, now, due)
	m.behind[e.id] = &naiveEntry{payload: payload, due: due, Extra: x}
}

// replan changes a schedule with the same times.
func (m *naive) replan(id, payload string, every int64, x Extra) bool {
	p := m.plans[id]
	if p == nil || p.every != every {
		return false
	}
	x.Occurrence = true
	p.payload, p.Extra = payload, x
	if e := m.get(p.occurrence()); e.state == Ready {
		e.payload, e.Extra = payload, x
		m.wait(e, e.due)
	}
	return true
}

func (m *naive) schedule(now int64, id, payload string, every int64, x Extra, mode Mode) bool {
	old, e := m.plans[id], m.get(id)
	if there := old != nil || e != nil; there && mode == OnlyNew || !there && mode == OnlyOld {
		return false
	}
	if delete(m.behind, id); e != nil && e.state != Leased {
		m.drop(e)
	}
	x.Occurrence = true
	p := &naivePlan{id: id, payload: payload, every: every, base: (now + 999) / 1000 * 1000, after: now, Extra: x}
	if p.next, _ = m.unschedule(id); p.next == 0 {
		m.spawn(p, now)
	}
	m.plans[id] = p
	return true
}

// late is when an entry that nobody takes expires, 0 for never.
func (e *naiveEntry) late() int64 {
	if e.state != Ready || e.ExpireMicros == 0 {
		return 0
	}
	return e.due + e.ExpireMicros
}

// done is an entry that leaves because its work is done. Its id may be remembered: so it is not that of the next occurrence.
func (m *naive) done(e *naiveEntry, now int64) {
	if m.behind[e.id] == nil && e.UniqueMicros > 0 {
		m.order++
		m.known[e.id] = known{now + e.UniqueMicros, m.order}
	}
	m.leave(e, now)
}

func (m *naive) get(id string) *naiveEntry {
	for _, e := range m.list {
		if e.id == id {
			return e
		}
	}
	return nil
}

func (m *naive) drop(e *naiveEntry) {
	m.list = slices.DeleteFunc(m.list, func(o *naiveEntry) bool { return o == e })
}

// in lists the entries of a state in order of a time.
func (m *naive) in(state State, at func(*naiveEntry) int64) (found []*naiveEntry) {
	for _, e := range m.list {
		if e.state == state {
			found = append(found, e)
		}
	}
	slices.SortFunc(found, func(a, b *naiveEntry) int {
		return cmp.Or(cmp.Compare(at(a), at(b)), cmp.Compare(a.order, b.order))
	})
	return found
}

func dueOf(e *naiveEntry) int64   { return e.due }
func untilOf(e *naiveEntry) int64 { return e.until }

func (m *naive) wait(e *naiveEntry, due int64) {
	m.order++
	e.state, e.due, e.order = Ready, due, m.order
}

func (m *naive) add(now int64, id, payload string, due int64, x Extra, mode Mode) bool {
	e := m.get(id)
	if e != nil && e.state == Leased && (x.UniqueMicros > 0 || e.UniqueMicros > 0) {
		return false
	}
	if k, ok := m.known[id]; ok {
		if k.until > now {
			return false
		}
		delete(m.known, id)
	}
	if m.plans[id] != nil {
		if mode == OnlyNew {
			return false
		}
		m.unschedule(id)
		mode = Put
	}
	if e == nil && mode == OnlyOld || e != nil && mode == OnlyNew {
		return false
	}
	if e != nil && e.state == Leased {
		m.postpone(now, e, payload, due, x)
		return true
	}
	delete(m.behind, id)
	if e != nil {
		x.Occurrence = m.plan(e) != nil
	}
	if e == nil {
		e = &naiveEntry{id: id}
		m.list = append(m.list, e)
		m.totals.Added++
	}
	var was Extra
	if e.state == Ready {
		was = e.Extra
	}
	due = debounced(&was, &x, now, due)
	e.Extra, e.reason = x, ""
	e.payload, e.base = payload, e.attempt
	m.wait(e, due)
	return true
}

// regroup gives new groups a turn, and forgets those that no longer exist. Entries without a group are a group whose
// turn is first when the first other group begins.
func (m *naive) regroup() {
	here, ranks := map[string]bool{"": true, " ": true}, false
	for _, e := range m.list {
		if g := string(e.Group); g != "" && (e.state == Ready || e.state == Leased) {
			if here[g] = true; m.turns[g] == 0 {
				m.turns[" "]++
				m.turns[g] = m.turns[" "]
			}
		}
		ranks = ranks || e.state == Ready && e.Prio > 0
	}
	for g := range m.turns {
		if !here[g] || len(here) == 2 && !ranks {
			delete(m.turns, g)
		}
	}
}

// choose is the entry that is delivered next, nil for none.
func (m *naive) choose(now int64) (best *naiveEntry) {
	out := map[string]int64{}
	for _, e := range m.list {
		if e.state == Leased {
			out[string(e.Group)]++
		}
	}
	for _, e := range m.in(Ready, dueOf) {
		if conc := m.settings.GroupConc; e.due > now || len(e.Group) > 0 && conc > 0 && out[string(e.Group)] >= conc {
			continue
		}
		if best == nil || cmp.Or(cmp.Compare(m.turns[string(e.Group)], m.turns[string(best.Group)]), cmp.Compare(best.Prio, e.Prio)) < 0 {
			best = e
		}
	}
	return best
}

func (m *naive) pop(now, lease int64, count int) (out []Entry) {
	for len(out) < count && !m.settings.Paused {
		e := m.choose(now)
		if e == nil {
			break
		}
		m.turns[" "]++
		m.turns[string(e.Group)] = m.turns[" "]
		if p := m.pass(e); p != nil {
			p.after = max(p.after, now)
		}
		e.attempt++
		if lease > 0 {
			e.state, e.until = Leased, now+lease
		} else {
			m.done(e, now)
		}
		m.regroup()
		out = append(out, e.shown(now))
		m.totals.Delivered++
	}
	return out
}

func (e *naiveEntry) shown(now int64) Entry {
	s := Entry{ID: []byte(e.id), Payload: []byte(e.payload), DueMicros: e.due, Attempt: e.attempt, State: e.state}
	if e.state == Leased {
		s.UntilMicros = e.until
	}
	if e.state == Ready && e.due > now {
		s.State = Delayed
	}
	x := e.Extra
	x.Reason = []byte(e.reason)
	s.extra = x.Append(nil)
	return s
}

func (m *naive) held(id string, attempt, now int64) *naiveEntry {
	e := m.get(id)
	if e == nil || e.state != Leased || e.until <= now || attempt != 0 && e.attempt != attempt {
		return nil
	}
	return e
}

func (m *naive) fails(e *naiveEntry) bool {
	return m.settings.Tries > 0 && m.settings.Dead != "" && e.attempt-e.base >= m.settings.Tries
}

func (m *naive) nack(e *naiveEntry, now, delay int64, dead bool, reason string) {
	m.totals.Nacked++
	if reason != "" {
		e.reason = reason
	}
	if dead || m.fails(e) {
		e.state, e.until = Dying, now
		return
	}
	if m.succeed(e) {
		return
	}
	if delay == ByBackoff {
		delay = m.settings.BackoffMicros
		for i := e.attempt - e.base; i > 1 && delay < m.settings.BackoffMaxMicros; i-- {
			delay *= 2
		}
		delay = min(delay, m.settings.BackoffMaxMicros)
	}
	m.wait(e, now+delay)
}

// setBack sets the clock back by a length of time. now is what it shows then.
func (m *naive) setBack(now, by int64) {
	for _, e := range m.in(Ready, dueOf) {
		if e.due <= now+by || e.attempt > e.base {
			m.wait(e, e.due-by)
		}
	}
	for _, e := range m.in(Leased, untilOf) {
		e.until -= by
	}
	ids := slices.SortedFunc(maps.Keys(m.known), func(a, b string) int {
		return cmp.Or(cmp.Compare(m.known[a].until, m.known[b].until), cmp.Compare(m.known[a].order, m.known[b].order))
	})
	for _, id := range ids {
		m.order++
		m.known[id] = known{m.known[id].until - by, m.order}
	}
}

// next is what happens next by itself: of the events at the same time, leases end first, then entries expire, then ids
// are forgotten.
func (m *naive) next() (at int64, happens func(now int64)) {
	sooner := func(t int64) bool { return happens == nil || t < at }
	for _, e := range m.in(Leased, untilOf) {
		if sooner(e.until) {
			at, happens = e.until, func(int64) {
				m.totals.Expired++
				if m.fails(e) {
					e.state, e.reason = Dying, ReasonLease
				} else if !m.succeed(e) {
					m.wait(e, e.until)
				}
			}
		}
	}
	var late []*naiveEntry
	for _, e := range m.list {
		if e.late() != 0 {
			late = append(late, e)
		}
	}
	slices.SortFunc(late, func(a, b *naiveEntry) int {
		return cmp.Or(cmp.Compare(a.late(), b.late()), cmp.Compare(a.order, b.order))
	})
	for _, e := range late {
		if sooner(e.late()) {
			at, happens = e.late(), func(now int64) {
				m.totals.Overdue++
				if m.settings.Dead == "" {
					m.leave(e, now)
				} else {
					m.pass(e)
					e.until, e.state, e.reason = e.late(), Dying, ReasonExpired
				}
			}
		}
	}
	last := 0
	for id, k := range m.known {
		if sooner(k.until) || last > 0 && k.until == at && k.order < last {
			at, last, happens = k.until, k.order, func(int64) { delete(m.known, id) }
		}
	}
	return at, happens
}

func (m *naive) settle(now int64, count int) int {
	n := 0
	for at, happens := m.next(); n < count && happens != nil && at <= now; at, happens = m.next() {
		happens(now)
		m.regroup() // one after the other: a group that ends in between begins again
		n++
	}
	return n
}

func (m *naive) nextDue() int64 {
	if at, happens := m.next(); happens != nil {
		return (at + 999) / 1000
	}
	return 0
}

func (m *naive) peek(state State, now int64, count int) (out []Entry) {
	show := func(list []*naiveEntry, want func(*naiveEntry) bool) {
		for _, e := range list {
			if len(out) < count && want(e) {
				out = append(out, e.shown(now))
			}
		}
	}
	all := func(*naiveEntry) bool { return true }
	switch state {
	case Ready:
		show(m.in(Ready, dueOf), func(e *naiveEntry) bool { return e.due <= now })
	case Delayed:
		show(m.in(Ready, dueOf), func(e *naiveEntry) bool { return e.due > now })
	case Leased:
		show(m.in(Leased, untilOf), all)
	case Dying:
		show(m.in(Dying, untilOf), all)
	default:
		show(m.in(Ready, dueOf), all)
		show(m.in(Leased, untilOf), all)
		show(m.in(Dying, untilOf), all)
	}
	return out
}

func sameEntries(got, want []Entry) error {
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) {
			return fmt.Errorf("%d entries, want %d", len(got), len(want))
		}
		g, w := got[i], want[i]
		if string(g.ID) != string(w.ID) || string(g.Payload) != string(w.Payload) || g.DueMicros != w.DueMicros ||
			g.Attempt != w.Attempt || g.State != w.State || g.UntilMicros != w.UntilMicros || string(g.extra) != string(w.extra) {
			return fmt.Errorf("entry %d is %+v %+v, want %+v %+v", i, g, g.Extra(), w, w.Extra())
		}
	}
	return nil
}
