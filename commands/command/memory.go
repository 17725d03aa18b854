package command

// How much memory is in use, as maxmemory counts it: the keys, which are counted
// exactly, and the rest, which is looked at now and then.

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

// UsedMemory is what is used at a time of the server's clock, in bytes. While that
// clock stands, the rest is only looked at by MeasureMemory.
func (s *Server) UsedMemory(nowMicros int64) int64 {
	last := s.otherLooked.Load()
	if age := nowMicros - last; (age > otherMemoryMicros || age < 0) && s.otherLooked.CompareAndSwap(last, nowMicros) {
		_, used := s.MeasureMemory()
		return used
	}
	return s.otherBytes.Load() + s.Keyspace.KeysBytes()
}
