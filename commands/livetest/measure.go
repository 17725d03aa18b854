package livetest

// Helpers for tests that measure, and for tests with random numbers.

import (
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"
)

// Measured skips a test that measures unless LIMITKV_MEASURE is set: on a busy machine the numbers mean nothing.
func Measured(t *testing.T) {
	t.Helper()
	if os.Getenv("LIMITKV_MEASURE") == "" {
		t.Skip("LIMITKV_MEASURE is not set")
	}
}

// HeapBytes is how many bytes are live on the heap.
func HeapBytes() int64 {
	runtime.GC()
	runtime.GC() // the first one keeps objects with finalizers, and those in pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Random returns the random numbers of a test against a model, and how many steps the test takes: LIMITKV_MODEL_STEPS, or
// steps by default. It logs the seed, and LIMITKV_SEED repeats one.
func Random(t *testing.T, steps int) (*rand.Rand, int) {
	t.Helper()
	if n, err := strconv.Atoi(os.Getenv("LIMITKV_MODEL_STEPS")); err == nil && n > 0 {
		steps = n
	}
	seed := uint64(time.Now().UnixNano())
	if s, err := strconv.ParseUint(os.Getenv("LIMITKV_SEED"), 10, 64); err == nil {
		seed = s
	}
	t.Logf("LIMITKV_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 4)), steps
}

// Crowd starts a server whose clock runs and that accepts a crowd of clients, beside the client c. The crowd is 10,000, or as
// many as the process can have, which has both ends of each connection.
func Crowd(t *testing.T) (s *Server, c *Client, crowd int) {
	t.Helper()
	crowd = min(10_000, filesMax()/2-200)
	s = Start(t)
	c = s.Client()
	c.Want("OK", "CONFIG", "SET", "maxclients", crowd+10)
	c.Want("OK", "LKV.CLOCK", "RESUME")
	return s, c, crowd
}

// Wait makes a crowd of clients wait, one after the other, each with the command that request returns. It logs what that
// costs while nothing happens.
func (s *Server) Wait(t *testing.T, crowd int, request func(i int) []any) []*Client {
	t.Helper()
	clients := make([]*Client, crowd)
	for i := range clients {
		clients[i] = s.Client()
		clients[i].Send(request(i)...)
		s.Blocked(int64(i + 1))
	}
	before := CPU()
	time.Sleep(3 * time.Second)
	t.Logf("%d waiters: %.3f %% of a core", crowd, float64(CPU()-before)/float64(3*time.Second)*100)
	return clients
}
