package lkv

// Everything about a key, as text. Two keys that must be the same are compared by it.

import (
	"crypto/sha1"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/delayqueue"
	"github.com/limitkv/limitkv/engine/hash"
	"github.com/limitkv/limitkv/engine/limiter"
	"github.com/limitkv/limitkv/engine/list"
	"github.com/limitkv/limitkv/engine/lock"
	"github.com/limitkv/limitkv/engine/set"
	"github.com/limitkv/limitkv/engine/stream"
	"github.com/limitkv/limitkv/zset"
)

// shownMax is how much of a long picture is shown as it is.
const shownMax = 1000

// picture writes a key's value, deadlines included, "nothing" for a missing key.
func picture(e engine.Entry) string {
	if !e.Ok() {
		return "nothing"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s deadline %d", e.Kind(), e.Deadline())
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	switch o := e.Object().(type) {
	case *list.List:
		for it := o.Iter(0, false); it.Next(); {
			add("%q", it.Value())
		}
	case *set.Set:
		for it := o.Iter(); it.Next(); {
			add("%q", it.Member())
		}
		slices.Sort(parts)
	case *zset.Set:
		o.Ascend(0, o.Len(), func(member []byte, score float64) bool {
			add("%q %x", member, score+0) // the form decides between 0 and -0
			return true
		})
	case *hash.Hash:
		for it := o.Iter(); it.Next(); {
			add("%q %q %d", it.Field(), it.Value(), it.Deadline())
		}
		slices.Sort(parts)
	case *stream.Stream:
		pictureStream(o, add)
	case *delayqueue.Queue:
		add("%+v %+v", o.Settings(), o.Totals())
		o.Peek(delayqueue.Any, 0, math.MaxInt, func(x delayqueue.Entry) {
			add("%q %q due %d attempt %d state %d until %d %+v", x.ID, x.Payload, x.DueMicros, x.Attempt, x.State, x.UntilMicros, x.Extra())
		})
		for _, x := range o.Schedules() {
			add("%+v", *x)
		}
		turns, _ := o.Turns()
		for _, g := range turns { // in their order: the numbers begin again if nothing has taken a turn for long
			if g.Waiting+g.Leased > 0 { // other groups are kept for their limiters, until these are full
				add("%v %d %d", g.Name, g.Waiting, g.Leased)
			}
		}
		o.Each(delayqueue.Behind, func(x delayqueue.Saved) {
			add("%q behind %q due %d attempt %d %x", x.Payload, x.ID, x.DueMicros, x.Attempt, x.Extra)
		})
		o.Each(delayqueue.Remembered, func(x delayqueue.Saved) { add("%q until %d", x.ID, x.AtMicros) })
	case *limiter.Named:
		add("%q %x", limiter.WithoutRefused(o.State()), o.AppendGiven(nil))
		first := len(parts)
		o.Each(func(id, saved []byte) { add("%q %x", id, saved) })
		slices.Sort(parts[first:])
	default:
		if e.Kind() == engine.KindLock {
			var work lock.Lock
			l := e.Lock(&work)
			add("%v of %d closed until %d", l.Mode, l.Permits, l.ClosedMicros)
			l.Each(func(h lock.Holder) bool {
				add("%q fence %d until %d delay %d takes %d", h.Owner, h.Fence, h.UntilMicros, h.DelayMicros, h.Take)
				return true
			})
			break
		}
		value := e.Bytes(nil)
		if e.Kind() == engine.KindLimiter { // refusals are counted without an effect, so they are left out
			value = limiter.WithoutRefused(value)
		}
		add("%q", value)
	}
	for _, p := range parts {
		b.WriteString("; ")
		b.WriteString(p)
	}
	if b.Len() > shownMax {
		return fmt.Sprintf("%s … %d bytes with SHA-1 %x", b.String()[:shownMax], b.Len(), sha1.Sum([]byte(b.String())))
	}
	return b.String()
}

// pictureStream leaves out when consumers were seen, and when and how often entries were delivered: as in Redis, no effect
// says that entries were read again.
func pictureStream(s *stream.Stream, add func(format string, args ...any)) {
	add("length %d first %v last %v deleted %v added %d", s.Len(), s.FirstID(), s.LastID(), s.MaxDeletedID(), s.EntriesAdded())
	for it := s.Range(stream.ID{}, stream.MaxID, false); it.Next(); {
		add("%v", it.ID())
		for it.NextPair() {
			add("%q %q", it.Field(), it.Value())
		}
	}
	for _, g := range s.Groups() {
		add("group %q last %v read %d", g.Name, g.LastID, g.EntriesRead)
		for _, c := range g.Consumers() {
			add("consumer %q pending %d", c.Name, c.Pending())
		}
		g.EachPending(stream.ID{}, func(p stream.Pending) bool {
			add("%v of %q", p.ID, p.Consumer.Name)
			return true
		})
	}
}
