package luavm

// string.format: the part of C's printf that Lua 5.1 supports.

import (
	"math"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/limitkv/limitkv/luavm/arg"
)

// formatSpec is one % item.
type formatSpec struct {
	minus, plus, blank, sharp, zero bool
	width                           int
	precision                       int // -1: none
}

func (vm *VM) stringFormat(L *lua.LState) int {
	format := arg.String(L, 1)
	n := 1
	b := vm.scratch[:0]
	for i := 0; i < len(format); i++ {
		if i%atOnce == atOnce-1 {
			vm.budget.Use(atOnceSteps)
		}
		if format[i] != '%' {
			b = append(b, format[i])
			continue
		}
		i++
		if i < len(format) && format[i] == '%' {
			b = append(b, '%')
			continue
		}
		n++
		if n > L.GetTop() {
			arg.Error(L, n, "no value")
		}
		var spec formatSpec
		spec, i = parseSpec(L, format, i)
		conversion := byte(0)
		if i < len(format) {
			conversion = format[i]
		}
		before := len(b)
		b = vm.formatItem(L, b, spec, conversion, n)
		vm.budget.Use(1 + (len(b)-before)>>6)
		vm.room(L, len(b))
	}
	vm.pushScratch(L, b)
	return 1
}

// parseSpec reads flags, width and precision and returns the position of the conversion.
func parseSpec(L *lua.LState, format string, i int) (spec formatSpec, at int) {
	start := i
	at = i
flags:
	for ; at < len(format); at++ {
		switch format[at] {
		case '-':
			spec.minus = true
		case '+':
			spec.plus = true
		case ' ':
			spec.blank = true
		case '#':
			spec.sharp = true
		case '0':
			spec.zero = true
		default:
			break flags
		}
	}
	if at-start > 5 {
		arg.Raise(L, "invalid format (repeated flags)")
	}
	digits := func() (n int) {
		for range 2 {
			if at < len(format) && isDigit(format[at]) {
				n = n*10 + int(format[at]-'0')
				at++
			}
		}
		return n
	}
	spec.width = digits()
	spec.precision = -1
	if at < len(format) && format[at] == '.' {
		at++
		spec.precision = digits()
	}
	if at < len(format) && isDigit(format[at]) {
		arg.Raise(L, "invalid format (width or precision too long)")
	}
	return spec, at
}

func (vm *VM) formatItem(L *lua.LState, b []byte, spec formatSpec, conversion byte, n int) []byte {
	switch conversion {
	case 'c':
		item := spec.pad([]byte{character(arg.Number(L, n))}, false)
		for i, c := range item {
			if c == 0 { // Lua passes the item to printf as a C string
				item = item[:i]
				break
			}
		}
		return append(b, item...)
	case 'd', 'i':
		v := arg.Truncate(arg.Number(L, n))
		sign := ""
		u := uint64(v)
		switch {
		case v < 0:
			sign, u = "-", -u
		case spec.plus:
			sign = "+"
		case spec.blank:
			sign = " "
		}
		return append(b, spec.integer(sign, strconv.FormatUint(u, 10))...)
	case 'u':
		return append(b, spec.integer("", strconv.FormatUint(unsigned(arg.Number(L, n)), 10))...)
	case 'o':
		digits := strconv.FormatUint(unsigned(arg.Number(L, n)), 8)
		switch {
		case !spec.sharp || spec.precision > len(digits):
		case digits != "0":
			spec.precision = len(digits) + 1
		case spec.precision == 0:
			spec.precision = 1
		}
		return append(b, spec.integer("", digits)...)
	case 'x', 'X':
		v := unsigned(arg.Number(L, n))
		digits, prefix := strconv.FormatUint(v, 16), ""
		if spec.sharp && v != 0 {
			prefix = "0x"
		}
		if conversion == 'X' {
			digits, prefix = strings.ToUpper(digits), strings.ToUpper(prefix)
		}
		return append(b, spec.integer(prefix, digits)...)
	case 'e', 'E', 'f', 'g', 'G':
		return append(b, spec.float(arg.Number(L, n), conversion)...)
	case 'q':
		return appendQuoted(b, arg.String(L, n))
	case 's':
		s := arg.String(L, n)
		if spec.precision < 0 && len(s) >= 100 {
			return append(b, s...) // passed on as it is
		}
		s = arg.CString(s)
		if spec.precision >= 0 && spec.precision < len(s) {
			s = s[:spec.precision]
		}
		return append(b, spec.pad([]byte(s), false)...)
	}
	option := ""
	if conversion != 0 {
		option = string([]byte{conversion})
	}
	arg.Raise(L, "invalid option '%%%s' to 'format'", option)
	return b
}

