package command

// Args is the cursor over a command's arguments. It keeps the first error, and all later reads return zero values. So a
// handler reads all arguments and checks once: if a.Failed(c) { return }.

import (
	"bytes"
	"math"
	"strconv"

	"github.com/limitkv/limitkv/resp/number"
)

// Args reads arguments one after the other.
type Args struct {
	rest [][]byte
	err  string
}

// Cursor returns a cursor over the arguments from index i on (0 is the name).
func (c *Ctx) Cursor(i int) Args { return Args{rest: c.Args[i:]} }

// ArgsOf returns a cursor over the given arguments.
func ArgsOf(args ...[]byte) Args { return Args{rest: args} }

// More tells whether arguments are left and nothing failed.
func (a *Args) More() bool { return len(a.rest) > 0 && a.err == "" }

// Left returns how many arguments are left.
func (a *Args) Left() int { return len(a.rest) }

// Rest takes all arguments that are left.
func (a *Args) Rest() [][]byte {
	r := a.rest
	a.rest = nil
	return r
}

// Fail keeps an error text unless there is one.
func (a *Args) Fail(text string) {
	if a.err == "" {
		a.err = text
	}
}

// Syntax keeps the syntax error unless there is another.
func (a *Args) Syntax() { a.Fail(ErrSyntax) }

// Err returns the kept error text, empty if there is none.
func (a *Args) Err() string { return a.err }

// Failed replies the kept error, if there is one.
func (a *Args) Failed(c *Ctx) bool {
	if a.err == "" {
		return false
	}
	c.Error(a.err)
	return true
}

// Bytes takes the next argument. It aliases the request.
func (a *Args) Bytes() []byte {
	if a.err != "" {
		return nil
	}
	if len(a.rest) == 0 {
		a.err = ErrSyntax
		return nil
	}
	b := a.rest[0]
	a.rest = a.rest[1:]
	return b
}

// Peek returns the next argument without taking it, nil if there is none.
func (a *Args) Peek() []byte {
	if len(a.rest) == 0 {
		return nil
	}
	return a.rest[0]
}

// Is takes the next argument if it is the word, in any case.
func (a *Args) Is(word string) bool {
	if a.More() && EqualFold(a.rest[0], word) {
		a.rest = a.rest[1:]
		return true
	}
	return false
}

// IsWith takes the next argument if it is the word and at least n more arguments follow it. Most of Redis's options with
// values have this form.
func (a *Args) IsWith(word string, n int) bool { return len(a.rest) > n && a.Is(word) }

// Int takes an integer, with Redis's usual error.
func (a *Args) Int() int64 { return a.IntOr(ErrNotInt) }

// IntOr takes an integer, with the given error.
func (a *Args) IntOr(text string) int64 {
	b := a.Bytes()
	if a.err != "" {
		return 0
	}
	n, ok := number.ParseInt(b)
	if !ok {
		a.err = text
	}
	return n
}

// Int32 takes an integer of 32 bits, with Redis's errors.
func (a *Args) Int32() int64 {
	n := a.Int()
	if a.err == "" && n != int64(int32(n)) {
		a.err = "ERR value is out of range, value must between -2147483648 and 2147483647"
	}
	return n
}

// Int32Or takes an integer of 32 bits, with the given error.
func (a *Args) Int32Or(text string) int64 {
	n := a.IntOr(text)
	if a.err == "" && n != int64(int32(n)) {
		a.err = text
	}
	return n
}

// IntRange takes an integer from lo to hi. The given error is for an integer out of range; other text gets Redis's usual
// error.
func (a *Args) IntRange(lo, hi int64, text string) int64 {
	n := a.Int()
	if a.err == "" && (n < lo || n > hi) {
		a.err = text
	}
	return n
}

// Positive takes an integer that is not negative. The given error is for all else.
func (a *Args) Positive(text string) int64 {
	n := a.IntOr(text)
	if a.err == "" && n < 0 {
		a.err = text
	}
	return n
}

