package ratelimit

// Redisson's limiters. RL.ACQUIRE on the hash that RRateLimiter.trySetRate
// makes (rate, interval, type 0) does what Redisson's script does, on the same
// keys, so that services on the script and others on RL.ACQUIRE share one
// limiter and get the same decisions:
//
//	{name}:value    how many permits are left
//	{name}:permits  what was taken when: a sorted set by time in ms
//
// A member of the sorted set ends with its permits, 4 bytes, lowest first.
// Before them the script packs something random: a float of 4 bytes ("fI"), and
// in later versions a length and as many bytes ("Bc0I"). A member is written
// here as a length of 3, three random bytes, and the permits: 8 bytes that both
// forms read alike.
//
// The decisions are the script's, oddities included: the wait that it replies is
// that for the oldest grant, whatever the cost.

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/limitkv/limitkv/commands/command"
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/hash"
	"github.com/limitkv/limitkv/engine/limiter"
	"github.com/limitkv/limitkv/engine/packed"
	"github.com/limitkv/limitkv/resp/number"
	"github.com/limitkv/limitkv/zset"
)

const (
	errSharedRules  = "ERR a Redisson limiter has the rule of its hash, RL.ACQUIRE cannot change it"
	errSharedOption = "ERR a Redisson limiter has no ID, KEEP or ATMOST"
	errSharedType   = "ERR a Redisson limiter of type 1 is per client, only type 0 can be shared"
	errSharedSlot   = "ERR the keys of this Redisson limiter are not in one hash slot"
	errSharedValue  = "ERR the permits of this Redisson limiter are no number"

	permitBytes   = 4
	permitsMax    = math.MaxUint32
	nativeRandom  = 3
	nativeBytes   = 1 + nativeRandom + permitBytes
	shortestBytes = permitBytes

	// sharedRetryMin is after how many microseconds the line is tried again at the
	// earliest: the hash may say that what was taken is back at once.
	sharedRetryMin = 1000
)

// shared is a Redisson limiter, found.
type shared struct {
	rate, interval      int64 // permits, ms
	valueKey, permitKey []byte
	value               int64
	defined             bool // the value key is there
	permits             *zset.Set
	deadline            int64 // of the hash
}

// suffixed is the name of one of the limiter's other keys, as Redisson forms it.
func suffixed(key []byte, suffix string) []byte {
	if bytes.IndexByte(key, '{') >= 0 {
		return append(append([]byte(nil), key...), suffix...)
	}
	return append(append(append([]byte("{"), key...), '}'), suffix...)
}

// openShared reads the limiter's keys. A text is an error.
func openShared(c *command.Ctx, key []byte) (s shared, text string) {
	e := c.GetWrite(key)
	var work hash.Hash
	h := e.Hash(&work)
	if h == nil {
		return s, command.ErrWrongType
	}
	s.deadline = e.Deadline()
	field := func(name string) []byte {
		var scratch packed.Scratch
		v, _ := h.Get([]byte(name), &scratch)
		return v
	}
	var okRate, okInterval bool
	s.rate, okRate = number.ParseInt(field("rate"))
	s.interval, okInterval = number.ParseInt(field("interval"))
	kind := field("type")
	switch {
	case !okRate || !okInterval || kind == nil:
		return s, command.ErrWrongType // some other hash
	case string(kind) != "0":
		return s, errSharedType
	}
	s.valueKey, s.permitKey = suffixed(key, ":value"), suffixed(key, ":permits")
	if !c.Held.Covers(s.valueKey) || !c.Held.Covers(s.permitKey) {
		return s, errSharedSlot
	}
	v := c.GetWrite(s.valueKey)
	p := c.GetWrite(s.permitKey)
	if v.Ok() && v.Kind() != engine.KindString || p.Ok() && p.Kind() != engine.KindZSet {
		return s, command.ErrWrongType
	}
	if v.Ok() {
		var scratch [20]byte
		if s.value, s.defined = number.ParseInt(v.Bytes(scratch[:])); !s.defined {
			return s, errSharedValue
		}
	}
	s.permits = c.EditZSet(s.permitKey, p)
	return s, ""
}

// expired is the range of what has come back by now, and its sum.
func (s *shared) expired(nowMillis int64) (lo, hi int, released int64) {
	if s.permits == nil {
		return 0, 0, 0
	}
	lo, hi = s.permits.ScoreRange(zset.ScoreBound{Score: 0}, zset.ScoreBound{Score: float64(nowMillis - s.interval)})
	s.permits.Ascend(lo, hi, func(member []byte, _ float64) bool {
		released += permitsOf(member)
		return true
	})
	return lo, hi, released
}

func permitsOf(member []byte) int64 {
	if len(member) < shortestBytes {
		return 0
	}
	return int64(binary.LittleEndian.Uint32(member[len(member)-permitBytes:]))
}

