// DQ.MOVE compared with the script that a poller of scheduled jobs calls.
package delayqueue_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/limitkv/limitkv/commands/livetest"
)

// pollScript moves members that are due at ARGV[1] from the sorted set to the list.
const pollScript = `
local due = redis.call('zrangebyscore', KEYS[1], '-inf', ARGV[1], 'limit', 0, ARGV[2])
for _, job in ipairs(due) do
  redis.call('zrem', KEYS[1], job)
  redis.call('rpush', KEYS[2], job)
end
return #due`

// DQ.MOVE does the same, call for call.
func TestAsPoller(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	s := livetest.Start(t)
	c := s.Client()
	moved, nothing := 0, 0
	for range 1500 {
		switch rnd.IntN(4) {
		case 0:
			score, member := s.Now()/1000+rnd.Int64N(20)-5, fmt.Sprint("job", rnd.IntN(50))
			c.Want(c.Do("ZADD", "polled", score, member), "ZADD", "moved", score, member)
		case 1:
			s.Advance(rnd.Int64N(1500))
		default:
			most := 1 + rnd.IntN(3)
			want := c.Do("EVAL", pollScript, 2, "polled", "work1", s.Now()/1000, most)
			c.Want(want, "DQ.MOVE", "moved", "work2", "UNIT", "S", "COUNT", most)
			if want == "0" {
				nothing++
			} else {
				moved++
			}
			c.Want(c.Do("LRANGE", "work1", 0, -1), "LRANGE", "work2", 0, -1)
			c.Want(c.Do("ZRANGE", "polled", 0, -1), "ZRANGE", "moved", 0, -1)
		}
	}
	if moved < 100 || nothing < 100 {
		t.Errorf("only %d times something, %d times nothing", moved, nothing)
	}
}
