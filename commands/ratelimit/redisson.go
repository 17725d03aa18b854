package ratelimit

// Redisson's limiters. RL.ACQUIRE on the hash that RRateLimiter.trySetRate makes (rate, interval, type 0) does what
// Redisson's script does, on the same keys. So services that use the script and services that use RL.ACQUIRE share
// one limiter and get the same decisions:
//
//	{name}:value    how many permits are left
//	{name}:permits  the grants: a sorted set by time in ms
//
// A member of the sorted set ends with its permits, 4 bytes, little-endian. Before them the script packs random data:
// a float of 4 bytes ("fI") or, in later versions, a length and that many bytes ("Bc0I"). limitkv writes a length of
// 3, three random bytes, and the permits: 8 bytes that both forms read alike.
//
// The decisions are those of the script of Redisson 4.7, with its oddities. If the permits that come back would give more
// than the rate, the script counts again what is left. The wait that it replies is that for the oldest grant, whatever the
// cost, plus 3 ms. Each call, even a refused one, renews keepAliveTime of all three keys; without keepAliveTime, the other
// two keys expire with the hash.

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/hash"
	"github.com/limitkv/limitkv/engine/limiter"
	"github.com/limitkv/limitkv/engine/packed"
	"github.com/limitkv/limitkv/resp/number"
	"github.com/limitkv/limitkv/server/command"
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

	// sharedMax is the largest number that the script counts exactly: Lua's numbers are floats.
	sharedMax = 1 << 53
	// sharedExtraMillis is what the script adds to the wait that it replies.
	sharedExtraMillis = 3

	// sharedRetryMin is the shortest time in microseconds before the line is tried again: by the hash's interval,
	// permits may come back at once.
	sharedRetryMin = 1000
)

// shared is a Redisson limiter, as openShared read it.
type shared struct {
	key                 []byte
	rate, interval      int64 // permits, ms
	keepAlive           int64 // ms, 0 for none
	valueKey, permitKey []byte
	value               int64
	defined             bool // the value key exists
	permits             *zset.Set
	work                zset.Set // permits, where it is not an object
	deadline            int64    // of the hash

	// What has come back by now: a range of permits, and its sum.
	lo, hi   int
	released int64
	left     int64 // including what has come back
}

// suffixed is the name of one of the limiter's other keys, as Redisson forms it.
func suffixed(key []byte, suffix string) []byte {
	if bytes.IndexByte(key, '{') >= 0 {
		return append(append([]byte(nil), key...), suffix...)
	}
	return append(append(append([]byte("{"), key...), '}'), suffix...)
}

// openShared reads the limiter's keys. The user must have the rights on all of them. A text is an error.
func openShared(c *command.Ctx, key []byte) (s *shared, text string) {
	find, flags := c.Get, command.RO|command.Access
	if c.Writes {
		find, flags = c.GetWrite, writeKey|command.Insert|command.Delete
	}
	e := find(key)
	var work hash.Hash
	h := e.Hash(&work)
	if h == nil {
		return nil, command.ErrWrongType
	}
	field := func(name string) (n int64, ok bool) {
		var scratch packed.Scratch
		text, _ := h.Get([]byte(name), &scratch)
		n, ok = number.ParseInt(text)
		return n, ok && -sharedMax <= n && n <= sharedMax
	}
	s = &shared{key: key, deadline: e.Deadline()}
	var okRate, okInterval bool
	s.rate, okRate = field("rate")
	s.interval, okInterval = field("interval")
	if s.keepAlive, _ = field("keepAliveTime"); s.keepAlive < 0 {
		s.keepAlive = 0
	}
	var scratch packed.Scratch
	switch kind, ok := h.Get([]byte("type"), &scratch); {
	case !okRate || !okInterval || !ok:
		return nil, command.ErrWrongType // some other hash
	case string(kind) != "0":
		return nil, errSharedType
	}
	s.valueKey, s.permitKey = suffixed(key, ":value"), suffixed(key, ":permits")
	if text = c.Server.RefusesKeys(c, command.NamedKey{Key: s.valueKey, Flags: flags}, command.NamedKey{Key: s.permitKey, Flags: flags}); text != "" {
		return nil, text
	}
	if !c.Held.Covers(s.valueKey) || !c.Held.Covers(s.permitKey) {
		return nil, errSharedSlot
	}
	value := find(s.valueKey)
	p := find(s.permitKey)
	if value.Ok() && value.Kind() != engine.KindString || p.Ok() && p.Kind() != engine.KindZSet {
		return nil, command.ErrWrongType
	}
	if value.Ok() {
		var scratch [20]byte
		s.value, s.defined = number.ParseInt(value.Bytes(scratch[:]))
		if !s.defined || s.value > sharedMax || s.value < -sharedMax {
			return nil, errSharedValue
		}
	}
	s.permits = p.ZSet(&s.work)
	s.count(c.Now / 1000)
	return s, ""
}

