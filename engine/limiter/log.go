// This file is LOG, the exact sliding window: a packed list of what was taken when, oldest first. What was taken at t
// counts until t+period, but not at t+period itself, as in the sorted-set scripts that this replaces.
//
// State: the time and cost of the newest grant, the time of the oldest, the sum in use, and an area of varints with the
// grants before the newest. Each of them has the gap to the next grant and, unless it is 1, its cost. Grants at the
// same time are merged. The newest stays outside the area because later costs of the same microsecond are added to it.
// Grants leave at the front of the area, which only moves its head; when the area's end is reached, the bytes move to
// its front. Ten grants seconds apart take 34 + 36 bytes.
//
// logAreaMax bounds the area to some 13,000 to 30,000 grants at different times. A log that would outgrow it is
// thinned: the grants of each stretch of period/logThin become one, at the time of the latest of them. So the log never
// allows more than its rule, and a cost comes back at most period/logThin too late.

package limiter

import (
	"encoding/binary"
	"fmt"
)

// Log is the exact sliding window: each cost comes back one period after it
// was taken.
const Log Algorithm = 1

func init() {
	register(Log, &algorithm{
		word: "LOG", grammar: countPerPeriod, version: 1,
		size: Rule.logLength,
		wait: Rule.logWait, take: Rule.logTake, room: Rule.logRoom, bears: Rule.usedBears, give: Rule.logGive,
		during: Rule.logDuring, settle: Rule.logSettle, over: Rule.overWhenFull,
		fullAt: Rule.logFullAt, carry: Rule.logCarry, back: Rule.logBack, check: Rule.logCheck,
	})
}

const (
	logNewest     = 0  // int64: when the newest was taken
	logNewestCost = 8  // uint48: its cost; 0 if the log has been empty since then
	logOldest     = 14 // int64: when the oldest was taken
	logUsed       = 22 // uint48: sum of all
	logSize       = 28 // uint16: bytes of area
	logHead       = 30 // uint16: where the oldest begins in the area
	logTail       = 32 // uint16: where the last grant before the newest ends
	logFixed      = 34

	logAreaMax = 65_535
	// logThin is how many grants of one period thinning leaves, about. They take a third of the area, so thinning is
	// rare.
	logThin = 3_600
	// logSpareMin is the size from which on an area that is mostly empty shrinks.
	logSpareMin = 256
	// logEntryMax is the longest entry: a gap with its flag (57 bits) and a cost.
	logEntryMax = 9 + 7
)

func putUint48(p []byte, v uint64) {
	binary.LittleEndian.PutUint32(p, uint32(v))
	binary.LittleEndian.PutUint16(p[4:], uint16(v>>32))
}

func uint48(p []byte) uint64 {
	return uint64(binary.LittleEndian.Uint32(p)) | uint64(binary.LittleEndian.Uint16(p[4:]))<<32
}

// packedLog is a LOG's state, decoded; area aliases the state's bytes.
type packedLog struct {
	newest     int64
	newestCost int64
	oldest     int64
	used       int64
	head, tail int
	area       []byte
}

func loadLog(state []byte) packedLog {
	size := int(binary.LittleEndian.Uint16(state[logSize:]))
	return packedLog{
		newest:     int64(binary.LittleEndian.Uint64(state[logNewest:])),
		newestCost: int64(uint48(state[logNewestCost:])),
		oldest:     int64(binary.LittleEndian.Uint64(state[logOldest:])),
		used:       int64(uint48(state[logUsed:])),
		head:       int(binary.LittleEndian.Uint16(state[logHead:])),
		tail:       int(binary.LittleEndian.Uint16(state[logTail:])),
		area:       state[logFixed : logFixed+size],
	}
}