// character converts a double to a C int, as amd64 does, and the int to a byte.
func character(f float64) byte {
	if f > math.MinInt32-1 && f < math.MaxInt32+1 {
		return byte(int32(f))
	}
	return 0 // the low byte of the smallest int
}

// unsigned converts a double to C's unsigned long as amd64 does.
func unsigned(f float64) uint64 {
	if f >= 1<<63 {
		return uint64(arg.Truncate(f-(1<<63))) ^ 1<<63
	}
	return uint64(arg.Truncate(f))
}

// pad fills an item up to the width. zeros puts zeros behind sign or prefix; the caller has counted them out.
func (spec formatSpec) pad(item []byte, _ bool) []byte {
	missing := spec.width - len(item)
	if missing <= 0 {
		return item
	}
	blanks := strings.Repeat(" ", missing)
	if spec.minus {
		return append(item, blanks...)
	}
	return append([]byte(blanks), item...)
}

// integer puts sign or prefix, zeros and digits together.
func (spec formatSpec) integer(prefix, digits string) []byte {
	if spec.precision == 0 && digits == "0" {
		digits = ""
	}
	zeros := spec.precision - len(digits)
	if spec.precision < 0 && spec.zero && !spec.minus {
		zeros = spec.width - len(prefix) - len(digits)
	}
	if zeros > 0 {
		digits = strings.Repeat("0", zeros) + digits
	}
	return spec.pad([]byte(prefix+digits), false)
}

func (spec formatSpec) float(f float64, conversion byte) []byte {
	sign := ""
	switch {
	case math.Signbit(f):
		sign = "-"
		f = -f
	case spec.plus:
		sign = "+"
	case spec.blank:
		sign = " "
	}
	upper := conversion == 'E' || conversion == 'G'
	var text string
	finite := true
	switch {
	case f != f:
		text, finite = "nan", false
	case math.IsInf(f, 0):
		text, finite = "inf", false
	default:
		precision := spec.precision
		if precision < 0 {
			precision = 6
		}
		text = spec.digits(f, conversion|0x20, precision)
	}
	if upper {
		text = strings.ToUpper(text)
	}
	if spec.zero && !spec.minus && finite {
		if zeros := spec.width - len(sign) - len(text); zeros > 0 {
			text = strings.Repeat("0", zeros) + text
		}
	}
	return spec.pad([]byte(sign+text), false)
}

// digits formats a finite number that is not negative.
func (spec formatSpec) digits(f float64, conversion byte, precision int) string {
	if conversion != 'g' {
		text := strconv.FormatFloat(f, conversion, precision, 64)
		if spec.sharp && precision == 0 { // the point stays
			mantissa, exponent, found := strings.Cut(text, "e")
			text = mantissa + "."
			if found {
				text += "e" + exponent
			}
		}
		return text
	}
	precision = max(precision, 1)
	if !spec.sharp {
		return strconv.FormatFloat(f, 'g', precision, 64)
	}
	// With #, trailing zeros stay: use the form that %g would choose, with all requested digits.
	scientific := strconv.FormatFloat(f, 'e', precision-1, 64)
	mantissa, exponent, _ := strings.Cut(scientific, "e")
	x, _ := strconv.Atoi(exponent)
	if x < -4 || x >= precision {
		if !strings.Contains(mantissa, ".") {
			mantissa += "."
		}
		return mantissa + "e" + exponent
	}
	text := strconv.FormatFloat(f, 'f', precision-1-x, 64)
	if !strings.Contains(text, ".") {
		text += "."
	}
	return text
}

// appendQuoted writes a string that Lua can read back.
func appendQuoted(b []byte, s string) []byte {
	b = append(b, '"')
	for i := range len(s) {
		switch c := s[i]; c {
		case '"', '\\', '\n':
			b = append(b, '\\', c)
		case '\r':
			b = append(b, `\r`...)
		case 0:
			b = append(b, `\000`...)
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}
