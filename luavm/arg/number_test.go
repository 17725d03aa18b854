package arg

// Conversion between numbers and text, compared with the C library.

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

func TestFormatNumber(t *testing.T) {
	negativeZero := math.Copysign(0, -1)
	for _, c := range []struct {
		f    float64
		want string
	}{
		{0, "0"}, {negativeZero, "-0"}, {1, "1"}, {-1, "-1"}, {99, "99"}, {100, "100"},
		{0.1 + 0.2, "0.3"}, {1.0 / 3, "0.33333333333333"}, {2.0 / 3, "0.66666666666667"}, {3.5, "3.5"},
		{1e14, "1e+14"}, {99999999999999, "99999999999999"}, {-99999999999999, "-99999999999999"},
		{999999999999999, "1e+15"}, {123456789012345, "1.2345678901234e+14"}, {1e15, "1e+15"}, {1e100, "1e+100"},
		{1e-4, "0.0001"}, {1e-5, "1e-05"}, {1.5e-7, "1.5e-07"}, {99999999999999.5, "1e+14"}, {1234567.891, "1234567.891"},
		{math.MaxFloat64, "1.7976931348623e+308"}, {5e-324, "4.9406564584125e-324"}, {1 << 53, "9.007199254741e+15"},
		{math.Inf(1), "inf"}, {math.Inf(-1), "-inf"}, {math.NaN(), "nan"}, {math.Copysign(math.NaN(), -1), "-nan"},
	} {
		if got := FormatNumber(c.f); got != c.want {
			t.Errorf("FormatNumber(%v) = %q, want %q", c.f, got, c.want)
		}
		if got := string(AppendNumber([]byte("x"), c.f)); got != "x"+c.want {
			t.Errorf("AppendNumber(%v) = %q, want %q", c.f, got, "x"+c.want)
		}
	}
	if got := string(AppendPrecision(nil, 123456, 3)); got != "1.23e+05" {
		t.Errorf("precision 3: %q", got)
	}
}

func TestParseNumber(t *testing.T) {
	for _, c := range []struct {
		s    string
		want string // as FormatNumber writes it, "" where it is no number
	}{
		{"0", "0"}, {"10", "10"}, {"010", "10"}, {"-5", "-5"}, {"+5", "5"}, {"1e3", "1000"}, {"1E3", "1000"}, {"1e+3", "1000"},
		{" 7", "7"}, {"7 ", "7"}, {"\t\n\v\f\r7\t\n\v\f\r", "7"}, {"7 x", ""}, {"", ""}, {" ", ""}, {"x", ""},
		{".5", "0.5"}, {"5.", "5"}, {".", ""}, {"-.", ""}, {"1.2.3", ""}, {"1e", ""}, {"1e+", ""}, {"e1", ""}, {"--1", ""}, {"- 1", ""},
		{"inf", "inf"}, {"-inf", "-inf"}, {"INFINITY", "inf"}, {"+Infinity", "inf"}, {"infinit", ""}, {"nan", "nan"}, {"-NaN", "-nan"},
		{"nan(12_a)", "nan"}, {"nan(-)", ""}, {"nan(", ""}, {"nano", ""},
		{"0x10", "16"}, {"-0x10", "-16"}, {"0X1P4", "16"}, {"0x1p4", "16"}, {"0x.8", "0.5"}, {"0x1.8p1", "3"}, {"0x", ""}, {"0xg", ""}, {"0x1p", ""},
		{"0x1e2", "482"}, {"0x.p1", ""}, {"1x10", ""}, {"0x10 ", "16"}, {"0xffffffffffffffffff", "4.7223664828696e+21"},
		{"1_0", ""}, {"0b1", ""}, {"0o7", ""}, {"1e400", "inf"}, {"-1e400", "-inf"}, {"1e-400", "0"}, {"-0", "-0"}, {"0x1p5000", "inf"},
		{"12\x00abc", "12"}, {"\x0012", ""}, {"123456789012345678901234567890", "1.2345678901235e+29"}, {"999999999999999", "1e+15"}, {"1 2", ""}, {"i", ""}, {"n", ""},
	} {
		got := ""
		if f, ok := ParseNumber(c.s); ok {
			got = FormatNumber(f)
		}
		if got != c.want {
			t.Errorf("ParseNumber(%q) = %q, want %q", c.s, got, c.want)
		}
	}
}

func TestStrtodStopsWhereTheNumberEnds(t *testing.T) {
	for _, c := range []struct {
		s string
		n int
	}{
		{"12abc", 2}, {"1e5x", 3}, {"1ex", 1}, {"  -3.5,", 6}, {"0x", 1}, {"0x1fz", 4}, {"infi", 3}, {"nan(1", 3}, {"nan(1)z", 6}, {"abc", 0}, {"-", 0}, {"", 0},
	} {
		if _, n := Strtod(c.s); n != c.n {
			t.Errorf("Strtod(%q) takes %d bytes, want %d", c.s, n, c.n)
		}
	}
}

func TestTruncate(t *testing.T) {
	for f, want := range map[float64]int64{
		1.9: 1, -1.9: -1, 0x1p63: math.MinInt64, -0x1p63: math.MinInt64, 1e300: math.MinInt64, math.Inf(1): math.MinInt64, math.Inf(-1): math.MinInt64, 0x1p62: 1 << 62,
	} {
		if got := Truncate(f); got != want {
			t.Errorf("Truncate(%v) = %d, want %d", f, got, want)
		}
	}
	if got := Truncate(math.NaN()); got != math.MinInt64 {
		t.Errorf("Truncate(NaN) = %d", got)
	}
}

// FuzzParseNumber: an accepted number that is written and read again gives the same text, and Strtod never uses more bytes
// than there are.
func FuzzParseNumber(f *testing.F) {
	for _, s := range []string{"1", "0x1p4", "nan(1)", " -inf ", "1e-5", "0x.8p-3"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if _, n := Strtod(s); n < 0 || n > len(s) {
			t.Fatalf("Strtod(%q) takes %d bytes", s, n)
		}
		v, ok := ParseNumber(s)
		if !ok {
			return
		}
		text := FormatNumber(v)
		again, ok := ParseNumber(text)
		if !ok || FormatNumber(again) != text && !strings.Contains(text, "e+308") {
			t.Fatalf("%q is %s, which reads back as %v, %v", s, text, again, ok)
		}
	})
}

func BenchmarkFormatNumber(b *testing.B) {
	for _, f := range []float64{7, 1700000000000, 0.30000000000000004} {
		b.Run(fmt.Sprint(f), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				FormatNumber(f)
			}
		})
	}
}

func BenchmarkParseNumber(b *testing.B) {
	for _, s := range []string{"7", "1700000000000", "-3.25", "0x1f"} {
		b.Run(s, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				ParseNumber(s)
			}
		})
	}
}
