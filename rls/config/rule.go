// This file chooses the limiter for a limit.
//
// envoyproxy/ratelimit has a counter for each second, minute, hour, day … of the clock. An hour, day, week or month becomes a
// period of CAL. A second or minute becomes FIXED, which begins with the first request instead. That is as strict, since no
// window of that length grants more, and it needs only the server's clock. A year is 365 days.

package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
)

// The units of a limit.
const (
	Second = rls.RateLimitResponse_RateLimit_SECOND
	Minute = rls.RateLimitResponse_RateLimit_MINUTE
	Hour   = rls.RateLimitResponse_RateLimit_HOUR
	Day    = rls.RateLimitResponse_RateLimit_DAY
	Week   = rls.RateLimitResponse_RateLimit_WEEK
	Month  = rls.RateLimitResponse_RateLimit_MONTH
	Year   = rls.RateLimitResponse_RateLimit_YEAR
)

// Algorithm is how requests are counted.
type Algorithm uint8

const (
	// Fixed is one counter for each unit, as in envoyproxy/ratelimit.
	Fixed Algorithm = iota
	// GCRA is a token bucket: the count refills evenly within a unit, and Burst can be taken at once.
	GCRA
	// Log is the exact sliding window.
	Log
	// Window is a sliding window of two counters.
	Window
)

var algorithms = map[string]Algorithm{"fixed": Fixed, "gcra": GCRA, "log": Log, "window": Window}

// lengths are the lengths of the units. A month is 30 days for algorithms without a calendar.
var lengths = map[Unit]time.Duration{
	Second: time.Second, Minute: time.Minute, Hour: time.Hour, Day: 24 * time.Hour, Week: 7 * 24 * time.Hour,
	Month: 30 * 24 * time.Hour, Year: 365 * 24 * time.Hour,
}

// Length returns the length of a unit, 0 for an unknown one.
func Length(u Unit) time.Duration { return lengths[u] }

// rule returns the limiter's rule for a limit, nil if nothing is to be counted.
func (l *Limit) rule() []string {
	length := lengths[l.Unit]
	if l.Unlimited || l.Count == 0 || length == 0 {
		return nil
	}
	count, period := strconv.FormatUint(uint64(l.Count), 10), strconv.FormatInt(length.Milliseconds(), 10)
	switch l.Algorithm {
	case GCRA:
		return []string{"GCRA", count, period, "BURST", strconv.FormatUint(uint64(l.Burst), 10)}
	case Log:
		return []string{"LOG", count, period}
	case Window:
		return []string{"WINDOW", count, period}
	}
	switch l.Unit {
	case Second, Minute, Year:
		return []string{"FIXED", count, period}
	}
	return []string{"CAL", count, l.Unit.String()}
}

// unitOf returns the unit with this name.
func unitOf(word string) (Unit, error) {
	u := Unit(rls.RateLimitResponse_RateLimit_Unit_value[strings.ToUpper(word)])
	if lengths[u] == 0 {
		return u, fmt.Errorf("invalid rate limit unit %q, it can be second, minute, hour, day, week, month or year", word)
	}
	return u, nil
}