// store writes all but the area, which is written in place, and returns the state.
func (l *packedLog) store(state []byte) []byte {
	binary.LittleEndian.PutUint64(state[logNewest:], uint64(l.newest))
	putUint48(state[logNewestCost:], uint64(l.newestCost))
	binary.LittleEndian.PutUint64(state[logOldest:], uint64(l.oldest))
	putUint48(state[logUsed:], uint64(l.used))
	binary.LittleEndian.PutUint16(state[logSize:], uint16(len(l.area)))
	binary.LittleEndian.PutUint16(state[logHead:], uint16(l.head))
	binary.LittleEndian.PutUint16(state[logTail:], uint16(l.tail))
	return state
}

func (r Rule) logLength(p []byte) int {
	if p == nil {
		return logFixed
	}
	return logFixed + int(binary.LittleEndian.Uint16(p[logSize:]))
}

// entry reads the grant at an offset: its cost, the gap to the next one, and where that begins.
func (l *packedLog) entry(at int) (cost, gap int64, next int) {
	v, at := uvarint(l.area, at)
	if v&1 == 0 {
		return 1, int64(v >> 1), at
	}
	c, at := uvarint(l.area, at)
	return int64(c), int64(v >> 1), at
}

func appendLogEntry(dst []byte, cost, gap int64) []byte {
	v := uint64(gap) << 1
	if cost == 1 {
		return binary.AppendUvarint(dst, v)
	}
	dst = binary.AppendUvarint(dst, v|1)
	return binary.AppendUvarint(dst, uint64(cost))
}

// expire drops what was taken at limit or before.
func (l *packedLog) expire(limit int64) {
	for l.head < l.tail && l.oldest <= limit {
		cost, gap, next := l.entry(l.head)
		l.used -= cost
		l.oldest += gap
		l.head = next
	}
	if l.head == l.tail {
		l.head, l.tail = 0, 0
		if l.newest <= limit {
			l.used, l.newestCost = 0, 0
		}
	}
}

// logLoad is the log as it is at now. If the clock was set back, the time of the newest grant is used until the clock
// has caught up.
func (r Rule) logLoad(state []byte, now int64) (packedLog, int64) {
	l := loadLog(state)
	now = max(now, l.newest)
	l.expire(now - r.PeriodMicros)
	return l, now
}

func (r Rule) logWait(state []byte, now, cost int64) int64 {
	l, _ := r.logLoad(state, now)
	over := l.used + cost - r.Count
	if over <= 0 {
		return 0
	}
	when := l.oldest
	for l.head < l.tail {
		c, gap, next := l.entry(l.head)
		if over -= c; over <= 0 {
			break
		}
		when += gap
		l.head = next
	}
	if over > 0 {
		when = l.newest
	}
	return when + r.PeriodMicros - now
}

func (r Rule) logRoom(state []byte, now int64) (available, reset int64) {
	l, _ := r.logLoad(state, now)
	if l.used == 0 {
		return r.Count, 0
	}
	return r.Count - l.used, l.newest + r.PeriodMicros - now
}

// logTake adds a cost. It returns the state: the same slice, or new memory if the size of the area changed.
func (r Rule) logTake(state []byte, now, cost int64) []byte {
	l, now := r.logLoad(state, now)
	switch {
	case l.newestCost == 0:
		l.oldest, l.newest = now, now
	case now > l.newest:
		state = l.push(state, now, r.PeriodMicros)
	}
	l.newestCost += cost
	l.used += cost
	return l.store(state)
}

// push moves the newest grant into the area, to make room for one at now.
func (l *packedLog) push(state []byte, now, period int64) []byte {
	var buf [logEntryMax]byte
	if l.head == l.tail {
		l.oldest = l.newest
	}
	entry := appendLogEntry(buf[:0], l.newestCost, now-l.newest)
	if l.tail+len(entry) > len(l.area) && l.head > len(l.area)/4 {
		l.pack()
	}
	if l.tail+len(entry) > logAreaMax {
		l.pack()
		for resolution := period/logThin + 1; l.tail+len(entry) > logAreaMax; resolution *= 2 {
			l.thin(resolution)
		}
	}
	need := l.tail - l.head + len(entry)
	switch {
	case l.tail+len(entry) > len(l.area):
		// Half as much again, so that a growing log is seldom moved.
		state = l.resize(min(need+(need+len(entry))/2, logAreaMax))
	case len(l.area) >= logSpareMin && need < len(l.area)/8:
		state = l.resize(2 * need)
	}
	l.tail += copy(l.area[l.tail:], entry)
	l.newest, l.newestCost = now, 0
	return state
}

