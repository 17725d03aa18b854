package number

// What these tests expect was recorded from Redis 8.0.6 into testdata. To record again:
// go test ./resp/number -record 127.0.0.1:6379

import (
	"bufio"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

var record = flag.String("record", "", "address of a Redis to record the expected results from")

// redis is just enough of a client.
type redis struct {
	nc net.Conn
	r  *bufio.Reader
	t  *testing.T
}

func (r *redis) do(args ...string) string {
	r.t.Helper()
	text := fmt.Sprintf("*%d\r\n", len(args))
	for _, a := range args {
		text += fmt.Sprintf("$%d\r\n%s\r\n", len(a), a)
	}
	if _, err := r.nc.Write([]byte(text)); err != nil {
		r.t.Fatal(err)
	}
	line, err := r.r.ReadString('\n')
	if err != nil {
		r.t.Fatal(err)
	}
	line = strings.TrimSuffix(line, "\r\n")
	if line[0] != '$' {
		return line
	}
	line, err = r.r.ReadString('\n')
	if err != nil {
		r.t.Fatal(err)
	}
	return strings.TrimSuffix(line, "\r\n")
}

// recorded returns the lines of a file of testdata: inputs and Redis's results,
// quoted. With -record it writes the file first.
func recorded(t *testing.T, name string, inputs func() [][]string, ask func(r *redis, in []string) string) [][]string {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *record != "" {
		nc, err := net.Dial("tcp", *record)
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		r := &redis{nc, bufio.NewReader(nc), t}
		var out strings.Builder
		for _, in := range inputs() {
			r.do("DEL", "number")
			for _, s := range in {
				out.WriteString(short(s) + " ")
			}
			out.WriteString(strconv.Quote(ask(r, in)) + "\n")
		}
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var lines [][]string
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		var fields []string
		for rest := line; rest != ""; rest = strings.TrimPrefix(rest, " ") {
			q, err := strconv.QuotedPrefix(rest)
			if err != nil {
				i := strings.IndexByte(rest+" ", ' ')
				fields, rest = append(fields, rest[:i]), rest[i:]
				continue
			}
			s, _ := strconv.Unquote(q)
			fields, rest = append(fields, s), rest[len(q):]
		}
		lines = append(lines, fields)
	}
	if len(lines) < 50 {
		t.Fatalf("%s has only %d lines", path, len(lines))
	}
	return lines
}

// short quotes a text where a field needs it.
func short(s string) string {
	if s == "" || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == '"' || r > '~' }) {
		return strconv.Quote(s)
	}
	return s
}

// digits counts the significant digits of a number as printed.
func digits(s string) int {
	s, _, _ = strings.Cut(s, "e")
	return len(strings.Trim(strings.ReplaceAll(strings.TrimPrefix(s, "-"), ".", ""), "0"))
}

// doubles are the numbers whose printed form is compared.
func doubles() (list []float64) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 1500 { // of any size
		if f := math.Float64frombits(rng.Uint64()); f == f && !math.IsInf(f, 0) {
			list = append(list, f)
		}
	}
	for range 500 { // such as people write
		list = append(list, float64(rng.IntN(2e6)-1e6)/math.Pow10(rng.IntN(8)))
		list = append(list, rng.Float64(), rng.NormFloat64()*1e3)
	}
	for range 300 { // where Grisu2 is not the shortest
		for {
			f := math.Float64frombits(rng.Uint64()&^(0x7ff<<52) | (1023-40+rng.Uint64N(80))<<52)
			if digits(string(AppendDouble(nil, f))) > digits(strconv.FormatFloat(f, 'g', -1, 64)) {
				list = append(list, f)
				break
			}
		}
	}
	for e := -330; e <= 308; e += 3 {
		list = append(list, math.Pow10(e), 1.5*math.Pow10(e), -math.Nextafter(math.Pow10(e), 0))
	}
	for e := -1074; e < 1024; e += 7 {
		list = append(list, math.Ldexp(1, e))
	}
	for e := 50; e < 65; e++ {
		f := math.Ldexp(1, e)
		list = append(list, f, f-1, f+1, -f, math.Nextafter(f, 0), math.Nextafter(f, math.Inf(1)), f+0.5)
	}
	return append(list, math.Inf(1), math.Inf(-1), 0, 0.1, 0.3, 0.1+0.2, 1e15, 1e16, 1e17, 1e20, 1e21, 1e22, 1e23,
		123456789012345678, 1e-5, 1e-6, 1e-7, 1.5e-7, 12345e-9, 5e-324, math.MaxFloat64, 3.0, 3.1, -3.25)
}

