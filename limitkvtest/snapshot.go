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

// Snapshot keeps all keys of all databases, and the functions, as they are, and
// brings them back when t ends. The function that it returns brings them back
// at once, as often as it is called. If the clock stands, it is put back too,
// since deadlines are times; but not for a namespace, as it is not its alone. Both take no time that depends on the number of
// keys.
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
