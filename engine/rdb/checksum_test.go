package rdb

import (
	"hash/crc64"
	"math/rand/v2"
	"testing"
)

// TestChecksum compares with hash/crc64, which complements at both ends, and has the check value of Redis's own.
func TestChecksum(t *testing.T) {
	if sum := addChecksum(0, []byte("123456789")); sum != 0xe9c6d914c4b8d9ca {
		t.Errorf("of 123456789: %x", sum)
	}
	table := crc64.MakeTable(polynomial)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	b := make([]byte, 10*laneBytes)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	for range 500 {
		n, cut := rng.IntN(len(b)+1), rng.IntN(len(b)+1)
		text := b[:n]
		want := ^crc64.Update(^uint64(0), table, text)
		cut = min(cut, n)
		if got := addChecksum(addChecksum(0, text[:cut]), text[cut:]); got != want {
			t.Fatalf("of %d bytes, cut at %d: %x, not %x", n, cut, got, want)
		}
	}
}

func BenchmarkChecksum(b *testing.B) {
	text := make([]byte, 256<<10)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		addChecksum(0, text)
	}
}

func BenchmarkChecksumStandard(b *testing.B) {
	text := make([]byte, 256<<10)
	table := crc64.MakeTable(polynomial)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		crc64.Update(0, table, text)
	}
}