func TestDoubles(t *testing.T) {
	lines := recorded(t, "doubles.txt", func() (in [][]string) {
		for _, f := range doubles() {
			if f != 0 || !math.Signbit(f) { // a small sorted set does not keep the sign of -0
				in = append(in, []string{strconv.FormatFloat(f, 'g', -1, 64)})
			}
		}
		return in
	}, func(r *redis, in []string) string {
		r.do("ZADD", "number", in[0], "m")
		return r.do("ZSCORE", "number", "m")
	})
	notShortest := 0
	for _, l := range lines {
		f, ok := ParseDouble([]byte(l[0]))
		if want, _ := strconv.ParseFloat(l[0], 64); !ok || f != want {
			t.Errorf("ParseDouble(%s) = %v %v", l[0], f, ok)
		}
		got := string(AppendDouble(nil, f))
		if got != l[1] {
			t.Errorf("%s prints as %s, Redis prints %s", l[0], got, l[1])
		}
		if back, _ := strconv.ParseFloat(got, 64); back != f {
			t.Errorf("%s does not read back as %s", got, l[0])
		}
		if digits(got) > digits(strconv.FormatFloat(f, 'g', -1, 64)) {
			notShortest++
		}
	}
	if notShortest < 100 {
		t.Errorf("only %d numbers told Grisu2 from the shortest form", notShortest)
	}
}

// texts are numbers and texts that look like numbers.
func texts() (in [][]string) {
	list := strings.Fields(`+5 +inf -inf inf INF Infinity -Infinity infinit infi nan NaN nan(1) -nan nan( 0x10 -0x10
		0x 0x1p-3 0X1P3 +0x10 1e400 -1e400 1e-400 4.9e-324 2e-324 3e-324 2.4703282292062327e-324 2.4703282292062328e-324
		1e-310 .5 5. -.5 . - + e5 1e 1e+ 1e- 1e5 1E5 1_0 0x_1p0 0b1 0o7 010 00 -0 +0 --1 +-1 1,5 1f 1L 0x1.8 0x.8p1 0x1p
		0x1p+ 1e99999999999999999999 0e99999999999999999999 1e-99999999999999999999 0x1p99999 0x1p-99999 0x1p-1074
		0x1p-1075 0x1.8p-1075 0x1.8p-1074 0xabcdefp1 0x1.fffffffffffff8p1023 0x1.fffffffffffff7p1023
		0x1.00000000000008p0 0x1.000000000000080000001p0 1.7976931348623159e308 1.7976931348623158e308 0xg 0x1g 0x1.p1
		0x. 0x.p1 -0x0 1e5.5 1..5 1.5.5 0x1e5 0x1e+5 123456789012345 1234567890123456 -999999999999999 1e4931 1e4932
		1e4933 1.18e4932 1.2e4932 1.189731495357231765e4932 1.189731495357231766e4932 3.6e-4951 3.7e-4951 1.8e-4951
		1.9e-4951 1e-4960 0x1p16383 0x1p16384 0x1.fffffffffffffffep16383 0x1.ffffffffffffffffp16383 0x1p-16445
		0x1p-16446 0x1.8p-16446 0x123456789abcdef01 0x8000000000000000 0x80000000000000008 0x80000000000000018
		0x0.000000000000000000001p80 99999999999999999999 18446744073709551615 18446744073709551616 0.1 .1e1 1.e1`)
	list = append(list, "", " 1", "1 ", "\x00", "1\x00", "1\x002", "\v1", "\t1", "1\n", "inf ", "i", "1e ", "(1",
		strings.Repeat("1", 400), strings.Repeat("0", 400)+"7", "0."+strings.Repeat("0", 400)+"1",
		"1"+strings.Repeat("0", 309), "1."+strings.Repeat("0", 5117), "1."+strings.Repeat("0", 5118))
	for _, s := range list {
		in = append(in, []string{s})
	}
	return in
}

func TestTextsAsDoubles(t *testing.T) {
	lines := recorded(t, "parse_double.txt", texts, func(r *redis, in []string) string {
		if reply := r.do("ZADD", "number", in[0], "m"); reply != ":1" {
			return reply
		}
		return r.do("ZSCORE", "number", "m")
	})
	for _, l := range lines {
		f, ok := ParseDouble([]byte(l[0]))
		got := "-ERR value is not a valid float"
		if ok {
			got = string(AppendDouble(nil, f))
			if got == "-0" { // a small sorted set does not keep the sign
				got = "0"
			}
		}
		if got != l[1] {
			t.Errorf("%.60q: %s, Redis has %s", l[0], got, l[1])
		}
	}
}

// boundMembers are the scores that a bound is placed among, to see its value.
var boundMembers = []float64{math.Inf(-1), -1e308, -100, -1, -1e-320, 0, 1e-320, 0.5, 1, 5, 16, 1e5, 1e308, math.Inf(1)}

