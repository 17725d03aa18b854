package server

// Parameters of the server as a whole. Parts and families declare their own.

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/params"
)

// settings are the parameters that starting and listening use.
type settings struct {
	port, tlsPort, bind, unixsocket, unixsocketperm func() string
	keepalive, shutdown                             *atomic.Int64
	listening                                       *atomic.Bool
	tls                                             *tlsSettings
}

// startOnly declares a parameter that cannot change while the server runs.
func startOnly(c *params.Config, name, value, help string, check func(string) error) func() string {
	var v atomic.Pointer[string] // port 0 is replaced while clients may look
	v.Store(&value)
	c.Add(&params.Param{Name: name, Help: help, Immutable: true,
		Get: func() string { return *v.Load() },
		Set: func(s string) error {
			err := check(s)
			if err == nil {
				v.Store(&s)
			}
			return err
		}})
	return func() string { return *v.Load() }
}

// whereToListen declares a parameter that CONFIG SET cannot change. It accepts the present value, since clients set again what
// they have read.
func whereToListen(c *params.Config, name, value, help string, check func(string) error, listening *atomic.Bool) func() string {
	get := startOnly(c, name, value, help, func(s string) error {
		if listening.Load() && s != c.Find(name).Get() {
			return errors.New("limitkv listens where it was started to")
		}
		return check(s)
	})
	c.Find(name).Immutable = false
	return get
}

func anything(string) error { return nil }

func portNumber(s string) error {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return params.ErrNotInteger
	}
	if n < 0 || n > math.MaxUint16 {
		return params.ErrNotBetween(0, math.MaxUint16)
	}
	return nil
}

func octalMode(s string) error {
	n, err := strconv.ParseUint(s, 8, 32)
	if err != nil {
		return errors.New("argument couldn't be parsed as an octal number")
	}
	if n > 0o777 {
		return errors.New("argument must be between 0 and 777 inclusive")
	}
	return nil
}

func declare(c *params.Config, databases int) settings {
	startOnly(c, "cluster-enabled", "no", "yes answers as a cluster of one node that has all slots, with one database", func(s string) error {
		if !strings.EqualFold(s, "yes") && !strings.EqualFold(s, "no") {
			return params.ErrNotYesNo
		}
		return nil
	})
	startOnly(c, "databases", strconv.Itoa(databases), "number of databases", anything)
	listening := new(atomic.Bool)
	s := settings{
		listening:      listening,
		port:           whereToListen(c, "port", "6379", "TCP port, 0 picks a free one", portNumber, listening),
		tlsPort:        startOnly(c, "tls-port", "0", "TCP port for TLS, 0 for none; then port 0 means no plain port", portNumber),
		tls:            declareTLS(c),
		bind:           whereToListen(c, "bind", "127.0.0.1", "addresses to listen on; -address may be missing, * is all of IPv4, ::* all of IPv6", anything, listening),
		unixsocket:     startOnly(c, "unixsocket", "", "path of a unix socket to listen on", anything),
		unixsocketperm: startOnly(c, "unixsocketperm", "0", "mode of the unix socket, octal", octalMode),
		keepalive:      c.Int("tcp-keepalive", 300, 0, math.MaxInt32, "seconds after which a silent connection is probed, 0 = never"),
		shutdown:       c.Int("shutdown-timeout", 10, 0, math.MaxInt32, "seconds that ending may take; what is stuck is left then"),
	}
	c.Find("bind").Words = true
	return s
}

// databasesOf finds the number of databases among settings: the keyspace is
// made before the parameters are there.
func databasesOf(settings []params.Setting) (n int, err error) {
	n = 16
	for _, set := range settings {
		if strings.EqualFold(set.Name, "databases") {
			if n, err = strconv.Atoi(set.Value); err != nil {
				return 0, fmt.Errorf("%s: databases must be a number", set.Where)
			}
		}
	}
	return n, nil
}

// clusterOf finds in the settings whether the server is to be a cluster. A cluster has one database, so rest leaves out the
// setting of databases then.
func clusterOf(settings []params.Setting) (cluster bool, rest []params.Setting) {
	for _, set := range settings {
		if strings.EqualFold(set.Name, "cluster-enabled") {
			cluster = strings.EqualFold(set.Value, "yes")
		}
	}
	if !cluster {
		return false, settings
	}
	for _, set := range settings {
		if !strings.EqualFold(set.Name, "databases") {
			rest = append(rest, set)
		}
	}
	return true, rest
}

// renamed takes rename-command out of the settings and renames. A command that is renamed to nothing is removed.
func renamed(t *command.Table, settings []params.Setting) (rest []params.Setting, err error) {
	for _, set := range settings {
		if !strings.EqualFold(set.Name, "rename-command") {
			rest = append(rest, set)
			continue
		}
		words := strings.Fields(set.Value)
		if len(words) == 1 {
			words = append(words, "")
		}
		if len(words) != 2 {
			return nil, fmt.Errorf("%s: rename-command takes a name and a new one, perhaps empty", set.Where)
		}
		if err := t.Rename(words[0], words[1]); err != nil {
			return nil, fmt.Errorf("%s: rename-command: %v", set.Where, err)
		}
	}
	return rest, nil
}
