// Redisson's limiters: the script and RL.ACQUIRE, mixed at random on one
// limiter, against the script alone on another.
package ratelimit_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/commands/livetest"
)

// takeScript does what RRateLimiter's script does: KEYS are the hash, the value
// and the permits, ARGV the cost, the time in ms, and the member to note it by.
// Redisson packs the member in the script; here pack does, for both forms.
const takeScript = permitsScript + `
local rate, window = tonumber(redis.call('hget', KEYS[1], 'rate')), tonumber(redis.call('hget', KEYS[1], 'interval'))
local cost, now = tonumber(ARGV[1]), tonumber(ARGV[2])
assert(rate >= cost, 'too much')
local left = redis.call('get', KEYS[2])
if left then
  local back, gone = 0, redis.call('zrangebyscore', KEYS[3], 0, now - window)
  for _, m in ipairs(gone) do
    back = back + permits(m)
  end
  if back > 0 then
    redis.call('zrem', KEYS[3], unpack(gone))
    left = tonumber(left) + back
    redis.call('set', KEYS[2], left)
  end
  if tonumber(left) < cost then
    local first = redis.call('zrangebyscore', KEYS[3], '(' .. (now - window), now, 'withscores', 'limit', 0, 1)
    return tonumber(first[2]) - (now - window)
  end
else
  redis.call('set', KEYS[2], rate)
end
redis.call('zadd', KEYS[3], now, ARGV[3])
redis.call('decrby', KEYS[2], cost)
return nil`

const permitsScript = `
local function permits(m)
  local a, b, c, d = string.byte(m, -4, -1)
  return a + b * 256 + c * 65536 + d * 16777216
end`

// sumScript adds up the permits that are out.
const sumScript = permitsScript + `
local sum = 0
for _, m in ipairs(redis.call('zrange', KEYS[1], 0, -1)) do
  sum = sum + permits(m)
end
return sum`

// pack makes a member of a form, as Lua's struct library would.
func pack(form string, rnd *rand.Rand, permits int) string {
	var b []byte
	switch form {
	case "fI":
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(rnd.Int64())))
	default: // Bc0I
		b = append(b, 8)
		b = binary.LittleEndian.AppendUint64(b, rnd.Uint64())
	}
	return string(binary.LittleEndian.AppendUint32(b, uint32(permits)))
}

// wellFormed says whether a member can be unpacked by a form.
func wellFormed(form, member string) bool {
	if form == "fI" {
		return len(member) == 8
	}
	return len(member) > 5 && len(member) == 1+int(member[0])+4
}

type redisson struct {
	c    *livetest.Client
	name string
	form string
	rnd  *rand.Rand
}

// script takes by the script: "" where granted, else the ms to wait.
func (r redisson) script(cost int, now int64) string {
	got := r.c.Do("EVAL", takeScript, 3, r.name, "{"+r.name+"}:value", "{"+r.name+"}:permits", cost, now, pack(r.form, r.rnd, cost))
	if got == "nil" {
		return ""
	}
	return got
}

// native takes by RL.ACQUIRE.
func (r redisson) native(cost int) string {
	got := strings.Fields(strings.Trim(r.c.Do("RL.ACQUIRE", r.name, cost), "[]"))
	if len(got) == 5 && got[0] == "0" {
		return ""
	}
	if len(got) != 5 {
		return strings.Join(got, " ")
	}
	return got[3]
}

func (r redisson) out() string {
	return r.c.Do("GET", "{"+r.name+"}:value") + " left, " +
		r.c.Do("EVAL", sumScript, 1, "{"+r.name+"}:permits") + " out"
}

// checkMembers fails for a member that the script's form cannot unpack.
func (r redisson) checkMembers(t *testing.T) {
	t.Helper()
	key := "{" + r.name + "}:permits"
	var n int
	fmt.Sscan(r.c.Do("ZCARD", key), &n)
	for i := range n {
		got := r.c.Do("ZRANGE", key, i, i)
		if member := got[1 : len(got)-1]; !wellFormed(r.form, member) {
			t.Fatalf("member %q is not %s", member, r.form)
		}
	}
}

