// This file is CAL: a count in each hour, day, week or month of a time zone. calendar.go finds where these begin.

package limiter

import (
	"encoding/binary"
	"fmt"
)

// Cal counts in the periods of a calendar: hours, days, weeks or months.
const Cal Algorithm = 4

func init() {
	register(Cal, &algorithm{
		word: "CAL", version: 2,
		grammar: &grammar{
			arguments: []string{periodSyntax, "TZ zone:string", "FROM from:integer"}, needs: 1,
			parse: parseCal, text: func(dst []byte, r Rule) []byte { return r.Calendar().appendText(dst) },
			validate: func(r Rule) error { return r.Calendar().validate() }, period: Rule.calPeriod,
			encode: func(r Rule) string { return r.Calendar().encode() }, decode: decodeCal,
		},
		size: func(Rule, []byte) int { return calSize },
		wait: Rule.resetWait, take: Rule.calTake, room: Rule.calRoom, bears: Rule.usedBears, give: Rule.calGive,
		during: Rule.calDuring, settle: givesAnywhere(Rule.calGive),
		over:   func(r Rule, state []byte, now int64) int64 { return r.calLoad(state, now).end },
		fullAt: Rule.calFullAt, carry: Rule.calCarry, back: Rule.calBack, check: Rule.calCheck,
	})
}

// Calendar is the calendar of a CAL rule.
func (r Rule) Calendar() Calendar {
	return Calendar{Unit(r.Burst), uint8(r.Burst >> 8), uint16(r.Burst >> 16)}
}

func parseCal(r Rule, args [][]byte) (Rule, int, error) {
	c, n, err := parseCalendar(args)
	r.Burst = c.pack()
	return r, n, err
}

func decodeCal(r Rule, p []byte, at int) (Rule, int) {
	c, at := decodeCalendar(p, at)
	r.Burst = c.pack()
	return r, at
}

func (r Rule) calPeriod(now int64) int64 {
	from, to := r.Calendar().period(now)
	return to - from
}

// CAL's state is the last period that was taken from, and how much was taken in it.
const (
	calStart  = 0  // int64: when the period began
	calLength = 8  // uint48: how long it is, in microseconds
	calUsed   = 14 // uint48: what was taken in it
	calSize   = 20
	// calBefore is how long before 1970 the period that contains its first moment can begin.
	calBefore = 32 * 86_400_000_000
)

// calState is a CAL's state, decoded.
type calState struct{ start, end, used int64 }

func loadCal(state []byte) calState {
	start := int64(binary.LittleEndian.Uint64(state[calStart:]))
	return calState{start, start + int64(uint48(state[calLength:])), int64(uint48(state[calUsed:]))}
}

func (s calState) store(state []byte) []byte {
	binary.LittleEndian.PutUint64(state[calStart:], uint64(s.start))
	putUint48(state[calLength:], uint64(s.end-s.start))
	putUint48(state[calUsed:], uint64(s.used))
	return state
}

// calLoad is the state as it is at now. If the clock was set back, the period stays.
func (r Rule) calLoad(state []byte, now int64) calState {
	s := loadCal(state)
	if now >= s.end || s.used == 0 {
		s.start, s.end = r.Calendar().period(now)
		s.used = 0
	}
	return s
}

func (r Rule) calRoom(state []byte, now int64) (available, reset int64) {
	s := r.calLoad(state, now)
	if s.used == 0 {
		return r.Count, 0
	}
	return r.Count - s.used, s.end - now
}

func (r Rule) calTake(state []byte, now, cost int64) []byte {
	s := r.calLoad(state, now)
	s.used += cost
	return s.store(state)
}

func (r Rule) calGive(state []byte, now, n int64) {
	s := r.calLoad(state, now)
	s.used -= min(n, s.used)
	s.store(state)
}

func (r Rule) calDuring(state []byte, now, _ int64, g spent) int64 {
	if s := r.calLoad(state, now); g.taken >= s.start {
		return s.end - now
	}
	return 0
}

func (r Rule) calFullAt(state []byte) int64 {
	s := loadCal(state)
	if s.used == 0 {
		return s.start
	}
	return s.end
}

// calCarry keeps what was taken in the current period.
func (r Rule) calCarry(state []byte, now int64, old Rule, oldState []byte) []byte {
	return r.calTake(state, now, old.calLoad(oldState, now).used)
}

// calBack does not move periods. What was taken in a period that is now in the future counts in the current one.
func (r Rule) calBack(state []byte, now, by int64) {
	s := r.calLoad(state, now-by) // a period that was over stays over
	if s.start > now {
		s.start, s.end = r.Calendar().period(now)
	}
	s.store(state)
}

func (r Rule) calCheck(state []byte) error {
	if s := loadCal(state); s.start < -calBefore || s.start > TimeMax || s.used > UsedMax {
		return fmt.Errorf("%d used from %d", s.used, s.start)
	}
	return nil
}
