// Package limiter, internal to the server, holds the arithmetic of rate limiters: pure functions on a limiter's bytes,
// with the time as a parameter. It knows no key, lock, clock or protocol.
//
// This file is the rule: what a limiter allows, its limits, and its encoding. A limiter carries its own rules, a few bytes
// each, instead of a number that refers to a table of rules. A table would have to be bounded, counted and cleaned up when
// limiters expire by the million; bytes beside the state need none of that, compare with one bytes.Equal, and survive being
// copied.
package limiter

import (
	"encoding/binary"
	"errors"
)

// Rule is what a limiter allows: Count per Period. Burst is the most that can be taken from a bucket at once; for other
// algorithms it is 0. CAL has a Calendar, packed into Burst, instead of a period. Untimed rules have neither.
//
// The compiler keeps a struct of up to four words and fields in registers: a fifth field makes every call twice as slow.
type Rule struct {
	Algorithm    Algorithm
	Count        int64
	PeriodMicros int64
	Burst        int64
}

const (
	// RulesMax is how many rules one limiter may have.
	RulesMax = 8
	// CountMax is the largest count, burst, or cost of one call.
	CountMax int64 = 1_000_000_000_000
	// PeriodMicrosMin is one millisecond.
	PeriodMicrosMin int64 = 1_000
	// PeriodMicrosMax is ten years of 365.25 days.
	PeriodMicrosMax int64 = 315_576_000_000 * 1000
	// FillMicrosMax is the longest a bucket may take from empty to full, some 36,000 years. It binds only where a burst is
	// far above its count, and keeps every point in time below 2^62.
	FillMicrosMax int64 = 1 << 60
	// TimeMax is the last time at which something can be taken, far beyond what a clock shows. A bucket is full at most
	// FillMicrosMax later.
	TimeMax int64 = 1 << 60
	// UsedMax is the most that FORCE can take into debt on one rule, in tokens.
	UsedMax int64 = 100_000_000_000_000
)

// Errors of a rule. A function that returns one changes nothing.
var (
	// ErrCount is a count below 1 or above CountMax.
	ErrCount = errors.New("limiter: count out of range")
	// ErrPeriod is a period shorter than PeriodMicrosMin or longer than PeriodMicrosMax.
	ErrPeriod = errors.New("limiter: period out of range")
	// ErrBurst is a burst below 1 or above CountMax.
	ErrBurst = errors.New("limiter: burst out of range")
	// ErrFill is a bucket that would take longer than FillMicrosMax to fill.
	ErrFill = errors.New("limiter: burst takes too long to come back")
	// ErrRules is more than RulesMax rules.
	ErrRules = errors.New("limiter: too many rules")
)

// Validate returns the error that says what is out of range, or nil.
func (r Rule) Validate() error {
	if r.Count < 1 || r.Count > CountMax {
		return ErrCount
	}
	return r.row().validate(r)
}

// Capacity is the most that can be taken at once when nothing is in use.
func (r Rule) Capacity() int64 {
	if r.row().bucket {
		return r.Burst
	}
	return r.Count
}

// Untimed tells whether time brings nothing back.
func (r Rule) Untimed() bool { return r.row().untimed }

// Flags in a rule's first byte, beside its algorithm. burstFlag: a burst follows; without it the burst equals the
// count. secondsFlag: the period is in seconds, as it is in a compact limiter where that is possible.
const (
	algorithmMask = 0x0f
	burstFlag     = 0x10
	secondsFlag   = 0x20

	microsPerSecond = 1_000_000
)

// append encodes the rule: its algorithm, count and period, and a burst where it differs from the count. A usual rule takes
// 6 or 7 bytes, 3 or 4 with a period in seconds.
func (r Rule) append(dst []byte, seconds bool) []byte {
	first, period := byte(r.Algorithm), uint64(r.PeriodMicros)
	if whole := period / microsPerSecond; seconds && whole > 0 && whole*microsPerSecond == period {
		first, period = first|secondsFlag, whole
	}
	row := r.row()
	if row.bucket && r.Burst != r.Count {
		first |= burstFlag
	}
	dst = append(dst, first)
	dst = binary.AppendUvarint(dst, uint64(r.Count))
	dst = binary.AppendUvarint(dst, period)
	if first&burstFlag != 0 {
		dst = binary.AppendUvarint(dst, uint64(r.Burst))
	}
	return append(dst, row.encode(r)...)
}

// decodeRule reads the rule at p[at:], which append wrote, and returns where it ends.
func decodeRule(p []byte, at int) (Rule, int) {
	first := p[at]
	r := Rule{Algorithm: Algorithm(first & algorithmMask)}
	count, at := uvarint(p, at+1)
	period, at := uvarint(p, at)
	if first&secondsFlag != 0 {
		period *= microsPerSecond
	}
	r.Count, r.PeriodMicros = int64(count), int64(period)
	row := r.row()
	if row.bucket {
		r.Burst = r.Count
	}
	if first&burstFlag != 0 {
		var burst uint64
		burst, at = uvarint(p, at)
		r.Burst = int64(burst)
	}
	return row.decode(r, p, at)
}

// uvarint is binary.Uvarint reading at an offset, small enough for the compiler to inline its usual case.
func uvarint(p []byte, at int) (uint64, int) {
	if b := p[at]; b < 0x80 {
		return uint64(b), at + 1
	}
	return uvarintLong(p, at)
}

func uvarintLong(p []byte, at int) (uint64, int) {
	var v uint64
	for shift := uint(0); ; shift += 7 {
		b := p[at]
		at++
		if b < 0x80 {
			return v | uint64(b)<<shift, at
		}
		v |= uint64(b&0x7f) << shift
	}
}
