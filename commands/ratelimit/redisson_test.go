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

// takeScript does what RRateLimiter's script does: KEYS are the hash, the value and the permits; ARGV the cost, the time in
// ms, and the member that records the grant. Redisson packs the member in the script; here pack does, in both forms.
const takeScript = permitsScript + renewScript + `
local rate, window = tonumber(redis.call('hget', KEYS[1], 'rate')), tonumber(redis.call('hget', KEYS[1], 'interval'))
local cost, now = tonumber(ARGV[1]), tonumber(ARGV[2])
assert(rate >= cost, 'too much')
local left, wait = redis.call('get', KEYS[2]), nil
if left then
  left = tonumber(left)
  local back = sum(redis.call('zrangebyscore', KEYS[3], 0, now - window))
  if back > 0 then
    redis.call('zremrangebyscore', KEYS[3], 0, now - window)
    if left + back > rate then
      left = rate - sum(redis.call('zrange', KEYS[3], 0, -1))
    else
      left = left + back
    end
    redis.call('set', KEYS[2], left)
  end
  if left < cost then
    local first = redis.call('zrange', KEYS[3], 0, 0, 'withscores')
    wait = first[2] and 3 + window - (now - tonumber(first[2])) or 3 + window
  end
else
  redis.call('set', KEYS[2], rate)
end
if not wait then
  redis.call('zadd', KEYS[3], now, ARGV[3])
  redis.call('decrby', KEYS[2], cost)
end
renew()
return wait`

// releaseScript gives permits back: the value rises up to the rate.
const releaseScript = renewScript + `
local rate = tonumber(redis.call('hget', KEYS[1], 'rate'))
redis.call('set', KEYS[2], math.min(rate, tonumber(redis.call('get', KEYS[2]) or rate) + tonumber(ARGV[1])))
renew()`

// renewScript renews the time to live of the keys.
const renewScript = `
local function renew()
  local keep = tonumber(redis.call('hget', KEYS[1], 'keepAliveTime') or 0)
  local from = 1
  if keep <= 0 then
    keep, from = redis.call('pttl', KEYS[1]), 2
  end
  for i = from, 3 do
    if keep > 0 then redis.call('pexpire', KEYS[i], keep) end
  end
end`

const permitsScript = `
local function permits(m)
  local a, b, c, d = string.byte(m, -4, -1)
  return a + b * 256 + c * 65536 + d * 16777216
end
local function sum(members)
  local n = 0
  for _, m in ipairs(members) do n = n + permits(m) end
  return n
end`

// sumScript adds up the permits that are out.
const sumScript = permitsScript + `
return sum(redis.call('zrange', KEYS[1], 0, -1))`

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

// wellFormed reports whether a member can be unpacked in a form.
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

// script takes with the script: "" if granted, else the ms to wait.
func (r redisson) script(cost int, now int64) string {
	got := r.c.Do("EVAL", takeScript, 3, r.name, "{"+r.name+"}:value", "{"+r.name+"}:permits", cost, now, pack(r.form, r.rnd, cost))
	if got == "nil" {
		return ""
	}
	return got
}

// native takes with a command.
func (r redisson) native(command ...any) string {
	got := strings.Fields(strings.Trim(r.c.Do(command...), "[]"))
	if len(got) < 5 {
		return strings.Join(got, " ")
	}
	if got[0] == "0" {
		return ""
	}
	return got[3]
}

func (r redisson) out() string {
	value, permits := "{"+r.name+"}:value", "{"+r.name+"}:permits"
	return r.c.Do("GET", value) + " left, " + r.c.Do("EVAL", sumScript, 1, permits) + " out, live for " +
		r.c.Do("PTTL", r.name) + ", " + r.c.Do("PTTL", value) + ", " + r.c.Do("PTTL", permits)
}