// Timeout takes the time-out of a blocking command, in seconds with a fraction, and returns when it ends in Unix microseconds,
// 0: never.
func (a *Args) Timeout(c *Ctx) (deadline int64) {
	b := a.Bytes()
	if a.err != "" {
		return 0
	}
	f, ok := number.ParseDouble(b)
	if !ok {
		// Redis reads a long double here. It accepts far larger numbers, though they are too large as a time.
		if _, ok = number.ParseLongDouble(b); ok {
			f = math.Inf(1)
			if b[0] == '-' {
				f = math.Inf(-1)
			}
		}
	}
	millis := math.Ceil(f * 1000)
	switch {
	case !ok || f != f:
		a.err = ErrTimeoutNotFloat
	case millis > math.MaxInt64 || millis > math.MaxInt64-float64(c.Now/1000):
		a.err = ErrTimeoutRange
	case millis < 0:
		a.err = ErrTimeoutNegative
	case millis > timeoutMillisMax:
		return 0
	case millis > 0:
		return c.Now + int64(millis)*1000
	}
	return 0
}

// timeoutMillisMax is the longest time-out, 285 thousand years. Longer ones count as none.
const timeoutMillisMax = 9e15

// Float takes a floating-point number that is not NaN, with Redis's error.
func (a *Args) Float() float64 { return a.FloatOr(ErrNotFloat) }

// FloatOr takes a floating-point number that is not NaN.
func (a *Args) FloatOr(text string) float64 {
	b := a.Bytes()
	if a.err != "" {
		return 0
	}
	f, ok := number.ParseDouble(b)
	if !ok || f != f {
		a.err = text
	}
	return f
}

// ParseRandomCount reads the count and the option of HRANDFIELD and ZRANDMEMBER. A negative count allows repetition.
func ParseRandomCount(c *Ctx, option string) (n int64, with, ok bool) {
	a := c.Cursor(2)
	n = a.IntRange(-math.MaxInt64, math.MaxInt64, ErrCountRange)
	if a.Failed(c) {
		return 0, false, false
	}
	with = len(c.Args) == 4 && EqualFold(c.Args[3], option)
	if len(c.Args) > 3 && !with {
		c.Error(ErrSyntax)
		return 0, false, false
	}
	if with && (n < -math.MaxInt64/2 || n > math.MaxInt64/2) {
		c.Error(ErrOutOfRange)
		return 0, false, false
	}
	return n, with, true
}

// EqualFold tells whether b is the word, which is given in upper case.
func EqualFold(b []byte, word string) bool {
	if len(b) != len(word) {
		return false
	}
	for i := range b {
		c := b[i]
		if c >= 'a' && c <= 'z' {
			c -= 'a' - 'A'
		}
		if c != word[i] {
			return false
		}
	}
	return true
}

// Text returns b up to its first zero byte, where a text ends in C: what Redis compares with strcmp and prints with %s.
func Text(b []byte) []byte {
	b, _, _ = bytes.Cut(b, []byte{0})
	return b
}

// ArgBytes returns the total length of arguments.
func ArgBytes(args [][]byte) (n int) {
	for _, a := range args {
		n += len(a)
	}
	return n
}

// Clone copies arguments that must outlive the request.
func Clone(args [][]byte) [][]byte {
	all := make([]byte, 0, ArgBytes(args))
	out := make([][]byte, len(args))
	for i, a := range args {
		from := len(all)
		all = append(all, a...)
		out[i] = all[from:len(all):len(all)]
	}
	return out
}

// Lower returns the argument in lower case as a string.
func Lower(b []byte) string { return string(bytes.ToLower(b)) }

// AppendInt appends a number as text, for values that are stored as text.
func AppendInt(dst []byte, n int64) []byte { return strconv.AppendInt(dst, n, 10) }
