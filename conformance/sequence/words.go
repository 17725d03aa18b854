// What stands for the words of a template. Pools are small, so that commands meet each other's keys, fields and
// members; limits of the types (int64, listpack sizes, infinities) are in them.

package sequence

import (
	"strconv"
	"strings"
)

// strayOneIn is how rarely a key is one of another type.
const strayOneIn = 30

// keysOfType is how many keys there are of each type.
const keysOfType = 5

// lexPrefix begins the keys of sorted sets whose members all have the same score: what a LEX range or SORT ALPHA of
// others replies is left open.
const lexPrefix = "x"

func keyWord(prefix string) func(*generator) string {
	return func(g *generator) string {
		p := prefix
		if g.IntN(strayOneIn) == 0 {
			p = []string{"s", "h", "z", "l", "t"}[g.IntN(5)]
		}
		return p + strconv.Itoa(g.IntN(keysOfType))
	}
}

func pick(pool ...string) func(*generator) string {
	return func(g *generator) string { return pool[g.IntN(len(pool))] }
}

func numbers(from, to int) func(*generator) string {
	return func(g *generator) string { return strconv.Itoa(from + g.IntN(to-from+1)) }
}

// either takes a value of the first kind three times out of four.
func either(usual, other func(*generator) string) func(*generator) string {
	return func(g *generator) string {
		if g.IntN(4) > 0 {
			return usual(g)
		}
		return other(g)
	}
}

var (
	long    = strings.Repeat("long-", 15)
	binary  = "\x00\xff\r\n\x80"
	texts   = pick("a", "b", "abc", "foobar", "Hello World", "", binary, long, "0", "1", "-1", "10", "3.0", "1e5", "007", " 1", "x\x00y", "mynewtext", "ohmytext")
	int64s  = pick("9223372036854775807", "-9223372036854775808", "9223372036854775806", "4294967296", "-2147483648", "1000000000000")
	floats  = pick("0.1", "0.2", "-0.5", "1.5", "3.14", "1e10", "1e-5", "-2.25", "100.125", "5", "-3", "0.30000000000000004", "1e17")
	scores  = pick("0", "1", "-1", "1.5", "2", "3", "10", "100", "-0.5", "0.1", "1e20", "inf", "-inf", "3.0000000001", "1e-10", "9007199254740993", "-0")
	members = pick("a", "b", "c", "d", "e", "f", "g", "m1", "m2", "m10", "", "aa", "B", binary, "12", "-7", "123456789012")
	fields  = pick("f1", "f2", "f3", "f4", "f5", "n", "m", "", binary, "17")
)

// words are the kinds of value a template may name.
var words = map[string]func(*generator) string{
	"str":  keyWord("s"),
	"hash": keyWord("h"),
	"zset": keyWord("z"),
	"list": keyWord("l"),
	"set":  keyWord("t"),
	"lex":  func(g *generator) string { return lexPrefix + strconv.Itoa(g.IntN(keysOfType)) },
	"any":  func(g *generator) string { return keyWord([]string{"s", "h", "z", "l", "t"}[g.IntN(5)])(g) },

	"value":   either(texts, either(numbers(-20, 20), either(floats, int64s))),
	"big":     func(g *generator) string { return strings.Repeat("v", 60+g.IntN(10)) },
	"int":     either(numbers(-10, 10), either(numbers(-1000, 100000), int64s)),
	"small":   numbers(0, 8),
	"count":   numbers(1, 6),
	"float":   floats,
	"score":   scores,
	"weight":  pick("1", "2", "-1", "0.5", "0", "inf", "-inf"),
	"member":  members,
	"name":    pick("a", "b", "c", "d", "e", "f", "g", "m1", "m2", "m10", "", "aa", "B", "12", "-7", "\x80\xff", "z z"),
	"field":   fields,
	"index":   either(numbers(-6, 6), pick("100", "-100", "9223372036854775807", "-9223372036854775808")),
	"bit":     pick("0", "1"),
	"bitpos":  either(numbers(0, 70), pick("100", "1000", "8")),
	"offset":  either(numbers(0, 20), pick("100", "536870912", "-1")),
	"seconds": numbers(1000, 2000000),
	"millis":  numbers(2000000, 2000000000),
	"at":      numbers(4102444800, 4102444900),
	"pat":     numbers(4102444800000, 4102444900000),
	"past":    pick("1", "0", "1000"),
	"min":     pick("-inf", "0", "1", "(1", "(0", "2", "(-inf", "-1", "5"),
	"max":     pick("+inf", "inf", "3", "(3", "10", "(10", "2", "(inf", "1"),
	"lexmin":  pick("-", "[a", "(a", "[b", "[", "(m", "+"),
	"lexmax":  pick("+", "[c", "(c", "[g", "[m2", "(z", "-"),
	"pattern": pick("*", "f*", "?1", "[a-c]*", "m*", "*\x00*", "[^a]", "nothing", "a", "\\*"),
	"bits":    pick("u1", "i1", "u8", "i8", "i5", "u4", "u16", "i32", "u63", "i64", "u2", "i3"),
	"bitslot": pick("0", "1", "7", "8", "13", "#0", "#1", "#3", "64", "100"),
	"cursor":  pick("0"),
	"db":      pick("0", "1", "2"),
}
