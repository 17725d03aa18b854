package engine

// LFU counters as Redis keeps them for OBJECT FREQ: a logarithmic counter
// that starts at 5 and loses one a minute. The step up is taken with a
// probability that falls with the counter; the randomness is the microsecond
// of the access, which is as good as any here.

const (
	lfuInit      = 5
	lfuLogFactor = 10
)

func lfuInitial(nowMicros int64) uint16 { return lfuInit | lfuMinutes(nowMicros)<<8 }

func lfuMinutes(nowMicros int64) uint16 { return uint16(nowMicros / 60e6 & 0xff) }

// lfuTouched is the counter after an access, the nth at that time: it grows by
// chance, the less probably the higher it is. A script's accesses have one time,
// so the time alone would draw the same lot for all of them.
func lfuTouched(freq uint16, nowMicros int64, nth uint64) uint16 {
	counter := lfuNow(freq, nowMicros)
	if counter < 255 {
		base := max(int64(counter)-lfuInit, 0)
		r := int64(mix64(uint64(nowMicros)+nth*0x9e3779b97f4a7c15) >> 40)
		if r*(base*lfuLogFactor+1) < 1<<24 {
			counter++
		}
	}
	return uint16(counter) | lfuMinutes(nowMicros)<<8
}

// lfuNow is the counter, less what it has lost since the last access.
func lfuNow(freq uint16, nowMicros int64) uint8 {
	counter := uint8(freq)
	return counter - min(counter, uint8(lfuMinutes(nowMicros)-freq>>8))
}

// mix64 spreads a number over all bits (the finaliser of SplitMix64).
func mix64(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}
