package resp

// The appender of replies.

import (
	"slices"
	"strconv"

	"github.com/limitkv/limitkv/resp/number"
	"github.com/tidwall/redcon"
)

// Writer appends replies to Buf, in the form that Proto asks for. The zero
// value writes RESP2. Each method writes exactly one reply, except Array, Map,
// Set, Push and Attribute, which write the head of one: the caller writes as
// many elements as it announced (twice as many for Map and Attribute).
type Writer struct {
	Buf   []byte
	Proto int // 2 or 3; 0 means 2

	sharing bool    // long strings are sent without a copy
	shared  []share // in order
	bytes   int     // total size of shared
}

// share is a string that is not in Buf, but is sent before Buf[at].
type share struct {
	at int
	b  []byte
}

// Int appends an integer.
func (w *Writer) Int(n int64) { w.Buf = redcon.AppendInt(w.Buf, n) }

// Bulk appends a string of any bytes.
func (w *Writer) Bulk(b []byte) { w.Buf = redcon.AppendBulk(w.Buf, b) }

// sharedBytes is the size from which a string is sent without a copy. To copy a shorter one takes little time.
const sharedBytes = 1 << 20

// Shares tells whether a string of n bytes need not be copied.
func (w *Writer) Shares(n int) bool { return w.sharing && n >= sharedBytes }

// BulkShared is Bulk for bytes that never change again, and that Shares accepts. It does not copy them. A batch ends after
// such a reply, since Conn.Full counts it.
func (w *Writer) BulkShared(b []byte) {
	w.head('$', len(b))
	w.shared = append(w.shared, share{len(w.Buf), b[:len(b):len(b)]})
	w.bytes += len(b)
	w.Buf = append(w.Buf, '\r', '\n')
}

// Len is how many bytes were appended, including shared ones.
func (w *Writer) Len() int { return len(w.Buf) + w.bytes }

// From returns all bytes appended since Mark returned mark, including shared ones. The result may be part of Buf.
func (w *Writer) From(mark int) []byte {
	if len(w.shared) == 0 {
		return w.Buf[mark:]
	}
	b := make([]byte, 0, w.Len()-mark)
	for _, s := range w.shared {
		if s.at >= mark {
			b = append(append(b, w.Buf[mark:s.at]...), s.b...)
			mark = s.at
		}
	}
	return append(b, w.Buf[mark:]...)
}

// Whole returns the position that mark will have after Flatten.
func (w *Writer) Whole(mark int) int {
	n := mark
	for _, s := range w.shared {
		if s.at < mark {
			n += len(s.b)
		}
	}
	return n
}

// Flatten copies the shared bytes, so that all replies are in Buf.
func (w *Writer) Flatten() {
	if len(w.shared) > 0 {
		w.Buf = w.From(0)
		w.shared, w.bytes = nil, 0
	}
}

// moved adjusts the positions of shared strings after n bytes were inserted at mark.
func (w *Writer) moved(mark, n int) {
	for i := range w.shared {
		if w.shared[i].at > mark {
			w.shared[i].at += n
		}
	}
}

// BulkString is Bulk for a string.
func (w *Writer) BulkString(s string) { w.Buf = redcon.AppendBulkString(w.Buf, s) }

// BulkInt appends an integer in the form of a bulk string.
func (w *Writer) BulkInt(n int64) {
	var digits [20]byte
	w.Bulk(strconv.AppendInt(digits[:0], n, 10))
}

// Status appends a simple string; line ends in it become blanks.
func (w *Writer) Status(s string) { w.Buf = redcon.AppendString(w.Buf, s) }

// OK appends the status OK.
func (w *Writer) OK() { w.Buf = append(w.Buf, "+OK\r\n"...) }

// Error appends an error. s is all of its text, the code in front included
// ("ERR syntax error"); line ends in it become blanks.
func (w *Writer) Error(s string) { w.Buf = redcon.AppendError(w.Buf, s) }

// Null appends a null: in RESP2 the null bulk string.
func (w *Writer) Null() {
	if w.Proto == 3 {
		w.Buf = append(w.Buf, "_\r\n"...)
	} else {
		w.Buf = append(w.Buf, "$-1\r\n"...)
	}
}

// NullArray appends a null: in RESP2 the null array.
func (w *Writer) NullArray() {
	if w.Proto == 3 {
		w.Buf = append(w.Buf, "_\r\n"...)
	} else {
		w.Buf = append(w.Buf, "*-1\r\n"...)
	}
}

// Array appends the head of an array of n elements.
func (w *Writer) Array(n int) { w.Buf = redcon.AppendArray(w.Buf, n) }

// ArrayFrom makes everything appended since Mark returned mark the n elements
// of an array: for callers that know the number only at the end.
func (w *Writer) ArrayFrom(mark, n int) {
	var head [24]byte
	w.insert(mark, redcon.AppendArray(head[:0], n))
}

// MapFrom is ArrayFrom for the n pairs of a map.
func (w *Writer) MapFrom(mark, n int) {
	if w.Proto != 3 {
		w.ArrayFrom(mark, 2*n)
		return
	}
	head := append(make([]byte, 0, 24), '%')
	w.insert(mark, append(strconv.AppendInt(head, int64(n), 10), '\r', '\n'))
}

func (w *Writer) insert(mark int, head []byte) {
	from := len(w.Buf)
	w.Buf = append(w.Buf, head...)
	copy(w.Buf[mark+len(head):], w.Buf[mark:from])
	copy(w.Buf[mark:], head)
	w.moved(mark, len(head))
}

