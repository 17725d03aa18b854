package livetest

// Tests that measure, and tests that draw at random.

import (
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"
)

// Measured skips a test that measures unless LIMITKV_MEASURE asks for it: a busy machine makes such numbers its own.
func Measured(t *testing.T) {
	t.Helper()
	if os.Getenv("LIMITKV_MEASURE") == "" {
		t.Skip("LIMITKV_MEASURE is not set")
	}
}

// HeapBytes is what is live on the heap.
func HeapBytes() int64 {
	runtime.GC()
	runtime.GC() // the first one leaves what has a finalizer, and what pools keep
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Random returns what a test against a model draws from, and how many steps it takes: LIMITKV_MODEL_STEPS, or so many. It
// logs the seed, and LIMITKV_SEED repeats one.
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