// resize gives the log a new state with an area of size bytes.
func (l *packedLog) resize(size int) []byte {
	state := make([]byte, logFixed+size)
	l.tail = copy(state[logFixed:], l.area[l.head:l.tail])
	l.head = 0
	l.area = state[logFixed:]
	return state
}

// pack moves the entries to the front of the area.
func (l *packedLog) pack() {
	l.tail = copy(l.area, l.area[l.head:l.tail])
	l.head = 0
}

// logWriter writes a log anew: out has the entries before the newest.
type logWriter struct {
	out                  []byte
	oldest, newest, cost int64
}

// add appends what was taken at a time, unless that is nothing.
func (w *logWriter) add(at, cost int64) {
	switch {
	case cost == 0:
		return
	case w.cost == 0:
		w.oldest = at
	default:
		w.out = appendLogEntry(w.out, w.cost, at-w.newest)
	}
	w.newest, w.cost = at, cost
}

// thin merges the grants of each stretch of resolution microseconds into one, at the time of the latest.
func (l *packedLog) thin(resolution int64) {
	w := logWriter{out: make([]byte, 0, l.tail)}
	var atHand, cost int64
	when := l.oldest
	for at := l.head; at < l.tail; {
		c, gap, next := l.entry(at)
		if cost > 0 && when/resolution != atHand/resolution {
			w.add(atHand, cost)
			cost = 0
		}
		atHand, cost = when, cost+c
		when, at = when+gap, next
	}
	w.add(atHand, cost)
	w.add(l.newest, l.newestCost)
	if len(w.out) > len(l.area) { // nothing was merged; a coarser try follows
		return
	}
	l.oldest, l.head, l.tail = w.oldest, 0, copy(l.area, w.out)
}

// logGive gives back n, the oldest first: so whoever gives back, the log never allows more than its rule.
func (r Rule) logGive(state []byte, now, n int64) {
	l, now := r.logLoad(state, now)
	n = min(n, l.used)
	l.used -= n
	for n > 0 && l.head < l.tail {
		cost, gap, next := l.entry(l.head)
		if cost > n {
			// The rest is written so that it ends where the entry did. A smaller cost never takes more bytes; if it
			// takes fewer, the entry begins later.
			var buf [logEntryMax]byte
			rest := appendLogEntry(buf[:0], cost-n, gap)
			l.head = next - len(rest)
			copy(l.area[l.head:], rest)
			n = 0
			break
		}
		n -= cost
		l.oldest += gap
		l.head = next
	}
	if l.head == l.tail {
		l.head, l.tail = 0, 0
	}
	if l.newestCost -= n; l.newestCost == 0 {
		l.newest = now
	}
	l.store(state)
}

func (r Rule) logDuring(_ []byte, now, _ int64, g spent) int64 { return g.taken + r.PeriodMicros - now }

