package observe_test

// A client that holds many connections does not block health checks and metrics.

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// connect makes a connection to the site from an address of this machine.
func (s *site) connect(from string) net.Conn {
	s.t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	c, err := d.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		s.t.Skipf("no connection from %s: %v", from, err)
	}
	s.t.Cleanup(func() { c.Close() })
	return c
}

func ask(c net.Conn, path string) string {
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", path); err != nil {
		return err.Error()
	}
	b := make([]byte, 4096)
	n, err := c.Read(b)
	if err != nil {
		return err.Error()
	}
	return string(b[:n])
}

func (s *site) answers() {
	s.t.Helper()
	http.DefaultClient.CloseIdleConnections()
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/"} {
		s.wants(path, 200, "")
	}
}

// More connections than the maximum, from one address and from many: silent ones, some with half a request, idle ones after an
// answer, and ones that send requests without end and read nothing.
func TestCrowd(t *testing.T) {
	for name, from := range map[string]func(i int) string{
		"one address":    func(int) string { return "127.0.0.1" },
		"many addresses": func(i int) string { return fmt.Sprintf("127.0.0.%d", 2+i%9) },
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			quiet := s.connect("127.0.0.77")
			for i := range 300 {
				if c := s.connect(from(i)); i%2 == 0 {
					fmt.Fprint(c, "GET /metrics HTTP/1.1\r\nHost: x")
				}
			}
			if got := ask(quiet, "/healthz"); !strings.HasPrefix(got, "HTTP/1.1 200") && name == "one address" {
				t.Errorf("the only connection of another address: %q", got)
			}
			s.answers()
			for i := range 300 {
				if got := ask(s.connect(from(i)), "/healthz"); !strings.HasPrefix(got, "HTTP/1.1 200") {
					t.Fatalf("connection %d: %q", i, got)
				}
			}
			s.answers()
			pipeline := strings.Repeat("GET /app.js HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 2000)
			for i := range 300 {
				c := s.connect(from(i))
				_ = c.SetWriteDeadline(time.Now().Add(30 * time.Second))
				if _, err := io.WriteString(c, pipeline); errors.Is(err, os.ErrDeadlineExceeded) {
					t.Fatal(err)
				}
			}
			s.answers()
		})
	}
}

// A connection whose answer is not read is closed.
func TestUnreadAnswers(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.connect("127.0.0.1")
	_ = c.SetWriteDeadline(time.Now().Add(30 * time.Second)) // three times the time that it may take
	var err error
	for err == nil {
		_, err = io.WriteString(c, "GET /app.js HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
}

// So is an idle connection after its answer.
func TestIdleConnection(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.connect("127.0.0.1")
	if got := ask(c, "/healthz"); !strings.HasPrefix(got, "HTTP/1.1 200") {
		t.Fatal(got)
	}
	if _, err := io.ReadAll(c); err != nil {
		t.Error(err)
	}
}

// With the maximum number of clients, metrics are still served and show it, and the health check replies the error that a
// client would get.
func TestAtMaxClients(t *testing.T) {
	s := start(t)
	c := s.Client()
	c.Want("PONG", "PING")
	n := s.Clients.Len() // the test's own
	s.wants("/readyz", 200, "ok\n")
	s.wants("/metrics", 200, "limitkv_ready 1\n")
	c.Want("OK", "CONFIG", "SET", "maxclients", strconv.Itoa(n))
	s.wants("/metrics", 200, "limitkv_ready 0\n")
	s.wants("/metrics", 200, fmt.Sprintf("limitkv_connections_max %d\n", n))
	s.wants("/readyz", 503, "ERR max number of clients reached")
	s.wants("/healthz", 200, "ok\n")
	s.runs("PONG", "PING")
	c.Want("OK", "CONFIG", "SET", "maxclients", strconv.Itoa(n+1))
	s.wants("/readyz", 200, "ok\n")
	s.Client().Want("PONG", "PING") // health checks and the page use none of the clients' places
	s.wants("/readyz", 503, "ERR max number of clients reached")
}