func TestTextsAsBounds(t *testing.T) {
	lines := recorded(t, "parse_bound.txt", texts, func(r *redis, in []string) string {
		for _, m := range boundMembers {
			s := strconv.FormatFloat(m, 'g', -1, 64)
			r.do("ZADD", "number", s, s)
		}
		return r.do("ZCOUNT", "number", in[0], "+inf") + r.do("ZCOUNT", "number", "("+in[0], "+inf")
	})
	for _, l := range lines {
		f, ok := ParseBound([]byte(l[0]))
		if l[0] != "" && l[0][0] == '(' {
			continue // the caller's
		}
		got := "-ERR min or max is not a float-ERR min or max is not a float"
		if ok {
			from, above := 0, 0
			for _, m := range boundMembers {
				if m >= f {
					from++
				}
				if m > f {
					above++
				}
			}
			got = fmt.Sprintf(":%d:%d", from, above)
		}
		if got != l[1] {
			t.Errorf("%.60q: %s, Redis has %s", l[0], got, l[1])
		}
	}
}

func TestIncrByFloat(t *testing.T) {
	lines := recorded(t, "incrbyfloat.txt", func() (in [][]string) {
		for _, s := range texts() {
			in = append(in, []string{s[0], "0"}, []string{"1.5", s[0]})
		}
		for _, p := range []string{"0.1 0.2", "3 1.1", "10.5 0.1", "5.0e3 2.0e2", "1e17 0.1", "1e19 0.5", "-0.1 0.1",
			"-1 1e-18", "0 -1e-18", "0 4.9e-18", "0 5e-18", "0 5.1e-18", "0 1.5e-17", "9223372036854775807 1",
			"18446744073709551615 1", "18446744073709551616 1", "36893488147419103232 1", "1e4931 1e4931", "1.1e4932 1.1e4932",
			"inf -inf", "-inf inf", "inf 1", "1 -1", "0.99999999999999999 0.00000000000000001",
			"0.999999999999999999 0", "-0.999999999999999995 0", "123456789.123456789 0.000000001"} {
			in = append(in, strings.Fields(p))
		}
		rng := rand.New(rand.NewPCG(3, 4))
		text := func() string {
			switch rng.IntN(5) {
			case 0:
				return strconv.FormatFloat(rng.NormFloat64(), 'g', -1, 64)
			case 1:
				return fmt.Sprintf("%d.%0*d", rng.IntN(1000)-500, 1+rng.IntN(12), rng.IntN(100))
			case 2:
				return fmt.Sprintf("%d.%d%d", rng.Int64()-1<<62, rng.Uint64(), rng.Uint64())
			case 3:
				return fmt.Sprintf("%d.%de%d", rng.IntN(10), rng.Uint64(), rng.IntN(60)-40)
			default:
				return fmt.Sprintf("%#x.%xp%d", rng.Uint32(), rng.Uint64(), rng.IntN(120)-80)
			}
		}
		for range 1500 {
			in = append(in, []string{text(), text()})
		}
		return in
	}, func(r *redis, in []string) string {
		r.do("SET", "number", in[0])
		return r.do("INCRBYFLOAT", "number", in[1])
	})
	for _, l := range lines {
		got := func() string {
			a, ok := ParseLongDouble([]byte(l[0]))
			b, ok2 := ParseLongDouble([]byte(l[1]))
			if !ok || !ok2 {
				return "-ERR value is not a valid float"
			}
			sum := a.Add(b)
			if !sum.Finite() {
				return "-ERR increment would produce NaN or Infinity"
			}
			return string(sum.AppendHuman(nil))
		}()
		if got != l[2] {
			t.Errorf("%.60q + %.60q: %.60s, Redis has %.60s", l[0], l[1], got, l[2])
		}
	}
}

func TestIntegers(t *testing.T) {
	lines := recorded(t, "integers.txt", func() (in [][]string) {
		for _, s := range append(strings.Fields(`0 -0 +0 1 -1 +1 00 01 -01 9223372036854775807 9223372036854775808
			-9223372036854775808 -9223372036854775809 18446744073709551615 18446744073709551616 99999999999999999999
			-99999999999999999999 100000000000000000000 - + 1a a1 1.0 1e3 0x1 1_0 12345678901234567 999999999999999999
			1000000000000000000 -999999999999999999 -1000000000000000000 9999999999999999999 1-1`),
			"", " 1", "1 ", "1\x00", "\x00", "1\n") {
			in = append(in, []string{s})
		}
		rng := rand.New(rand.NewPCG(5, 6))
		for range 100 {
			in = append(in, []string{strconv.FormatInt(int64(rng.Uint64())>>rng.IntN(63), 10)})
		}
		return in
	}, func(r *redis, in []string) string {
		r.do("SET", "number", in[0])
		return r.do("INCRBY", "number", "0")
	})
	for _, l := range lines {
		got := "-ERR value is not an integer or out of range"
		if v, ok := ParseInt([]byte(l[0])); ok {
			got = fmt.Sprintf(":%d", v)
		}
		if got != l[1] {
			t.Errorf("%q: %s, Redis has %s", l[0], got, l[1])
		}
	}
}
