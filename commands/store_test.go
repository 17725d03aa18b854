package commands_test

// A store that is not a file, as a group of machines will be. It takes batches, confirms them when the test says so, refuses
// to, and discards batches that it has not confirmed. Only the log knows it.

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/limitkv/limitkv/commands/livetest"
	"github.com/limitkv/limitkv/engine/journal"
)

// quorum is a store in which the test plays the other machines.
type quorum struct {
	journal.Store // methods that no test calls
	confirmed     atomic.Uint64
	refusal       atomic.Pointer[string]

	mu      sync.Mutex
	batches []string
	ends    []journal.LSN
}

func (q *quorum) Append(lsn journal.LSN, _ int64, framed []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.batches, q.ends = append(q.batches, string(framed)), append(q.ends, lsn)
}

func (q *quorum) Holds() bool            { return true }
func (q *quorum) Confirmed() journal.LSN { return journal.LSN(q.confirmed.Load()) }
func (q *quorum) Durable() journal.LSN   { return 0 } // the machine's own disk is behind
func (q *quorum) Round() int64           { return 0 }

func (q *quorum) Refusal() string {
	if text := q.refusal.Load(); text != nil {
		return *text
	}
	return ""
}

// last is the LSN after all batches.
func (q *quorum) last() journal.LSN {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.ends) == 0 {
		return 0
	}
	return q.ends[len(q.ends)-1]
}

// await waits until something is appended that the test has not seen.
func (q *quorum) await(t *testing.T, s *livetest.Server, seen journal.LSN) journal.LSN {
	t.Helper()
	probe := s.Client() // its replies come when commands sent before have run, or soon after
	for range 10_000 {
		if at := q.last(); at > seen {
			return at
		}
		probe.Do("PING")
	}
	t.Fatal("nothing was appended")
	return 0
}

func TestStoreThatConfirmsLater(t *testing.T) {
	s := livetest.Start(t)
	log, q := s.Keyspace.Journal, &quorum{}
	log.Attach(q)
	log.Keep(q)
	confirm := func(at journal.LSN) {
		q.confirmed.Store(uint64(at))
		log.Release()
	}
	a, b, listens := s.Client(), s.Client(), s.Client()
	listens.Do("SUBSCRIBE", "c")

	// A write, its readers and its messages wait for the other machines; clients that have seen nothing of it do not.
	a.Send("SET", "k", "1")
	first := q.await(t, s, 0)
	b.Send("GET", "k")
	s.Client().Want("nil", "GET", "other key")
	publishes := s.Client()
	publishes.Send("EVAL", "redis.call('INCR', KEYS[1]); return redis.call('PUBLISH', 'c', 'm')", "1", "n")
	second := q.await(t, s, first)
	for _, c := range []*livetest.Client{a, b, listens, publishes} {
		c.Silent()
	}
	confirm(first)
	for c, want := range map[*livetest.Client]string{a: "OK", b: "1"} {
		if got := c.Read(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	publishes.Silent()
	listens.Silent()
	confirm(second)
	if got := publishes.Read(); got != "1" {
		t.Errorf("PUBLISH replied %s", got)
	}
	if got := listens.Read(); !strings.Contains(got, "m") {
		t.Errorf("who listens got %s", got)
	}

	// If the store cannot confirm, each reply is its error.
	text := "MISCONF no majority"
	a.Send("SET", "k", "2")
	third := q.await(t, s, second)
	a.Silent()
	q.refusal.Store(&text)
	log.Release()
	if got := a.Read(); got != "-"+text {
		t.Errorf("a write that cannot be confirmed: %s", got)
	}
	q.refusal.Store(nil)
	confirm(third)
	b.Want("2", "GET", "k")

	// A discarded write fails for the clients that wait for it, and for nobody else. The log continues from before it.
	a.Send("SET", "k", "3")
	fourth := q.await(t, s, third)
	b.Send("SET", "other key", "1")
	q.await(t, s, fourth)
	q.confirmed.Store(uint64(fourth))
	log.Truncated(fourth, "UNKNOWN the outcome is not known: the leader has changed")
	if got := a.Read(); got != "OK" {
		t.Errorf("what was confirmed: %s", got)
	}
	if got := b.Read(); !strings.HasPrefix(got, "-UNKNOWN") {
		t.Errorf("what was taken back: %s", got)
	}
	if end := log.End(); end != fourth {
		t.Errorf("the log goes on at %d, not at %d", end, fourth)
	}
}