// logSettle changes the cost of a grant, found by its time. If the log has no grant of that time, it was given back,
// unless the log was thinned: then the grant is part of a slightly later one. It returns the state, in other memory if
// its size changed.
func (r Rule) logSettle(state []byte, now, diff int64, g spent) []byte {
	taken := g.taken
	l, now := r.logLoad(state, now)
	thinned := int64(0)
	if len(l.area) > logAreaMax/8 {
		thinned = 4 * (r.PeriodMicros/logThin + 1)
	}
	if l.used == 0 {
		if diff >= 0 {
			return state
		}
		l.oldest, l.newest, l.newestCost, l.used = taken, taken, -diff, -diff
		l.head, l.tail = 0, 0
		return l.store(state)
	}
	// The whole log is written anew: the grants before, this one, and those after.
	w := logWriter{out: make([]byte, 0, l.tail-l.head+2*logEntryMax)}
	settled := false
	each := func(at, cost int64) {
		if !settled && at >= taken {
			if settled = true; at-taken <= thinned || at == taken {
				by := min(diff, cost)
				cost -= by
				l.used -= by
			} else if diff < 0 { // it had taken nothing, or that was given back
				w.add(taken, -diff)
				l.used -= diff
			}
		}
		w.add(at, cost)
	}
	at := l.oldest
	for from := l.head; from < l.tail; {
		cost, gap, next := l.entry(from)
		each(at, cost)
		at, from = at+gap, next
	}
	each(l.newest, l.newestCost)
	if !settled && diff < 0 {
		w.add(taken, -diff)
		l.used -= diff
	}
	if w.cost == 0 {
		l.head, l.tail, l.newestCost, l.newest, l.used = 0, 0, 0, now, 0
		return l.store(state)
	}
	l.oldest, l.newest, l.newestCost = w.oldest, w.newest, w.cost
	if len(w.out) > logAreaMax {
		l.area, l.head, l.tail = w.out, 0, len(w.out)
		for resolution := r.PeriodMicros/logThin + 1; l.tail > logAreaMax; resolution *= 2 {
			l.thin(resolution)
		}
		w.out = l.area[:l.tail]
	}
	size := len(state) - logFixed
	if len(w.out) > size || len(w.out) < size/8 && size >= logSpareMin {
		size = len(w.out)
	}
	moved := state
	if size != len(state)-logFixed {
		moved = make([]byte, logFixed+size)
	}
	l.area = moved[logFixed:]
	l.head, l.tail = 0, copy(l.area, w.out)
	return l.store(moved)
}

func (r Rule) logFullAt(state []byte) int64 {
	l := loadLog(state)
	if l.newestCost == 0 {
		return l.newest
	}
	return l.newest + r.PeriodMicros
}

// logCarry keeps what is still in use under the old rule, with the times.
func (r Rule) logCarry(state []byte, now int64, old Rule, oldState []byte) []byte {
	l, _ := old.logLoad(oldState, now)
	if l.newestCost == 0 {
		return state
	}
	state = append(state, l.area[l.head:l.tail]...)
	l.area = state[logFixed:]
	l.head, l.tail = 0, len(l.area)
	return l.store(state)
}

func (r Rule) logBack(state []byte, _, by int64) {
	l := loadLog(state)
	if l.newestCost > 0 {
		by = max(by, -l.oldest) // the times between are stored relative to these two
	}
	l.oldest, l.newest = max(l.oldest+by, 0), max(l.newest+by, 0)
	l.store(state)
}

func (r Rule) logCheck(state []byte) error {
	l := loadLog(state)
	if l.head > l.tail || l.tail > len(l.area) {
		return fmt.Errorf("entries %d:%d of %d bytes", l.head, l.tail, len(l.area))
	}
	if l.used < 0 || l.used > UsedMax || l.oldest < 0 || l.oldest > TimeMax || l.newest < 0 || l.newest > TimeMax {
		return fmt.Errorf("%d used from %d to %d", l.used, l.oldest, l.newest)
	}
	sum, when := l.newestCost, l.oldest
	for at := l.head; at < l.tail; {
		cost, gap, next := l.entry(at)
		if next > l.tail || cost < 1 || cost > UsedMax || gap < 1 || gap > l.newest-when {
			return fmt.Errorf("entry at %d: cost %d, gap %d", at, cost, gap)
		}
		sum, when, at = sum+cost, when+gap, next
	}
	if sum != l.used || l.head < l.tail && (when != l.newest || l.newestCost == 0) {
		return fmt.Errorf("entries sum to %d of %d and end at %d of %d", sum, l.used, when, l.newest)
	}
	return nil
}
