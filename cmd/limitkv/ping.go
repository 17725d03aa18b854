package main

// "limitkv ping" is the health check for a container that has only this binary: no shell, no redis-cli.

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
)

// pingTimeout is how long a server may take to reply: a container's health check gives up after a few seconds.
const pingTimeout = 3 * time.Second

// ping is "limitkv ping [HOST:PORT|/path/of/socket]".
func ping(args []string) {
	if len(args) > 1 {
		fail(errors.New("usage: limitkv ping [HOST:PORT|/path/of/socket]"))
	}
	addr := "127.0.0.1:6379"
	if len(args) == 1 {
		addr = args[0]
	}
	reply, err := askPing(addr)
	if err != nil {
		fail(err)
	}
	fmt.Println(reply)
}

// askPing sends PING to a server. It returns the reply if the server serves clients, also if it requires a password. A server
// that loads, or that has lost its primary, replies another error.
func askPing(addr string) (reply string, err error) {
	network := "tcp"
	if strings.HasPrefix(addr, "/") {
		network = "unix"
	}
	c, err := net.DialTimeout(network, addr, pingTimeout)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(pingTimeout)); err != nil {
		return "", err
	}
	if _, err := c.Write([]byte("PING\r\n")); err != nil {
		return "", err
	}
	line, err := bufio.NewReaderSize(c, 4096).ReadSlice('\n') // no Redis replies a longer line
	if err != nil {
		return "", fmt.Errorf("%s: %w", addr, err)
	}
	reply = strings.TrimSpace(string(line))
	if reply != "+PONG" && !strings.HasPrefix(reply, "-NOAUTH ") {
		return "", fmt.Errorf("%s: %s", addr, reply)
	}
	return reply[1:], nil
}