// oldest is when the first of what still counts was taken.
func (s *shared) oldest(nowMillis int64) (millis int64, ok bool) {
	if s.permits == nil {
		return 0, false
	}
	from := zset.ScoreBound{Score: float64(nowMillis - s.interval), Exclusive: true}
	lo, hi := s.permits.ScoreRange(from, zset.ScoreBound{Score: float64(nowMillis)})
	if lo == hi {
		return 0, false
	}
	_, score, _ := s.permits.ByRank(lo)
	return int64(score), true
}

// decideShared decides as the script does, and takes.
func (f *family) decideShared(c *command.Ctx, key []byte, q *call) (d limiter.Decision, text string) {
	if len(q.rules) > 0 && !q.late {
		return d, errSharedRules
	}
	if q.keep != 0 || q.id != nil || q.mode == limiter.AtMost {
		return d, errSharedOption
	}
	s, text := openShared(c, key)
	if text != "" {
		return d, text
	}
	if q.cost > permitsMax || q.cost > s.rate && q.mode != limiter.Force {
		return d, errCapacity
	}
	now := c.Now / 1000
	lo, hi, released := s.expired(now)
	left := s.rate
	if s.defined {
		left = s.value + released
	}
	line, _ := c.Waiting(key, engine.KindLimiter)
	d.Limit, d.RetryAfterMicros = s.rate, -1
	d.Limited = q.mode != limiter.Force && (left < q.cost || line > 0 && !q.served && q.cost > 0)
	if q.mode != limiter.Peek {
		if s.defined && released > 0 {
			f.dropExpired(c, &s, lo, hi, left)
		}
		if !d.Limited && q.cost > 0 {
			f.takeShared(c, &s, q.cost, left)
			left -= q.cost
		}
		if !q.waits || !d.Limited {
			f.count(c, key, d.Limited)
		}
	}
	if d.Limited {
		d.RetryAfterMicros = s.interval * 1000
		if when, ok := s.oldest(now); ok {
			d.RetryAfterMicros = (when - (now - s.interval)) * 1000
		}
		if q.served {
			d.RetryAfterMicros = max(d.RetryAfterMicros, sharedRetryMin)
		}
	}
	d.Remaining = max(left, 0)
	if s.permits != nil && s.permits.Len() > 0 && left < s.rate {
		_, last, _ := s.permits.Max()
		d.ResetAfterMicros = max(int64(last)+s.interval-now, 0) * 1000
	}
	return d, ""
}

// dropExpired removes what has come back, and counts it as left.
func (f *family) dropExpired(c *command.Ctx, s *shared, lo, hi int, left int64) {
	s.permits.RemoveRange(lo, hi)
	c.StoreEdit()
	if c.Logging() {
		c.Effect([]byte("ZREMRANGEBYRANK"), s.permitKey, command.Number(int64(lo)), command.Number(int64(hi-1)))
		c.Effect([]byte("SET"), s.valueKey, command.Number(left), []byte("KEEPTTL"))
	}
	event := "zremrangebyscore"
	if s.permits.Len() == 0 {
		c.Delete(s.permitKey)
		s.permits = nil
	}
	c.Changed(s.permitKey, engine.EventZSet, event)
	c.PutInt(s.valueKey, left, c.Peek(s.valueKey).Deadline())
	c.Changed(s.valueKey, engine.EventString, "set")
}

// takeShared notes the grant and takes its permits from what is left. The other
// keys live as long as the hash.
func (f *family) takeShared(c *command.Ctx, s *shared, cost, left int64) {
	lim := f.zsets.Now()
	if s.permits = c.EditZSet(s.permitKey, c.Peek(s.permitKey)); s.permits == nil {
		s.permits = c.NewZSet(s.permitKey)
		s.permits.Prepare(1, nativeBytes, lim)
	}
	lim.Room = c.EditRoom()
	var member [nativeBytes]byte
	for {
		binary.LittleEndian.PutUint32(member[:], uint32(c.Random())<<8|nativeRandom)
		binary.LittleEndian.PutUint32(member[nativeBytes-permitBytes:], uint32(cost))
		if _, taken := s.permits.Score(member[:]); !taken {
			break
		}
	}
	s.permits.Add(member[:], float64(c.Now/1000), 0, lim)
	c.StoreEdit() // after which they can be read, until another sorted set is changed
	c.PutInt(s.valueKey, left-cost, c.Peek(s.valueKey).Deadline())
	if s.deadline != 0 {
		c.SetDeadline(c.Peek(s.valueKey), s.deadline)
		c.SetDeadline(c.Peek(s.permitKey), s.deadline)
	}
	if c.Logging() {
		c.Effect([]byte("ZADD"), s.permitKey, command.Number(c.Now/1000), member[:])
		c.Effect([]byte("SET"), s.valueKey, command.Number(left-cost), []byte("KEEPTTL"))
		if s.deadline != 0 {
			c.EffectNumber("PEXPIREAT", s.valueKey, s.deadline)
			c.EffectNumber("PEXPIREAT", s.permitKey, s.deadline)
		}
	}
	c.Changed(s.permitKey, engine.EventZSet, "zadd")
	c.Changed(s.valueKey, engine.EventString, "decrby")
}