// Map appends the head of a map of n pairs: in RESP2 an array of 2n elements.
func (w *Writer) Map(n int) {
	if w.Proto == 3 {
		w.head('%', n)
	} else {
		w.Array(2 * n)
	}
}

// Set appends the head of a set of n elements: in RESP2 an array.
func (w *Writer) Set(n int) {
	if w.Proto == 3 {
		w.head('~', n)
	} else {
		w.Array(n)
	}
}

// Push appends the head of an out-of-band message: in RESP2 an array.
func (w *Writer) Push(n int) {
	if w.Proto == 3 {
		w.head('>', n)
	} else {
		w.Array(n)
	}
}

// Attribute appends the head of n pairs that precede a reply. It must not be
// called in RESP2, which has no attributes.
func (w *Writer) Attribute(n int) { w.head('|', n) }

func (w *Writer) head(kind byte, n int) {
	w.Buf = append(w.Buf, kind)
	w.Buf = strconv.AppendInt(w.Buf, int64(n), 10)
	w.Buf = append(w.Buf, '\r', '\n')
}

// Double appends a number in Redis's shortest form: in RESP2 a bulk string.
func (w *Writer) Double(f float64) {
	if w.Proto == 3 {
		w.Buf = append(w.Buf, ',')
		w.Buf = append(number.AppendDouble(w.Buf, f), '\r', '\n')
		return
	}
	var text [32]byte
	w.Bulk(number.AppendDouble(text[:0], f))
}

// DoubleText appends a number that is already formatted, like INCRBYFLOAT's: in RESP2 a
// bulk string.
func (w *Writer) DoubleText(text []byte) {
	if w.Proto == 3 {
		w.Buf = append(w.Buf, ',')
		w.Buf = append(w.Buf, text...)
		w.Buf = append(w.Buf, '\r', '\n')
		return
	}
	w.Bulk(text)
}

// Bool appends a truth value: in RESP2 the integer 1 or 0.
func (w *Writer) Bool(v bool) {
	switch {
	case w.Proto == 3 && v:
		w.Buf = append(w.Buf, "#t\r\n"...)
	case w.Proto == 3:
		w.Buf = append(w.Buf, "#f\r\n"...)
	case v:
		w.Buf = append(w.Buf, ":1\r\n"...)
	default:
		w.Buf = append(w.Buf, ":0\r\n"...)
	}
}

// BigNumber appends a decimal integer of any size: in RESP2 a bulk string.
func (w *Writer) BigNumber(decimal string) {
	if w.Proto == 3 {
		w.Buf = append(w.Buf, '(')
		w.Buf = append(w.Buf, decimal...)
		w.Buf = append(w.Buf, '\r', '\n')
		return
	}
	w.BulkString(decimal)
}

// Verbatim appends text with its format, three letters such as "txt" or "mkd":
// in RESP2 a bulk string without the format.
func (w *Writer) Verbatim(format, s string) {
	mark := w.Mark()
	w.Buf = append(w.Buf, s...)
	w.MakeVerbatim(mark, format)
}

// MakeVerbatim makes everything appended since Mark returned mark the text of a verbatim string. So a caller can append long
// text piece by piece, without a copy of its own.
func (w *Writer) MakeVerbatim(mark int, format string) {
	n := len(w.Buf) - mark
	var room [32]byte
	head := Writer{Buf: room[:0]}
	if w.Proto == 3 {
		head.head('=', n+4)
		head.Buf = append(append(head.Buf, (format + "   ")[:3]...), ':')
	} else {
		head.head('$', n)
	}
	w.Insert(mark, head.Buf)
	w.Buf = append(w.Buf, "\r\n"...)
}

// Raw appends bytes that are already replies.
func (w *Writer) Raw(b []byte) { w.Buf = append(w.Buf, b...) }

// Adopt is Raw for bytes that the caller gives away. If they are many and Buf is empty, they become Buf without a copy.
func (w *Writer) Adopt(b []byte) {
	if len(w.Buf) == 0 && len(b) > adoptedBytes {
		w.Buf = b
	} else {
		w.Raw(b)
	}
}

// adoptedBytes is the most that Adopt always copies: the copy costs less than a new buffer that is not in the processor's cache.
const adoptedBytes = 64 << 10

// Mark returns where the next reply will start, for Cut.
func (w *Writer) Mark() int { return len(w.Buf) }

// Cut removes everything appended since Mark returned mark.
func (w *Writer) Cut(mark int) {
	w.Buf = w.Buf[:mark]
	for n := len(w.shared); n > 0 && w.shared[n-1].at > mark; n-- {
		w.bytes -= len(w.shared[n-1].b)
		w.shared[n-1] = share{}
		w.shared = w.shared[:n-1]
	}
}

// Insert inserts bytes before everything appended since Mark returned mark.
func (w *Writer) Insert(mark int, b []byte) {
	w.Buf = slices.Insert(w.Buf, mark, b...)
	w.moved(mark, len(b))
}

// ParseInt reads an integer as strictly as Redis does.
func ParseInt(b []byte) (int64, bool) { return number.ParseInt(b) }

// AppendCommand appends a command as clients send it: an array of bulk strings.
func AppendCommand(b []byte, args ...[]byte) []byte {
	b = redcon.AppendArray(b, len(args))
	for _, a := range args {
		b = redcon.AppendBulk(b, a)
	}
	return b
}
