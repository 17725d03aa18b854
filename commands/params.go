package commands

// Parameters of the server as a whole. What belongs to one family is declared
// there.

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/limitkv/limitkv/commands/command"
)

// params are the parameters that starting and listening use.
type params struct {
	port, bind, unixsocket, unixsocketperm func() string
	keepalive                              *atomic.Int64
}

// startOnly declares a parameter that cannot change while the server runs.
func startOnly(c *command.Config, name, value, help string) func() string {
	v := value
	c.Add(&command.Param{Name: name, Help: help, Immutable: true,
		Get: func() string { return v },
		Set: func(s string) error { v = s; return nil }})
	return func() string { return v }
}

func declare(c *command.Config, databases int) params {
	startOnly(c, "databases", strconv.Itoa(databases), "number of databases")
	return params{
		port:           startOnly(c, "port", "6379", "TCP port, 0 picks a free one"),
		bind:           startOnly(c, "bind", "127.0.0.1", "addresses to listen on"),
		unixsocket:     startOnly(c, "unixsocket", "", "path of a unix socket to listen on"),
		unixsocketperm: startOnly(c, "unixsocketperm", "0", "mode of the unix socket, octal"),
		keepalive:      c.Int("tcp-keepalive", 300, 0, math.MaxInt32, "seconds after which a silent connection is probed, 0 = never"),
	}
}

// databasesOf finds the number of databases among settings: the keyspace is
// made before the parameters are there.
func databasesOf(settings []command.Setting) (n int, err error) {
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
