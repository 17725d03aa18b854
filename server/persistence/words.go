package persistence

// Keys as commands, for the base of an append-only file with aof-use-rdb-preamble no. A key of a type that Redis has becomes
// the commands that Redis's own rewrite writes, so that any version can read them. The others become RESTORE with their dump.

import (
	"strconv"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/hash"
	"github.com/limitkv/limitkv/engine/list"
	"github.com/limitkv/limitkv/engine/rdb"
	"github.com/limitkv/limitkv/engine/set"
	"github.com/limitkv/limitkv/engine/stream"
	"github.com/limitkv/limitkv/resp"
	"github.com/limitkv/limitkv/resp/number"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/zset"
)

// words gathers commands.
type words struct {
	format rdb.Format
	text   []byte
	db     int
	args   [][]byte    // of the current command
	plain  engine.Work // holds a small value while it is written
}

func (f *Files) newWords() *words { return &words{format: f.dumps.FileFormat(), db: -1} }

// itemsMax is the largest number of elements in one command, as in Redis.
const itemsMax = 64

// say appends a command.
func (w *words) say(args ...[]byte) { w.text = resp.AppendCommand(w.text, args...) }

// sayWith appends a command whose first arguments are words.
func (w *words) sayWith(word string, key []byte, rest ...[]byte) {
	w.args = append(append(w.args[:0], []byte(word), key), rest...)
	w.say(w.args...)
}

// many gathers arguments of a command on a key, up to itemsMax elements.
type many struct {
	w    *words
	word []byte
	key  []byte
	args [][]byte
	n    int
}

func (m *many) add(parts ...[]byte) {
	if m.n == 0 {
		m.args = append(m.args[:0], m.word, m.key)
	}
	for _, p := range parts {
		m.args = append(m.args, append([]byte(nil), p...)) // iterators reuse their buffers
	}
	if m.n++; m.n == itemsMax {
		m.flush()
	}
}

func (m *many) flush() {
	if m.n > 0 {
		m.w.say(m.args...)
		m.n = 0
	}
}

// entry appends the commands that make a key of the view's database, under its lock.
func (w *words) entry(v *engine.View, e engine.Entry) {
	if w.db != v.DB {
		w.db = v.DB
		w.say([]byte("SELECT"), command.Number(int64(v.DB)))
	}
	key := append([]byte(nil), e.Key()...)
	of := func(word string) *many { return &many{w: w, word: []byte(word), key: key} }
	switch o := e.ObjectIn(&w.plain).(type) {
	case *list.List:
		m := of("RPUSH")
		for it := o.Iter(0, false); it.Next(); {
			m.add(it.Value())
		}
		m.flush()
	case *set.Set:
		m := of("SADD")
		for it := o.Iter(); it.Next(); {
			m.add(it.Member())
		}
		m.flush()
	case *zset.Set:
		m := of("ZADD")
		o.Ascend(0, o.Len(), func(member []byte, score float64) bool {
			m.add(number.AppendDouble(nil, score), member)
			return true
		})
		m.flush()
	case *hash.Hash:
		w.hash(o, key, of("HMSET"))
	case *stream.Stream:
		w.stream(o, key)
	default:
		if e.Kind() != engine.KindString {
			w.sayWith("RESTORE", key, command.Number(e.Deadline()), rdb.AppendDump(nil, e, w.format), []byte("REPLACE"), []byte("ABSTTL"))
			return
		}
		w.sayWith("SET", key, e.Bytes(nil))
	}
	if at := e.Deadline(); at != 0 {
		w.sayWith("PEXPIREAT", key, command.Number(at))
	}
}

func (w *words) hash(h *hash.Hash, key []byte, m *many) {
	for it := h.Iter(); it.Next(); {
		m.add(it.Field(), it.Value())
	}
	m.flush()
	for it := h.Iter(); it.Next(); {
		if at := it.Deadline(); at != 0 {
			w.sayWith("HPEXPIREAT", key, command.Number(at), []byte("FIELDS"), []byte("1"), append([]byte(nil), it.Field()...))
		}
	}
}

func (w *words) stream(s *stream.Stream, key []byte) {
	var args [][]byte
	for it := s.Range(stream.ID{}, stream.MaxID, false); it.Next(); {
		args = append(args[:0], []byte("XADD"), key, it.ID().Append(nil))
		for it.NextPair() {
			args = append(args, append([]byte(nil), it.Field()...), append([]byte(nil), it.Value()...))
		}
		w.say(args...)
	}
	if s.Len() == 0 { // to make a stream without entries, add an entry that is trimmed at once
		w.sayWith("XADD", key, []byte("MAXLEN"), []byte("0"), []byte("0-1"), []byte("x"), []byte("y"))
	}
	added := strconv.AppendUint(nil, s.EntriesAdded(), 10)
	w.sayWith("XSETID", key, s.LastID().Append(nil), []byte("ENTRIESADDED"), added, []byte("MAXDELETEDID"), s.MaxDeletedID().Append(nil))
	for _, g := range s.Groups() {
		name := []byte(g.Name)
		w.sayWith("XGROUP", []byte("CREATE"), key, name, g.LastID.Append(nil), []byte("ENTRIESREAD"), command.Number(g.EntriesRead))
		for _, c := range g.Consumers() {
			consumer := []byte(c.Name)
			w.sayWith("XGROUP", []byte("CREATECONSUMER"), key, name, consumer)
			g.EachPendingOf(c, stream.ID{}, func(p stream.Pending) bool {
				w.sayWith("XCLAIM", key, name, consumer, []byte("0"), p.ID.Append(nil), []byte("TIME"), command.Number(p.DeliveredMillis),
					[]byte("RETRYCOUNT"), strconv.AppendUint(nil, p.Deliveries, 10), []byte("JUSTID"), []byte("FORCE"))
				return true
			})
		}
	}
}
