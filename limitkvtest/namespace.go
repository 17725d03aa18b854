package limitkvtest

// Namespaces: tests that run at once on one server.

import (
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

// namespaces numbers the namespaces of this process.
var namespaces atomic.Int64

// Namespace makes what is to a test as a server of its own, and costs less: its
// address has databases, channels, functions, faults, received commands and
// snapshots that nobody else sees, and so have the methods of what it returns.
// The clock, the random numbers, the settings, users and cached scripts are the
// server's, for all. It ends with t.
//
//	server := limitkvtest.Start(t)
//	for _, test := range tests {
//		t.Run(test.name, func(t *testing.T) {
//			t.Parallel()
//			s := server.Namespace(t)
//			client := redis.NewClient(&redis.Options{Addr: s.Addr})
//			…
//		})
//	}
func (s *Server) Namespace(t testing.TB) *Server {
	t.Helper()
	name := "limitkvtest-" + strconv.FormatInt(namespaces.Add(1), 10)
	reply := string(s.server.Do("LKV.NAMESPACE", "PORT", name))
	port, ok := strings.CutPrefix(strings.TrimSpace(reply), ":")
	if !ok {
		t.Fatalf("limitkvtest: %s", reply)
	}
	t.Cleanup(func() { s.server.Do("LKV.NAMESPACE", "DROP", name) })
	return &Server{Addr: net.JoinHostPort(s.Host, port), Host: s.Host, Port: port, t: t, server: s.server, namespace: name}
}
