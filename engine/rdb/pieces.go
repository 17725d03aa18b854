package rdb

// Large values are encoded in pieces. The holder of the lock of the value's shard begins Pieces, which is quick. The
// rest is encoded later, a little each time the lock is held, while the value may change. Each structure passes its
// elements as they were at the beginning (its Image). A list, a stream and a string have an immutable image, since a
// change first copies what it would modify: encoding that needs no lock.

import (
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/delayqueue"
	"github.com/limitkv/limitkv/engine/hash"
	"github.com/limitkv/limitkv/engine/list"
	"github.com/limitkv/limitkv/engine/set"
	"github.com/limitkv/limitkv/engine/stream"
	"github.com/limitkv/limitkv/zset"
)

// Pieces are the file entry of a large value, as far as it is encoded. They are used only under the lock of the value's
// shard, except by Writer.Image.
type Pieces struct {
	enc  encoder
	db   int
	next func(count int) bool
	end  func()
	done bool
	// rest, if not nil, encodes what follows the key from an immutable image. Then next is nil.
	rest func(w *encoder)
	// walked is how many bytes there were after the last piece. early is how many bytes were added because the value
	// changed.
	walked, early int
}

// LargeFrom is the least number of elements of a value that is written in pieces; LargeBytes is the least number of
// bytes of a list, a stream or a string. pieceElements is how many elements are encoded at once, in about 50
// microseconds.
const (
	LargeFrom     = 512
	LargeBytes    = 32 << 10
	pieceElements = 256
)

// NewPieces begins the entry of a key of the view's database. It returns nil if the value is too small or has an
// unsuitable form: such a value is better written at once.
func NewPieces(format Format, v *engine.View, e engine.Entry) *Pieces {
	if !large(e) {
		return nil
	}
	p := &Pieces{enc: encoder{Format: format}, db: v.DB}
	if !p.begin(v, e) {
		return nil
	}
	return p
}

func large(e engine.Entry) bool {
	if e.InBytes() {
		return false
	}
	switch o := e.Object().(type) {
	case *list.List:
		return o.Encoding() == "quicklist" && o.MemoryEstimate() >= LargeBytes
	case *stream.Stream:
		return o.MemoryEstimate() >= LargeBytes
	case interface{ Len() int }:
		return o.Len() >= LargeFrom
	}
	return e.Kind() == engine.KindString && e.Len() >= LargeBytes
}

func (p *Pieces) begin(v *engine.View, e engine.Entry) bool {
	w := &p.enc
	switch o := e.Object().(type) {
	case *zset.Set:
		if o.Encoding() == "listpack" {
			return false
		}
		m := o.Image(func(member []byte, score float64) {
			w.string(member)
			w.double(score)
		})
		if m == nil {
			return false
		}
		w.head(v, e)
		w.len(uint64(o.Len()))
		p.next, p.end = m.Next, m.End
	case *set.Set:
		m := o.Image(func(member []byte) { w.string(member) })
		if m == nil {
			return false
		}
		w.head(v, e)
		w.len(uint64(o.Len()))
		p.next, p.end = m.Next, m.End
	case *hash.Hash:
		var t byte
		first := o.NextDue()
		m := o.Image(func(field, value []byte, at int64) { w.field(t, first, field, value, at) })
		if m == nil {
			return false
		}
		if t = w.head(v, e); t == typeHashDue {
			w.millis(first)
		}
		w.len(uint64(o.Len()))
		p.next, p.end = m.Next, m.End
	case *delayqueue.Queue:
		p.queue(v, e, o)
	case *list.List:
		t := w.head(v, e)
		m := o.Image()
		p.rest, p.end = func(w *encoder) { w.list(&m, t) }, func() {}
	case *stream.Stream:
		t := w.head(v, e)
		m := o.Image()
		p.rest, p.end = func(w *encoder) { w.stream(m, t) }, func() {}
	default:
		if e.Kind() != engine.KindString {
			return false
		}
		w.head(v, e)
		b, done := v.Share(e)
		p.rest, p.end = func(w *encoder) { w.string(b) }, done
	}
	return true
}

// queue begins a queue. It encodes the tail at once. Entries that change before their state has its turn wait for that
// turn.
func (p *Pieces) queue(v *engine.View, e engine.Entry, q *delayqueue.Queue) {
	w := &p.enc
	w.head(v, e)
	w.queueHead(q)
	tail := encoder{Format: w.Format}
	tail.queueTail(q)
	states := delayqueue.SavedStates
	var (
		turn int // the index of the state that has its turn
		of   [delayqueue.Behind + 1]struct {
			stored int
			before int64 // the time of the last entry
			later  encoder
		}
	)
	for _, state := range states {
		of[state].stored, of[state].later.Format = q.Stored(state), w.Format
	}
	m := q.Image(func(s delayqueue.Saved) {
		x := &of[s.State]
		to := w
		if s.State != states[turn] {
			to = &x.later
		}
		to.queued(&s, x.before)
		x.before = s.AtMicros
	})
	w.number(uint64(of[states[0]].stored))
	p.end = m.End
	p.next = func(count int) bool {
		if m.Next(states[turn], count) {
			return true
		}
		if turn++; turn == len(states) {
			turn-- // no state follows
			w.b = append(w.b, tail.b...)
			return false
		}
		x := &of[states[turn]]
		w.number(uint64(x.stored))
		w.b = append(w.b, x.later.b...)
		p.early += len(x.later.b)
		x.later.b = nil
		return true
	}
}

// Next encodes a piece. It returns false after the last one.
func (p *Pieces) Next() bool {
	if !p.done {
		p.early += len(p.enc.b) - p.walked
		p.done = !p.next(pieceElements)
		p.walked = len(p.enc.b)
	}
	return !p.done
}

// End ends the pieces, whether or not they are complete.
func (p *Pieces) End() { p.end() }

// Len is how many encoded bytes wait for Take.
func (p *Pieces) Len() int { return len(p.enc.b) }

// Take returns what was encoded since the last call. The next bytes are encoded into room.
func (p *Pieces) Take(room []byte) []byte {
	b := p.enc.b
	p.enc.b, p.walked = room[:0], 0
	return b
}

// Early is how many bytes were encoded early, because an element was about to change.
func (p *Pieces) Early() int { return p.early }

// DB is the key's database.
func (p *Pieces) DB() int { return p.db }

// Begin begins an entry that Pieces encode, for a key of a database. Until all of its bytes were passed to Piece,
// nothing else may be written.
func (w *Writer) Begin(db int) error {
	w.Select(db)
	w.keys++
	return w.Flush()
}

// Piece writes bytes from Pieces.
func (w *Writer) Piece(b []byte) error {
	w.write(b)
	return w.err
}

// Image writes a whole entry if its Pieces have an immutable image, which needs no lock. It returns false for others.
func (w *Writer) Image(p *Pieces) (is bool, err error) {
	if p.rest == nil {
		return false, nil
	}
	w.Select(p.db)
	w.keys++
	w.enc.b = append(w.enc.b, p.enc.b...)
	if p.rest(&w.enc); cap(w.enc.b) > blockKeepMax { // a large string made the buffer large
		w.write(w.enc.b)
		w.enc.b = nil
	}
	return true, w.err
}