// drawDo does one random thing that another client of the limiter may do, on all limiters alike, and takes nothing.
func drawDo(rnd *rand.Rand, rate int, interval int64, rs ...redisson) string {
	n := 1 + rnd.IntN(rate)
	switch rnd.IntN(6) {
	case 0:
		for _, r := range rs {
			r.c.Do("DEL", "{"+r.name+"}:value") // as evicted
		}
		return "value gone"
	case 1:
		keep := rnd.Int64N(2) * (interval + rnd.Int64N(interval))
		for _, r := range rs {
			r.c.Do("HSET", r.name, "keepAliveTime", keep)
		}
		return "keepAliveTime"
	case 2:
		for _, r := range rs {
			r.c.Do("PEXPIRE", r.name, 40*interval)
		}
		return "expire"
	case 3:
		for _, r := range rs {
			r.c.Do("HSET", r.name, "rate", rate+n%3)
		}
		return "rate"
	}
	alone, mixed := rs[0], rs[1]
	byScript := func(r redisson) {
		r.c.Do("EVAL", releaseScript, 3, r.name, "{"+r.name+"}:value", "{"+r.name+"}:permits", n)
	}
	byScript(alone)
	if rnd.IntN(2) == 0 {
		byScript(mixed)
	} else {
		mixed.c.Do("RL.RELEASE", mixed.name, n)
	}
	return "release"
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
	done := map[string]int{}
	for episode, form := range []string{"fI", "Bc0I", "fI", "Bc0I"} {
		rate, interval := 3+rnd.IntN(10), 100+rnd.IntN(2000)
		alone := redisson{c, fmt.Sprintf("alone%d", episode), form, rnd}
		mixed := redisson{c, fmt.Sprintf("mixed%d", episode), form, rnd}
		for _, r := range []redisson{alone, mixed} {
			c.Want("3", "HSET", r.name, "rate", rate, "interval", interval, "type", 0)
		}
		for step := range 600 {
			s.Advance(rnd.Int64N(int64(interval)/4+1) * rnd.Int64N(2))
			if c.Do("EXISTS", "mixed"+fmt.Sprint(episode)) == "0" { // its keepAliveTime or its deadline is over
				for _, r := range []redisson{alone, mixed} {
					c.Want("3", "HSET", r.name, "rate", rate, "interval", interval, "type", 0)
				}
			}
			did := ""
			if rnd.IntN(8) == 0 {
				did = drawDo(rnd, rate, int64(interval), alone, mixed)
				done[did]++
			}
			cost := 1 + rnd.IntN(rate)*rnd.IntN(2)*rnd.IntN(2)
			want := alone.script(cost, s.Now())
			var got string
			switch rnd.IntN(3) {
			case 0:
				got = mixed.native("RL.ACQUIRE", mixed.name, cost)
			case 1:
				got = mixed.native("RL.MACQUIRE", 1, mixed.name, cost)
			default:
				got = mixed.script(cost, s.Now())
			}
			if got != want {
				t.Fatalf("%s, step %d, cost %d of %d in %d: %q, the script alone %q", form, step, cost, rate, interval, got, want)
			}
			if a, b := alone.out(), mixed.out(); a != b {
				t.Fatalf("%s, step %d, cost %d of %d in %d, %s: %s, the script alone %s", form, step, cost, rate, interval, did, b, a)
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
	for _, what := range []string{"value gone", "keepAliveTime", "expire", "rate", "release"} {
		if done[what] < 10 {
			t.Errorf("%s: only %d", what, done[what])
		}
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
		RL.ACQUIRE l 2 => [1 3 1 603 600]
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
		PERSIST {e}:value => 1
		RL.ACQUIRE e 3 => [1 3 2 1003 1000]
		TTL {e}:value => 100
		# with keepAliveTime, each call renews all three, PEEK does not
		HSET k rate 3 interval 1000 type 0 keepAliveTime 5000 => 4
		RL.ACQUIRE k => [0 3 2 -1 1000]
		PTTL k => 5000
		+1000
		RL.ACQUIRE k PEEK => [0 3 3 -1 0]
		PTTL {k}:value => 4000
		RL.ACQUIRE k 3 => [0 3 0 -1 1000]
		PTTL k => 5000
		PTTL {k}:value => 5000
		PTTL {k}:permits => 5000
		# what was released does not come back a second time
		HSET r rate 10 interval 1000 type 0 => 3
		RL.ACQUIRE r 9 => [0 10 1 -1 1000]
		RL.RELEASE r 9 => 9
		RL.RELEASE r 9 => 0
		+1000
		RL.ACQUIRE r 10 => [0 10 0 -1 1000]
		RL.ACQUIRE r 1 => [1 10 0 1003 1000]
		RL.RELEASE r 0 => 0
		RL.RELEASE h => `+wrongType+`
		RL.INFO h => `+wrongType+`
		RL.INFO r => [rules [LOG 10 1000] capacity 10 available 0 reset_after 1000 waiters 0 RateLimit "log";r=0;t=1 RateLimit-Policy "log";q=10;w=1]
		# with others, all or nothing
		RL.SET n LOG 2 1000 => OK
		RL.MACQUIRE 2 r 1 n 1 => [1 10 0 1003 1000 0]
		RL.ACQUIRE n PEEK => [0 2 2 -1 0]
		+1000
		RL.MACQUIRE 2 r 1 n 2 => [0 2 0 -1 1000 -1]
		RL.MACQUIRE 2 r 1 n 1 => [1 2 0 1000 1000 1]
		GET {r}:value => 9
		RL.MACQUIRE 2 r 10 n 1 FORCE => [0 10 0 -1 1000 -1]
		GET {r}:value => -1
		RL.MACQUIRE 1 r 1 ID a => -ERR a Redisson limiter has no ID, KEEP or ATMOST
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
	if got := second.Read(); got != "[1 2 0 503 500]" {
		t.Error(got)
	}
}
