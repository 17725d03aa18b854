// INFO keyspace counts what happens to keys, after each step as Redis does: keys, those with a deadline, and hashes
// that have fields with one. A hash whose last deadline is taken away by another way than time or HDEL is counted by Redis
// until that time; by limitkv it is not.
package tools

import (
	"regexp"
	"strings"
	"testing"
)

const lives = `
HSET a f1 v f2 v f3 v
HEXPIRE a 1000 FIELDS 2 f1 f2
HPERSIST a FIELDS 1 f1
HDEL a f2
HEXPIRE a 1000 FIELDS 1 f3
HSETEX b EX 1000 FIELDS 1 f v
HGETEX b EX 1000 FIELDS 1 f
HGETDEL b FIELDS 1 f
HSETEX c EX 1000 FIELDS 2 f v g v
EXPIRE c 1000
COPY c d
RENAME c e
PERSIST e
HPEXPIRE e 0 FIELDS 1 f
COPY d d DB 3
MOVE e 2
SET d string
HSETEX d EX 1000 FIELDS 1 f v
DEL d
HSETEX d EX 1000 FIELDS 1 f v
DEL d
HSETEX f EX 1000 FIELDS 1 f v
SWAPDB 0 3
HSETEX g EX 1000 FIELDS 1 f v
HDEL d f
HDEL d g
SET s 1 EX 1000
GETEX s PERSIST
HSETEX h KEEPTTL FIELDS 1 f v
HINCRBY g n 1
HSETEX s2 EX 1000 FIELDS 1 f v
SUNIONSTORE s2 nosuch
MULTI
HSETEX m EX 1000 FIELDS 1 f v
DEL m
HSETEX m EX 1000 FIELDS 1 f v
EXEC
EVAL "redis.call('HSETEX', KEYS[1], 'EX', 1000, 'FIELDS', 1, 'f', 'v') return redis.call('HSET', KEYS[1], 'g', 1)" 1 l
FLUSHDB
SWAPDB 0 2
SWAPDB 0 3
FLUSHALL
HSETEX z EX 1000 FIELDS 1 f v
`

func TestKeyspaceCounts(t *testing.T) {
	p := start(t)
	redis, limitkv := p.redis.Dial(t), p.limitkv.Dial(t)
	average := regexp.MustCompile(`avg_ttl=\d+`)
	counted := 0
	for _, line := range strings.Split(strings.TrimSpace(lives), "\n") {
		ask(t, p.redis, redis, line)
		ask(t, p.limitkv, limitkv, line)
		want := average.ReplaceAllString(ask(t, p.redis, redis, "INFO keyspace").Text, "avg_ttl")
		got := average.ReplaceAllString(ask(t, p.limitkv, limitkv, "INFO keyspace").Text, "avg_ttl")
		if want != got {
			t.Errorf("after %s\n want %q\n  got %q", line, want, got)
		}
		if strings.Contains(want, "subexpiry=1") || strings.Contains(want, "subexpiry=2") {
			counted++
		}
	}
	if counted < 10 {
		t.Errorf("%d times there was a hash to count", counted)
	}
}
