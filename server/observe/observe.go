// Package observe, internal to the server, is the server over HTTP: metrics for Prometheus, health checks, and a page for
// people. Package web serves HTTP; this package provides the data, and decides which commands the page may run.
package observe

import (
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/server/acl"
	"github.com/limitkv/limitkv/server/clients"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/params"
	"github.com/limitkv/limitkv/web"
)

// Site is a server's HTTP site.
type Site struct {
	s         *command.Server
	users     *acl.Users
	limits    *clients.Limits
	at        string // the address to listen on, "" for none
	listening bool   // at can no longer change
	write     *atomic.Bool
	site      *web.Site
	// seen is the last known state of the queues of each shard.
	seen struct {
		sync.Mutex
		shards [engine.Shards]byPrefix
	}
}

// New declares the site's parameters. Listen begins to serve.
func New(s *command.Server, users *acl.Users, limits *clients.Limits) *Site {
	o := &Site{s: s, users: users, limits: limits}
	s.Config.Add(&params.Param{
		Name: "http", Help: "address to serve metrics and the page at, such as 9121 or 0.0.0.0:9121; the host is 127.0.0.1 unless given, empty is nowhere",
		Get: func() string { return o.at },
		Set: func(value string) error {
			at, err := address(value)
			switch {
			case err != nil:
				return err
			case !o.listening:
				o.at = at
			case at != o.at: // clients may set a parameter to the value that they have read
				return errors.New("limitkv listens where it was started to")
			}
			return nil
		},
	})
	s.Config.Add(o.prefixesParam())
	o.write = s.Config.Bool("http-write", false, "the page may change data and the server; otherwise it only looks")
	return o
}

// Close stops serving.
func (o *Site) Close() error {
	if o.site == nil {
		return nil
	}
	return o.site.Close()
}

// address parses a value of the parameter http.
func address(value string) (string, error) {
	if value == "" {
		return "", nil
	}
	host, port := "", value
	if strings.Contains(value, ":") {
		var err error
		if host, port, err = net.SplitHostPort(value); err != nil {
			return "", errors.New("argument must be a port, or a host and a port")
		}
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return "", errors.New("argument must be a port, or a host and a port")
	}
	if host == "" {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port), nil
}

// Listen begins to serve, with TLS if config is not nil. It returns the site's URL, "" if there is no site.
func (o *Site) Listen(config *tls.Config) (addr string, err error) {
	if o.listening = true; o.at == "" {
		return "", nil
	}
	ln, err := net.Listen("tcp", o.at)
	if err != nil {
		return "", err
	}
	o.site = web.New(web.Options{
		Dial:    o.s.Host.Dial,
		Ready:   o.unready,
		Metrics: o.metrics,
		Ask:     []string{"INFO", "limitkv"},
		Admit:   o.admit,
		May:     o.may,
		Open:    func() bool { return !o.users.Required() },
		Logf:    func(format string, args ...any) { o.s.Logf('w', format, args...) },
	})
	go func() {
		defer o.s.Caught("serving HTTP")
		o.site.Serve(ln, config)
	}()
	o.at = ln.Addr().String() // the port may have been chosen by the system
	scheme := "http"
	if config != nil {
		scheme = "https"
	}
	return scheme + "://" + o.at, nil
}

// unready returns why clients should not use this server, "" if they should.
func (o *Site) unready() string {
	if text := o.s.Loading.Error(); text != "" {
		return text
	}
	if text := o.s.RefusesWrites(); text != nil {
		return *text
	}
	if o.s.Replica.Load()&command.ReplicaStale != 0 {
		return command.ErrMasterDown
	}
	return o.limits.TooMany()
}

// lookers are the commands that a read-only page may run besides those that read keys.
var lookers = []string{"acl|whoami", "acl|dryrun", "client|info", "client|list", "command", "config|get", "info", "latency|histogram",
	"latency|latest", "memory|stats", "ping", "pubsub|channels", "script|exists", "slowlog|get", "slowlog|len", "time"}

// never are the commands that the page cannot run: those that change the state of a connection, since each request of the page
// uses a new one, and those that never end.
var never = []string{"auth", "client|reply", "discard", "exec", "hello", "monitor", "multi", "psubscribe", "psync", "quit", "reset",
	"ssubscribe", "subscribe", "sync", "unwatch", "watch"}

// admit returns the error for a command that the page may not run, "" if it may.
func (o *Site) admit(args []string) string {
	if len(args) == 0 {
		return "ERR an empty command"
	}
	cmd, known := o.s.Table.Resolve(words(args))
	if !known {
		return "" // the server replies the error
	}
	name := cmd.FullName()
	if slices.Contains(never, name) {
		return "ERR " + strings.ToUpper(strings.ReplaceAll(name, "|", " ")) + " is for a connection of one's own, which the page does not have"
	}
	if o.write.Load() || cmd.Flags&command.ReadOnly != 0 || slices.Contains(lookers, name) || slices.Contains(lookers, parent(name)) {
		return ""
	}
	return "NOPERM the page only looks: the parameter http-write lets it do " + strings.ToUpper(strings.ReplaceAll(name, "|", " "))
}

// may returns the error for a command that a user may not run on the page, "" if the user may.
func (o *Site) may(user string, args []string) string {
	if text := o.admit(args); text != "" {
		return text
	}
	return o.users.MayRun(user, words(args))
}

func words(args []string) [][]byte {
	list := make([][]byte, len(args))
	for i, a := range args {
		list[i] = []byte(a)
	}
	return list
}

func parent(name string) string {
	p, _, _ := strings.Cut(name, "|")
	return p
}
