package engine

import "testing"

// BenchmarkClock measures what each command pays for its time.
func BenchmarkClock(b *testing.B) {
	c := NewClock()
	b.Run("Now", func(b *testing.B) {
		var sum int64
		for b.Loop() {
			sum += c.Now()
		}
		_ = sum
	})
	b.Run("At", func(b *testing.B) {
		now, sum := Monotonic(), int64(0)
		for b.Loop() {
			sum += c.At(now)
		}
		_ = sum
	})
}
