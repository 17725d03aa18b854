package engine

// LFU counters, as Redis keeps them for OBJECT FREQ: a logarithmic counter that starts at 5 and loses one a minute. A
// step up is taken with a probability that falls as the counter grows. The random number is made from the microsecond
// of the access, which is random enough here.

import "sync/atomic"

const lfuInit = 5

// LFURule says how the counters grow and fall.
type LFURule struct {
	// LogFactor is how much less probable each step up is than the one before it (lfu-log-factor).
	LogFactor atomic.Int64
	// DecayMinutes is how many minutes without an access lower the counter by one, 0 = never (lfu-decay-time). A
	// counter remembers 255 minutes.
	DecayMinutes atomic.Int64
}

func (r *LFURule) set(from *LFURule) {
	r.LogFactor.Store(from.LogFactor.Load())
	r.DecayMinutes.Store(from.DecayMinutes.Load())
}

func lfuInitial(nowMicros int64) uint16 { return lfuInit | lfuMinutes(nowMicros)<<8 }

func lfuMinutes(nowMicros int64) uint16 { return uint16(nowMicros / 60e6 & 0xff) }

// touched is the counter after an access, the nth at that time. It grows with a probability that falls as it grows.
// All accesses of a script have the same time, so n makes their random numbers differ.
func (r *LFURule) touched(freq uint16, nowMicros int64, nth uint64) uint16 {
	counter := r.now(freq, nowMicros)
	if counter < 255 {
		base := max(int64(counter)-lfuInit, 0)
		const lots = 1 << 24
		lot := int64(mix64(uint64(nowMicros)+nth*0x9e3779b97f4a7c15) >> 40)
		if lot <= (lots-1)/(base*r.LogFactor.Load()+1) {
			counter++
		}
	}
	return uint16(counter) | lfuMinutes(nowMicros)<<8
}

// now is the counter minus what it has lost since the last access.
func (r *LFURule) now(freq uint16, nowMicros int64) uint8 {
	counter := uint8(freq)
	every := r.DecayMinutes.Load()
	if every == 0 {
		return counter
	}
	idle := uint8(lfuMinutes(nowMicros) - freq>>8)
	return counter - min(counter, uint8(int64(idle)/every))
}

// inherit gives an entry the counter of the entry that it replaces. The write is an access too.
func (v *View) inherit(e, old Entry) {
	e.h.freq = old.h.freq
	if v.KS.LFU.Load() {
		e.h.freq = v.KS.LFURule.touched(e.h.freq, v.Now, v.touches)
		v.touches++
	}
}

// Freq is the LFU counter of an entry (OBJECT FREQ).
func (v *View) Freq(e Entry) uint8 { return v.KS.LFURule.now(e.h.freq, v.Now) }

// SetFreq sets the LFU counter of an entry (RESTORE FREQ).
func (v *View) SetFreq(e Entry, n uint8) { e.h.freq = uint16(n) | lfuMinutes(v.Now)<<8 }

// mix64 spreads a number over all bits (the finaliser of SplitMix64).
func mix64(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}