// count finds what has come back by now, and how much is left including that.
func (s *shared) count(nowMillis int64) {
	if s.left = s.rate; !s.defined {
		return
	}
	s.left = s.value
	if s.permits == nil {
		return
	}
	s.lo, s.hi = s.permits.ScoreRange(zset.ScoreBound{Score: 0}, zset.ScoreBound{Score: float64(nowMillis - s.interval)})
	s.released = s.sum(s.lo, s.hi)
	switch {
	case s.released == 0:
	case s.value+s.released > s.rate: // a release raised the value, or it is a new one
		s.left = s.rate - s.sum(0, s.lo) - s.sum(s.hi, s.permits.Len())
	default:
		s.left += s.released
	}
}

// sum is the sum of a range of the permits.
func (s *shared) sum(lo, hi int) (permits int64) {
	if lo < hi {
		s.permits.Ascend(lo, hi, func(member []byte, _ float64) bool {
			permits += permitsOf(member)
			return true
		})
	}
	return permits
}

func permitsOf(member []byte) int64 {
	if len(member) < shortestBytes {
		return 0
	}
	return int64(binary.LittleEndian.Uint32(member[len(member)-permitBytes:]))
}

// retryAfter is in how many microseconds the oldest grant comes back.
func (s *shared) retryAfter(nowMillis int64) int64 {
	first := 0
	if s.released > 0 && s.lo == 0 {
		first = s.hi
	}
	wait := s.interval // unknown: the script fails with an error here
	if s.permits != nil && first < s.permits.Len() {
		_, score, _ := s.permits.ByRank(first)
		wait = millisOf(score) + s.interval - nowMillis
	}
	return max(microsOf(wait), 0)
}

// resetAfter is in how many microseconds the last grant comes back.
func (s *shared) resetAfter(nowMillis int64) int64 {
	if s.permits == nil || s.permits.Len() == 0 || s.left >= s.rate {
		return 0
	}
	_, last, _ := s.permits.Max()
	return max(microsOf(millisOf(last)+s.interval-nowMillis), 0)
}

// millisOf is a score as a time in ms, bounded because clients can add members with any score.
func millisOf(score float64) int64 { return int64(max(-sharedMax, min(score, sharedMax))) }

func microsOf(millis int64) int64 { return min(millis, math.MaxInt64/1000) * 1000 }

// refusal is the decision of a limiter that refuses.
func (s *shared) refusal(nowMillis int64) limiter.Decision {
	return limiter.Decision{
		Limited: true, Limit: s.rate, Remaining: max(s.left, 0),
		RetryAfterMicros: s.retryAfter(nowMillis) + sharedExtraMillis*1000, ResetAfterMicros: s.resetAfter(nowMillis),
	}
}

// decideShared decides as the script does, and takes the permits if it grants them.
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
	line, _ := c.Waiting(key, engine.KindLimiter)
	if q.mode != limiter.Force && (s.left < q.cost || line > 0 && !q.served && q.cost > 0) {
		d = s.refusal(now)
		if q.waits { // the server's own retries need no margin
			d.RetryAfterMicros = max(d.RetryAfterMicros-sharedExtraMillis*1000, sharedRetryMin)
		}
	} else {
		d.Limit, d.RetryAfterMicros, d.Taken = s.rate, -1, q.cost
	}
	if q.mode != limiter.Peek {
		if s.released > 0 {
			s.dropExpired(c)
		}
		if !d.Limited && q.cost > 0 {
			f.takeShared(c, s, q.cost)
			s.left -= q.cost
		}
		if !q.waits || !d.Limited {
			f.count(c, key, d.Limited)
		}
	}
	d.Remaining, d.ResetAfterMicros = max(s.left, 0), s.resetAfter(now)
	if q.mode != limiter.Peek {
		s.renew(c)
	}
	return d, ""
}

