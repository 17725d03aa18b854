package limitkvtest

// Namespaces for tests that run in parallel on one server.

import (
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

// namespaces numbers the namespaces of this process.
var namespaces atomic.Int64

// Namespace returns what works like a separate server for a test, and costs less. Its address has its own databases, channels,
// functions, faults, received commands and snapshots, which nobody else sees, and the methods of the result work on these. All
// namespaces share the server's clock, random numbers, settings, users and cached scripts. The namespace ends with t.
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
