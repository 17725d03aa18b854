package command

// How much memory is in use, as maxmemory counts it: the keys, which are counted
// exactly, and the rest, which is looked at now and then.

import "github.com/limitkv/limitkv/engine"

// otherMemoryMicros is how old a look at the rest may be for a command that asks
// whether there is room.
const otherMemoryMicros = 100_000

// MeasureMemory returns what is used besides the keys, and altogether, in bytes.
func (s *Server) MeasureMemory() (other, used int64) {
	for _, of := range s.OtherMemory {
		other += of()
	}
	s.otherBytes.Store(other)
	return other, other + s.Keyspace.KeysBytes()
}

// UsedMemory is what is used, in bytes.
func (s *Server) UsedMemory() int64 {
	now := engine.Monotonic()
	if last := s.otherLooked.Load(); now-last > otherMemoryMicros && s.otherLooked.CompareAndSwap(last, now) {
		_, used := s.MeasureMemory()
		return used
	}
	return s.otherBytes.Load() + s.Keyspace.KeysBytes()
}
