//go:build toyalgorithm

package ratelimit_test

import (
	"strings"
	"testing"

	"github.com/limitkv/limitkv/commands/livetest"
)

// TOY (engine/limiter) is used like any other algorithm; no command has code for it. After each line the journal is replayed,
// and the keys are reloaded.
func TestToy(t *testing.T) {
	prove(t, `
		RL.SET t TOY 10 1000 => OK
		RL.ACQUIRE t 4 => [0 10 6 -1 1000]
		+600
		RL.ACQUIRE t 3 => [0 10 3 -1 1000]
		# FIXED would have begun a new window
		+600
		RL.ACQUIRE t 4 => [1 10 3 400 400]
		RL.ACQUIRE t 2 => [0 10 1 -1 1000]
		RL.RELEASE t 4 => 4
		RL.INFO t => [rules [TOY 10 1000] capacity 10 available 5 reset_after 1000 waiters 0 granted 3 refused 1 grants 0 RateLimit "toy";r=5;t=1 RateLimit-Policy "toy";q=10;w=1]
		+1000
		RL.ACQUIRE t PEEK => [0 10 10 -1 0]
		RL.ACQUIRE t 5 ID a LEASE 60000 => [0 10 5 -1 1000]
		RL.SETTLE t a 2 => 3
		RL.ACQUIRE t PEEK => [0 10 8 -1 1000]
		# other rules of its own, of another algorithm, and of its own again keep what was taken
		RL.SET t TOY 5 500 => OK
		RL.ACQUIRE t PEEK => [0 5 3 -1 500]
		RL.SET t GCRA 4 1000 => OK
		RL.ACQUIRE t PEEK => [0 4 2 -1 500]
		RL.SET t TOY 10 1000 CONC 3 => OK
		RL.ACQUIRE t 1 ID b LEASE 60000 => [0 3 2 -1 60000]
		RL.ACQUIRE t PEEK ID b => -ERR syntax error
		RL.SETTLE t b => 0
		RL.ACQUIRE u 11 TOY 10 1000 => -ERR cost is above the limiter's capacity
		RL.ACQUIRE u FORCE => -NOLIMITER no such limiter, define it with RL.SET or give a rule
		RL.ACQUIRE u 13 FORCE TOY 10 1000 => [0 10 0 -1 1000]
		RL.SET v TOY 10 => -ERR syntax error
		RL.SET v TOY 10 0 => -ERR period is out of range, it can be 1 to 315576000000 ms
	`)
}

// Its image is restored, and an impossible image is refused.
func TestToyImage(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	c.Want("OK", "RL.SET", "t", "TOY", "10", "1000")
	c.Want("[0 10 6 -1 1000]", "RL.ACQUIRE", "t", "4")
	image := c.Do("DUMP", "t")
	c.Want("OK", "RESTORE", "u", "0", image)
	c.Want("[0 10 6 -1 1000]", "RL.ACQUIRE", "u", "PEEK")
	if docs := c.Do("COMMAND", "DOCS", "RL.ACQUIRE"); !strings.Contains(docs, "TOY") {
		t.Errorf("COMMAND DOCS: %s", docs)
	}
}
