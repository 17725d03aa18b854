package main

// The control connection: preparing a server, asking what it is.

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// control is one connection that asks and waits.
type control struct {
	conn net.Conn
	r    *bufio.Reader
}

// dialTimeout is how long a server may take to accept a connection.
const dialTimeout = 5 * time.Second

func dial(addr, auth string) (*control, error) {
	conn, err := net.DialTimeout("tcp", addr, dialTimeout)
	if err != nil {
		return nil, err
	}
	c := &control{conn: conn, r: bufio.NewReaderSize(conn, 1<<16)}
	if auth != "" {
		if _, err := c.text(authCommand(auth)...); err != nil {
			conn.Close()
			return nil, err
		}
	}
	return c, nil
}

// authCommand is AUTH for "password" or "user:password".
func authCommand(auth string) []string {
	if user, password, both := strings.Cut(auth, ":"); both {
		return []string{"AUTH", user, password}
	}
	return []string{"AUTH", auth}
}

func (c *control) close() { c.conn.Close() }

// text asks and returns a reply as text, the elements of an array parted by blanks.
func (c *control) text(args ...string) (string, error) {
	b := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, a := range args {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(a), a)
	}
	if _, err := c.conn.Write(b); err != nil {
		return "", err
	}
	text, err := c.read()
	if err != nil {
		return "", fmt.Errorf("%s: %w", args[0], err)
	}
	return text, nil
}

func (c *control) read() (string, error) {
	line, err := c.r.ReadString('\n')
	if err != nil {
		return "", err
	}
	line = strings.TrimSuffix(line, "\r\n")
	if line == "" {
		return "", io.ErrUnexpectedEOF
	}
	switch line[0] {
	case '-':
		return "", errors.New(line[1:])
	case '$':
		n, err := strconv.Atoi(line[1:])
		if err != nil || n < 0 {
			return "", err
		}
		b := make([]byte, n+2)
		if _, err := io.ReadFull(c.r, b); err != nil {
			return "", err
		}
		return string(b[:n]), nil
	case '*':
		n, err := strconv.Atoi(line[1:])
		var items []string
		for ; n > 0 && err == nil; n-- {
			var item string
			item, err = c.read()
			items = append(items, item)
		}
		return strings.Join(items, " "), err
	}
	return line[1:], nil
}

// fillWindow is how many requests fill sends ahead of their replies.
const fillWindow = 256

// fill sends n requests as fast as they go.
func (c *control) fill(n int, request func(b []byte, i uint64) []byte) error {
	var b []byte
	sent := 0
	for got := 0; got < n; {
		b = b[:0]
		for sent < n && sent-got < fillWindow {
			b = request(b, uint64(sent))
			sent++
		}
		if _, err := c.conn.Write(b); err != nil {
			return err
		}
		for half := got + (sent-got+1)/2; got < half; got++ {
			if _, err := c.read(); err != nil {
				return fmt.Errorf("preparing: %w", err)
			}
		}
	}
	return nil
}

// field is a number of a section of INFO.
func (c *control) field(section, name string) (float64, error) {
	info, err := c.text("INFO", section)
	if err != nil {
		return 0, err
	}
	_, text, found := strings.Cut(info, "\n"+name+":")
	if !found {
		return 0, fmt.Errorf("INFO %s has no %s", section, name)
	}
	text, _, _ = strings.Cut(text, "\r")
	return strconv.ParseFloat(text, 64)
}

// identity is what a server says it is: "redis 8.0.6".
func (c *control) identity() (name, version string) {
	info, err := c.text("INFO", "server")
	if err != nil {
		return "server", "?"
	}
	field := map[string]string{}
	for line := range strings.SplitSeq(info, "\n") {
		k, v, _ := strings.Cut(strings.TrimSpace(line), ":")
		field[k] = v
	}
	for _, name := range []string{"limitkv", "valkey"} {
		if v := field[name+"_version"]; v != "" {
			return name, v
		}
	}
	return "redis", field["redis_version"]
}
