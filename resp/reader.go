package resp

// Reading replies: scripts read the reply of redis.call, and clients read replies from the network. A Reader walks over the
// bytes and allocates nothing; its caller builds what it needs from the values.

import (
	"bytes"
	"errors"
	"math"

	"github.com/limitkv/limitkv/resp/number"
)

// Kind is what a reply is: the first byte of it.
type Kind byte

// The kinds. Map and Attribute announce pairs, but Value.N counts single values.
const (
	KindStatus    Kind = '+'
	KindError     Kind = '-'
	KindInt       Kind = ':'
	KindBulk      Kind = '$'
	KindArray     Kind = '*'
	KindNull      Kind = '_'
	KindDouble    Kind = ','
	KindBool      Kind = '#'
	KindBigNumber Kind = '('
	KindBulkError Kind = '!'
	KindVerbatim  Kind = '='
	KindMap       Kind = '%'
	KindSet       Kind = '~'
	KindPush      Kind = '>'
	KindAttribute Kind = '|'
)

// Value is one reply, or the head of one with elements.
type Value struct {
	Kind Kind

	// Null is set for KindNull and for RESP2's null bulk string and null array;
	// Kind distinguishes them.
	Null bool

	// Data is the text of a status, error, number or string; it aliases the
	// reader's bytes. The text of a verbatim string starts behind its format.
	Data []byte

	// Format is the format of a verbatim string, three bytes.
	Format []byte

	// N is how many of the next values belong to this one: for a map, twice the number of
	// pairs. The values of an attribute are followed by the reply that it describes.
	N int
}

// Int is the value of an integer.
func (v Value) Int() int64 {
	n, _ := number.ParseInt(v.Data)
	return n
}

// Double is the value of a double; "nan" is not a number.
func (v Value) Double() float64 {
	if f, ok := number.ParseDouble(v.Data); ok {
		return f
	}
	return nan
}

// Bool is the value of a boolean.
func (v Value) Bool() bool { return len(v.Data) == 1 && v.Data[0] == 't' }

// Errors of reading replies.
var (
	// ErrIncomplete says that the reply is longer than the bytes read so far.
	ErrIncomplete = errors.New("resp: incomplete reply")

	// ErrReply says that the bytes are not a valid reply.
	ErrReply = errors.New("resp: malformed reply")
)

var nan = math.NaN()

// replyElementsMax is the most elements that a reply may announce.
const replyElementsMax = 1 << 32

// Reader walks over replies.
type Reader struct {
	buf []byte
	pos int
}

// NewReader returns a reader of the replies in buf.
func NewReader(buf []byte) Reader { return Reader{buf: buf} }

// Done tells whether all has been read.
func (r *Reader) Done() bool { return r.pos == len(r.buf) }

// Next reads the next value. The elements of an aggregate are the next v.N
// values, each with its own elements. Nothing is consumed if there is an error.
func (r *Reader) Next() (v Value, err error) {
	rest := r.buf[r.pos:]
	end := bytes.IndexByte(rest, '\n')
	if end < 0 {
		return v, ErrIncomplete
	}
	if end < 2 || rest[end-1] != '\r' {
		return v, ErrReply
	}
	v.Kind, v.Data = Kind(rest[0]), rest[1:end-1:end-1]
	size := end + 1
	ok := true
	switch v.Kind {
	case KindStatus, KindError:
	case KindInt:
		_, ok = number.ParseInt(v.Data)
	case KindDouble:
		_, ok = number.ParseDouble(v.Data)
		ok = ok || string(v.Data) == "nan" || string(v.Data) == "-nan"
	case KindBigNumber:
		ok = allDigits(v.Data)
	case KindBool:
		ok = string(v.Data) == "t" || string(v.Data) == "f"
	case KindNull:
		v.Null, ok = true, len(v.Data) == 0
	case KindBulk, KindBulkError, KindVerbatim:
		n, isInt := number.ParseInt(v.Data)
		if isInt && n == -1 && v.Kind == KindBulk {
			v.Null, v.Data = true, nil
			break
		}
		if !isInt || n < 0 || n > CommandBytesMax {
			return Value{}, ErrReply
		}
		if int64(len(rest)-size) < n+2 {
			return Value{}, ErrIncomplete
		}
		v.Data = rest[size : size+int(n) : size+int(n)]
		size += int(n) + 2
		ok = rest[size-2] == '\r' && rest[size-1] == '\n'
		if v.Kind == KindVerbatim {
			if n < 4 || v.Data[3] != ':' {
				return Value{}, ErrReply
			}
			v.Format, v.Data = v.Data[:3:3], v.Data[4:]
		}
	case KindArray, KindMap, KindSet, KindPush, KindAttribute:
		n, isInt := number.ParseInt(v.Data)
		v.Data = nil
		if isInt && n == -1 && v.Kind == KindArray {
			v.Null = true
			break
		}
		ok = isInt && n >= 0 && n <= replyElementsMax
		v.N = int(n)
		if v.Kind == KindMap || v.Kind == KindAttribute {
			v.N *= 2
		}
	default:
		ok = false
	}
	if !ok {
		return Value{}, ErrReply
	}
	r.pos += size
	return v, nil
}

func allDigits(b []byte) bool {
	if len(b) > 0 && b[0] == '-' {
		b = b[1:]
	}
	for _, c := range b {
		if c-'0' > 9 {
			return false
		}
	}
	return len(b) > 0
}

// Skip skips one reply with all its elements. After an error, the
// position of the reader is somewhere inside that reply.
func (r *Reader) Skip() error {
	for open := 1; open > 0; {
		v, err := r.Next()
		if err != nil {
			return err
		}
		open += v.N
		if v.Kind != KindAttribute {
			open--
		}
	}
	return nil
}

// Scanner finds the end of a reply that arrives in pieces. It reads each
// complete value of the reply once.
type Scanner struct {
	pos  int
	open int // values still to come; 0 before the first
}

// Scan returns the size of the reply at the start of buf. After ErrIncomplete, the caller
// calls it again with the same bytes and more behind them.
func (s *Scanner) Scan(buf []byte) (n int, err error) {
	r := Reader{buf, s.pos}
	if s.open == 0 {
		s.open = 1
	}
	for s.open > 0 {
		v, err := r.Next()
		if err != nil {
			return 0, err
		}
		s.pos = r.pos
		s.open += v.N
		if v.Kind != KindAttribute {
			s.open--
		}
	}
	n = s.pos
	*s = Scanner{}
	return n, nil
}
