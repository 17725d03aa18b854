package server

// Listening: where clients come from.

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// bound is a listener, and whether its connections are served by goroutines.
type bound struct {
	net.Listener
	goroutines bool
}

// accept begins to accept clients.
func (s *Server) accept() error {
	s.binding.Lock()
	defer s.binding.Unlock()
	for len(s.bound) > 0 {
		if err := s.host.net.ServeListener(s.bound[0].Listener, s.bound[0].goroutines); err != nil {
			return err
		}
		s.bound = s.bound[1:]
	}
	return nil
}

// unbind closes the listeners that do not accept clients yet.
func (s *Server) unbind() {
	s.binding.Lock()
	defer s.binding.Unlock()
	for _, b := range s.bound {
		b.Close()
	}
	s.bound = nil
}

// Listen begins to serve what port, bind and unixsocket say and returns the
// addresses. Port 0 picks a free port, the same for all addresses. With LoadLater
// clients are accepted when Load is called.
func (s *Server) Listen() (addrs []string, err error) {
	addrs, err = s.bind()
	if err == nil && !s.loads {
		err = s.accept()
	}
	if err != nil {
		s.unbind()
	}
	return addrs, err
}

func (s *Server) bind() (addrs []string, err error) {
	var secure *tls.Config
	tlsPort := s.params.tlsPort()
	if tlsPort == "0" || s.params.port() != "0" {
		port, err := s.listenTCP("tcp", s.params.port(), &addrs, nil)
		if err != nil {
			return nil, err
		}
		s.Config.Find("port").Set(port)
	}
	if tlsPort != "0" {
		if secure, err = s.params.tls.start(); err != nil {
			return nil, fmt.Errorf("tls-port: %w", err)
		}
		if _, err := s.listenTCP("tls", tlsPort, &addrs, secure); err != nil {
			return nil, err
		}
	}
	if path := s.params.unixsocket(); path != "" {
		a, err := s.listenUnix(path)
		if err != nil {
			return nil, err
		}
		addrs = append(addrs, a.String())
		s.Listeners = append(s.Listeners, "name=unix,bind="+path)
	}
	s.params.listening.Store(true)
	if len(addrs) == 0 {
		return nil, errors.New("nothing to listen on")
	}
	addr, err := s.site.Listen(secure)
	if err != nil {
		return nil, err
	}
	if addr != "" {
		addrs = append(addrs, addr)
	}
	return addrs, nil
}

// listenTCP listens to a port of all the addresses of bind, with TLS if config
// is not nil, and returns the port: the one that was picked if it was 0.
func (s *Server) listenTCP(name, port string, addrs *[]string, config *tls.Config) (string, error) {
	for _, host := range strings.Fields(s.params.bind()) {
		optional := strings.HasPrefix(host, "-") // may be missing on this machine
		host = strings.TrimPrefix(host, "-")
		ln, err := net.Listen(listenAt(host, port))
		if err != nil {
			if optional && errors.Is(err, syscall.EADDRNOTAVAIL) || noFamily(err) {
				continue
			}
			s.Logf('w', "Failed listening on port %s (%s), aborting: %v", port, name, err)
			return "", err
		}
		*addrs = append(*addrs, ln.Addr().String())
		number := ln.Addr().(*net.TCPAddr).Port
		if config != nil {
			ln = tls.NewListener(ln, config)
		}
		s.bound = append(s.bound, bound{ln, config != nil || s.host.net.Loops() == 0})
		s.Listeners = append(s.Listeners, fmt.Sprintf("name=%s,bind=%s,port=%d", name, host, number))
		port = strconv.Itoa(number)
	}
	return port, nil
}

// listenAt is where a word of bind says to listen: as in Redis each names one
// address family, * being all of IPv4 and ::* all of IPv6.
func listenAt(host, port string) (network, at string) {
	switch {
	case host == "*":
		return "tcp4", net.JoinHostPort("0.0.0.0", port)
	case host == "::*":
		return "tcp6", net.JoinHostPort("::", port)
	case strings.Contains(host, ":"):
		return "tcp6", net.JoinHostPort(host, port)
	}
	return "tcp4", net.JoinHostPort(host, port)
}

// noFamily tells whether an error says that the machine lacks the address family. Redis ignores such an address.
func noFamily(err error) bool {
	for _, no := range []error{syscall.EAFNOSUPPORT, syscall.EPFNOSUPPORT, syscall.EPROTONOSUPPORT, syscall.ESOCKTNOSUPPORT, syscall.ENOPROTOOPT} {
		if errors.Is(err, no) {
			return true
		}
	}
	return false
}

// Ready writes to the log, as Redis does, that the server accepts connections.
func (s *Server) Ready() {
	for _, on := range []string{"tcp", "tls", "unix"} {
		if slices.ContainsFunc(s.Listeners, func(l string) bool { return strings.HasPrefix(l, "name="+on+",") }) {
			s.Logf('n', "Ready to accept connections %s", on)
		}
	}
}

// listenUnix listens on a unix socket. It replaces a socket file that no server uses any more.
func (s *Server) listenUnix(path string) (net.Addr, error) {
	if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSocket != 0 {
		if conn, err := net.Dial("unix", path); err == nil {
			conn.Close()
			return nil, fmt.Errorf("another server listens on %s", path)
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	ln, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	s.bound = append(s.bound, bound{ln, s.host.net.Loops() == 0})
	if mode, _ := strconv.ParseUint(s.params.unixsocketperm(), 8, 32); mode != 0 {
		err = os.Chmod(path, os.FileMode(mode))
	}
	return ln.Addr(), err
}
