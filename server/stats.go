package server

// Counters of the whole server.

// ResetStats sets to zero what CONFIG RESETSTAT does.
func (s *Server) ResetStats() {
	s.Stats.Reset()
	s.Workers.Reset()
	s.Persistence.ResetStats()
	s.Replication.ResetStats()
	s.Keeper.ResetStats()
}
