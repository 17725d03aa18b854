package limitkvtest

// Snapshots of the server's keys.

import (
	"strconv"
	"sync/atomic"
	"testing"
	"time"
)

// snapshots numbers the snapshots of this process.
var snapshots atomic.Int64

// Snapshot saves all keys of all databases, and the functions, and restores them when t ends. The function that it returns
// restores them at once; it can be called several times. If the clock is frozen, it is also set back, since deadlines are
// times; but not for a namespace, which shares its clock with others. The time for saving and restoring does not depend on the
// number of keys.
//
//	for _, test := range tests {
//		t.Run(test.name, func(t *testing.T) {
//			s.Snapshot(t)
//			…
//		})
//	}
func (s *Server) Snapshot(t testing.TB) (restore func()) {
	t.Helper()
	name := "limitkvtest-" + strconv.FormatInt(snapshots.Add(1), 10)
	clock := s.server.Keyspace.Clock
	stands, at := clock.Frozen() && s.namespace == "", time.UnixMicro(clock.Now())
	s.run(t, "LKV.SNAPSHOT", "SAVE", name)
	restore = func() {
		t.Helper()
		if stands {
			s.run(t, "LKV.CLOCK", "FREEZE", strconv.FormatInt(at.UnixMilli(), 10))
		}
		s.run(t, "LKV.SNAPSHOT", "RESTORE", name)
	}
	t.Cleanup(func() {
		restore()
		s.run(t, "LKV.SNAPSHOT", "DROP", name)
	})
	return restore
}
