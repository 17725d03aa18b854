package rdb

// Large values in pieces: whoever holds the lock of a large value's shard begins Pieces,
// which is quick, and the rest is encoded later, a little at each hold of the lock,
// while the value changes. Each structure hands its elements over as they were when the
// pieces began (its Image). A list, a stream and a string give an image that does not
// change at all, since what changes of them is copied first: it needs no lock.

import (
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/delayqueue"
	"github.com/limitkv/limitkv/engine/hash"
	"github.com/limitkv/limitkv/engine/list"
	"github.com/limitkv/limitkv/engine/set"
	"github.com/limitkv/limitkv/engine/stream"
	"github.com/limitkv/limitkv/zset"
)

// Pieces are the entry of a file that a large value is, as far as it is encoded. All
// that is done with them is done under the lock of the value's shard.
type Pieces struct {
	enc  encoder
	db   int
	next func(count int) bool
	end  func()
	done bool
	// rest, if not nil, encodes what follows the key: there is an image that does not change, and no next.
	rest func(w *encoder)
	// walked is how many bytes there were after the last piece, early how many whoever changed the value has added.
	walked, early int
}

// LargeFrom is how many elements a value has at least that is written in pieces,
// LargeBytes how many bytes if it is a list, a stream or a string, and pieceElements how
// many elements are encoded at once: some 50 microseconds.
const (
	LargeFrom     = 512
	LargeBytes    = 32 << 10
	pieceElements = 256
)

// NewPieces begins the entry of a key of the view's database, nil if its value is none
// for it: what is short is better written at once.
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

// queue begins a queue. What comes behind its entries is encoded at once, and what
// changes of a state that does not have its turn waits for that.
func (p *Pieces) queue(v *engine.View, e engine.Entry, q *delayqueue.Queue) {
	w := &p.enc
	w.head(v, e)
	w.queueHead(q)
	tail := encoder{Format: w.Format}
	tail.queueTail(q)
	states := delayqueue.SavedStates
	var (
		turn int // the state that has it
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
			turn-- // nothing follows
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

// Next encodes a piece. It reports false when that was the last.
func (p *Pieces) Next() bool {
	if !p.done {
		p.early += len(p.enc.b) - p.walked
		p.done = !p.next(pieceElements)
		p.walked = len(p.enc.b)
	}
	return !p.done
}

// End ends the pieces: all is written, or the rest given up.
func (p *Pieces) End() { p.end() }

// Len is how many bytes have gathered.
func (p *Pieces) Len() int { return len(p.enc.b) }

// Take returns what has gathered since it was called last. What it was called with is
// used for what comes.
func (p *Pieces) Take(room []byte) []byte {
	b := p.enc.b
	p.enc.b, p.walked = room[:0], 0
	return b
}

// Early is how many bytes were encoded early, since what they tell was about to change.
func (p *Pieces) Early() int { return p.early }

// DB is the key's database.
func (p *Pieces) DB() int { return p.db }

// Begin begins with what Pieces of a key of a database will say. Nothing else is written
// until all of it was given to Piece.
func (w *Writer) Begin(db int) error {
	w.Select(db)
	w.keys++
	return w.Flush()
}

// Piece writes what Pieces have gathered.
func (w *Writer) Piece(b []byte) error {
	w.write(b)
	return w.err
}

// Image writes all that Pieces are if that is an image that does not change, which needs no
// lock. It reports false for others.
func (w *Writer) Image(p *Pieces) (is bool, err error) {
	if p.rest == nil {
		return false, nil
	}
	w.Select(p.db)
	w.keys++
	w.enc.b = append(w.enc.b, p.enc.b...)
	if p.rest(&w.enc); cap(w.enc.b) > blockKeepMax { // a string made it large
		w.write(w.enc.b)
		w.enc.b = nil
	}
	return true, w.err
}
