// Package web, internal to the server, serves HTTP: metrics for Prometheus, checks of liveness and readiness,
// and a web page for people. It knows only the commands that open a connection. The page's commands run like those of any
// client, over a connection inside the process, with the permissions of the user who signed in.
package web

import (
	"context"
	"crypto/tls"
	"errors"
	"log"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// Options are what a site needs from the server.
type Options struct {
	// Dial makes a connection to the server, in RESP, for a client at a remote address.
	Dial func(remote net.Addr) net.Conn
	// Ready returns "" if the server is ready for clients, else the reason why not.
	Ready func() string
	// Metrics adds all metrics to m. Ask is the command that a user must be allowed to run in order to read them.
	Metrics func(m *Metrics)
	Ask     []string
	// Admit returns the error for a command that the page may not run, "" if it may.
	Admit func(args []string) string
	// May returns the error for a command that a user may not run on the page, "" if the user may; it does not run the command.
	May func(user string, args []string) string
	// Open tells whether clients need no password, so that only the network protects the server.
	Open func() bool
	// Logf logs errors that are not part of an answer.
	Logf func(format string, args ...any)
}

// Site serves HTTP.
type Site struct {
	o    Options
	http http.Server
	room *room
}

// The limits of a connection. They suffice for real clients, and a client that is slow on purpose occupies little.
const (
	headerTimeout  = 5 * time.Second // also for the TLS handshake
	requestTimeout = 30 * time.Second
	idleTimeout    = 10 * time.Second
	writeTimeout   = 10 * time.Second // without the client taking anything
	headerBytesMax = 16 << 10
	bodyBytesMax   = 1 << 20
)

// New makes a site.
func New(o Options) *Site {
	s := &Site{o: o, room: newRoom()}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", s.health)
	mux.HandleFunc("GET /readyz", s.ready)
	mux.HandleFunc("GET /metrics", s.metrics)
	mux.HandleFunc("POST /api/commands", s.commands)
	mux.Handle("GET /", pages())
	s.http = http.Server{
		Handler: s.guarded(mux), ReadHeaderTimeout: headerTimeout, ReadTimeout: requestTimeout, IdleTimeout: idleTimeout,
		WriteTimeout: requestTimeout + writeTimeout, ConnState: s.room.state, MaxHeaderBytes: headerBytesMax, ErrorLog: log.New(lines(o.Logf), "", 0),
	}
	return s
}

// lines is the writer for the error log of the HTTP server.
type lines func(format string, args ...any)

func (l lines) Write(b []byte) (int, error) {
	l("http: %s", strings.TrimSpace(string(b)))
	return len(b), nil
}

// Serve serves connections of ln, with TLS if config is not nil, until Close.
func (s *Site) Serve(ln net.Listener, config *tls.Config) {
	ln = &limited{Listener: ln, room: s.room}
	if config != nil {
		config = config.Clone()
		config.NextProtos = []string{"http/1.1"}
		ln = tls.NewListener(ln, config)
	}
	if err := s.http.Serve(ln); err != nil && !errors.Is(err, http.ErrServerClosed) {
		s.o.Logf("http: %v", err)
	}
}

// Close ends all connections.
func (s *Site) Close() error { return s.http.Close() }

// guarded adds security headers to every answer, and checks the host that a request names if the server is open.
func (s *Site) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "+
			"base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		if !s.o.Open() || knownHost(r.Host) {
			next.ServeHTTP(w, r)
			return
		}
		http.Error(w, "Without a password this server answers to its address only, not to a name that anybody may point here. Use the address, or set requirepass.", http.StatusForbidden)
	})
}

// knownHost tells whether a request was sent to an IP address or to localhost. This prevents DNS rebinding: another site can
// make its own name resolve to this server, and the browser then lets its scripts read our answers. With an address it cannot.
func knownHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// health answers ok if the server replies at all, also with an error such as a missing password or loading.
func (s *Site) health(w http.ResponseWriter, r *http.Request) {
	if _, err := s.pinged(r); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	text(w, "ok\n")
}

// ready answers ok if the server would serve a new client.
func (s *Site) ready(w http.ResponseWriter, r *http.Request) {
	why := s.o.Ready()
	if why == "" {
		reply, err := s.pinged(r)
		if e, refused := reply.(failure); err != nil {
			why = err.Error()
		} else if refused && e.code() != "NOAUTH" { // "limitkv ping" decides in the same way
			why = string(e)
		}
	}
	if why != "" {
		http.Error(w, why, http.StatusServiceUnavailable)
		return
	}
	text(w, "ok\n")
}

// answerWithin is how long the server may take to answer a check.
const answerWithin = 5 * time.Second

// pinged is the server's reply to PING.
func (s *Site) pinged(r *http.Request) (any, error) {
	ctx, cancel := context.WithTimeout(r.Context(), answerWithin)
	defer cancel()
	c := s.dial(ctx, r)
	defer c.close()
	reply, err := c.do([]string{"PING"})
	if err != nil {
		return nil, errors.New("the server does not answer")
	}
	return reply, nil
}

func text(w http.ResponseWriter, s string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write([]byte(s))
}