// put stores what is left. Like Redis's SET it removes the time to live; renew sets it again.
func (s *shared) put(c *command.Ctx, left int64) {
	c.PutInt(s.valueKey, left, 0)
	c.Changed(s.valueKey, engine.EventString, "set")
	c.EffectNumber("SET", s.valueKey, left)
}

// dropExpired removes the permits that have come back, and stores that they are left.
func (s *shared) dropExpired(c *command.Ctx) {
	s.permits = c.EditZSet(s.permitKey, c.Peek(s.permitKey))
	s.permits.RemoveRange(s.lo, s.hi)
	c.StoreEdit()
	if c.Logging() {
		c.Effect([]byte("ZREMRANGEBYRANK"), s.permitKey, command.Number(int64(s.lo)), command.Number(int64(s.hi-1)))
	}
	if s.permits.Len() == 0 {
		c.Delete(s.permitKey)
		s.permits = nil
	}
	c.Changed(s.permitKey, engine.EventZSet, "zremrangebyscore")
	s.put(c, s.left)
}

// takeShared records the grant and subtracts its permits from what is left.
func (f *family) takeShared(c *command.Ctx, s *shared, cost int64) {
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
	c.StoreEdit() // s.permits can be read until another sorted set is changed
	c.PutInt(s.valueKey, s.left-cost, c.Peek(s.valueKey).Deadline())
	if c.Logging() {
		c.Effect([]byte("ZADD"), s.permitKey, command.Number(c.Now/1000), member[:])
		c.Effect([]byte("SET"), s.valueKey, command.Number(s.left-cost), []byte("KEEPTTL"))
	}
	c.Changed(s.permitKey, engine.EventZSet, "zadd")
	c.Changed(s.valueKey, engine.EventString, "decrby")
}

// renew makes the limiter's keys live for keepAliveTime from now. Without keepAliveTime, the other two keys live as
// long as the hash.
func (s *shared) renew(c *command.Ctx) {
	at, keys := s.deadline, [][]byte{s.valueKey, s.permitKey}
	if s.keepAlive > 0 {
		at, keys = c.Now/1000+s.keepAlive, [][]byte{s.key, s.valueKey, s.permitKey}
	}
	if at <= c.Now/1000 { // no deadline, or a past one, which the script ignores
		return
	}
	for _, key := range keys {
		e := c.Peek(key)
		if !e.Ok() || e.Deadline() == at {
			continue
		}
		c.SetDeadline(e, at)
		c.Changed(key, engine.EventGeneric, "expire")
		c.EffectNumber("PEXPIREAT", key, at)
	}
}

// releaseShared gives permits back as Redisson's release does: it raises the value, up to the rate, and leaves the
// sorted set as it is.
func (f *family) releaseShared(c *command.Ctx, key []byte, permits int64) (back int64, text string) {
	s, text := openShared(c, key)
	if text != "" || permits == 0 {
		return 0, text
	}
	had := s.rate
	if s.defined {
		had = s.value
	}
	now := min(had+permits, s.rate)
	s.put(c, now)
	s.renew(c)
	c.Ready(key)
	return max(now-had, 0), ""
}

// infoShared shows a Redisson limiter as a LOG of its rate and interval, without totals.
func infoShared(c *command.Ctx, key []byte) {
	s, text := openShared(c, key)
	if text != "" {
		c.Error(text)
		return
	}
	rule := limiter.RuleStatus{
		Rule:         limiter.Rule{Algorithm: limiter.Log, Count: s.rate, PeriodMicros: microsOf(s.interval)},
		PeriodMicros: microsOf(s.interval), Available: s.left, ResetAfterMicros: s.resetAfter(c.Now / 1000),
	}
	replyInfo(c, infoOf{rules: []limiter.RuleStatus{rule}, capacity: s.rate, shared: true})
}
