//go:build unix

package livetest

import (
	"syscall"
	"testing"
	"time"
)

// CPU is the processor time of this process, server and clients.
func CPU() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Crowd starts a server whose clock runs and that has room for a crowd, with a client that is none of it: 10,000, or as many as
// the process may have, since both ends are in it.
func Crowd(t *testing.T) (s *Server, c *Client, crowd int) {
	t.Helper()
	var files syscall.Rlimit
	syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files)
	crowd = min(10_000, int(files.Cur)/2-200)
	s = Start(t)
	c = s.Client()
	c.Want("OK", "CONFIG", "SET", "maxclients", crowd+10)
	c.Want("OK", "LKV.CLOCK", "RESUME")
	return s, c, crowd
}

// Wait has a crowd wait, each of it for what request says, one after the other, and logs what that costs while nothing happens.
func (s *Server) Wait(t *testing.T, crowd int, request func(i int) []any) []*Client {
	t.Helper()
	clients := make([]*Client, crowd)
	for i := range clients {
		clients[i] = s.Client()
		clients[i].Send(request(i)...)
		s.Blocked(int64(i + 1))
	}
	before := CPU()
	time.Sleep(3 * time.Second)
	t.Logf("%d waiters: %.3f %% of a core", crowd, float64(CPU()-before)/float64(3*time.Second)*100)
	return clients
}