func TestRedissonMixed(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 3))
	s := livetest.Start(t)
	c := s.Client()
	granted, refused := 0, 0
	for episode, form := range []string{"fI", "Bc0I", "fI", "Bc0I"} {
		rate, interval := 3+rnd.IntN(10), 100+rnd.IntN(2000)
		alone := redisson{c, fmt.Sprintf("alone%d", episode), form, rnd}
		mixed := redisson{c, fmt.Sprintf("mixed%d", episode), form, rnd}
		for _, r := range []redisson{alone, mixed} {
			c.Want("3", "HSET", r.name, "rate", rate, "interval", interval, "type", 0)
		}
		for step := range 400 {
			s.Advance(rnd.Int64N(int64(interval)/4+1) * rnd.Int64N(2))
			cost := 1 + rnd.IntN(rate)*rnd.IntN(2)*rnd.IntN(2)
			want := alone.script(cost, s.Now())
			var got string
			if rnd.IntN(2) == 0 {
				got = mixed.native(cost)
			} else {
				got = mixed.script(cost, s.Now())
			}
			if got != want {
				t.Fatalf("%s, step %d, cost %d of %d in %d: %q, the script alone %q", form, step, cost, rate, interval, got, want)
			}
			if a, b := alone.out(), mixed.out(); a != b {
				t.Fatalf("%s, step %d: %s, the script alone %s", form, step, b, a)
			}
			mixed.checkMembers(t)
			if want == "" {
				granted++
			} else {
				refused++
			}
		}
	}
	if granted < 200 || refused < 200 {
		t.Errorf("only %d granted, %d refused", granted, refused)
	}
}

func TestRedissonCalls(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	converse(t, s, c, `
		HSET l rate 3 interval 1000 type 0 => 3
		RL.ACQUIRE l 1 PEEK => [0 3 3 -1 0]
		EXISTS {l}:value {l}:permits => 0
		RL.ACQUIRE l 2 => [0 3 1 -1 1000]
		GET {l}:value => 1
		ZCARD {l}:permits => 1
		+400
		RL.ACQUIRE l 2 => [1 3 1 600 600]
		RL.ACQUIRE l 1 => [0 3 0 -1 1000]
		RL.ACQUIRE l 4 => -ERR cost is above the limiter's capacity
		RL.ACQUIRE l 4 FORCE => [0 3 0 -1 1000]
		GET {l}:value => -4
		+1000
		RL.ACQUIRE l 3 => [0 3 0 -1 1000]
		# what the hash must be
		RL.ACQUIRE l 1 LOG 1 1 => -ERR a Redisson limiter has the rule of its hash, RL.ACQUIRE cannot change it
		HSET h f v => 1
		RL.ACQUIRE h => `+wrongType+`
		HSET p rate 3 interval 1000 type 1 => 3
		RL.ACQUIRE p => -ERR a Redisson limiter of type 1 is per client, only type 0 can be shared
		HSET bad rate x interval 1000 type 0 => 3
		RL.ACQUIRE bad => `+wrongType+`
		SET {v}:value abc => OK
		HSET v rate 3 interval 1000 type 0 => 3
		RL.ACQUIRE v => -ERR the permits of this Redisson limiter are no number
		SET {w}:permits abc => OK
		HSET w rate 3 interval 1000 type 0 => 3
		RL.ACQUIRE w => `+wrongType+`
		# a tag in the name
		HSET {t}x rate 3 interval 1000 type 0 => 3
		RL.ACQUIRE {t}x => [0 3 2 -1 1000]
		GET {t}x:value => 2
		HSET a{b rate 3 interval 1000 type 0 => 3
		# the other keys live as long as the hash
		HSET e rate 3 interval 1000 type 0 => 3
		EXPIRE e 100 => 1
		RL.ACQUIRE e => [0 3 2 -1 1000]
		TTL {e}:value => 100
		TTL {e}:permits => 100
	`)
}

func TestRedissonBlock(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	c.Want("3", "HSET", "l", "rate", 2, "interval", 1000, "type", 0)
	c.Want("[0 2 0 -1 1000]", "RL.ACQUIRE", "l", 2)
	first, second := s.Client(), s.Client()
	first.Send("RL.ACQUIRE", "l", 2, "BLOCK", 0)
	s.Blocked(1)
	second.Send("RL.ACQUIRE", "l", 1, "BLOCK", 1500)
	s.Blocked(2)
	s.Advance(999)
	first.Silent()
	s.Advance(1)
	if got := first.Read(); got != "[0 2 0 -1 1000]" {
		t.Error(got)
	}
	s.Advance(500)
	if got := second.Read(); !strings.HasPrefix(got, "[1 ") {
		t.Error(got)
	}
}
