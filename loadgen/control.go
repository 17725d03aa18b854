package main

// A connection that sends a request and waits for its reply: for preparing and identifying a server, and for clients of locks.

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// wire is a connection whose replies are read one by one.
type wire struct {
	conn     net.Conn
	in       []byte
	out      []byte
	consumed int
}

// dialTimeout is how long a server may take to accept a connection.
const dialTimeout = 5 * time.Second

func dial(addr, auth string) (*wire, error) {
	conn, err := net.DialTimeout("tcp", addr, dialTimeout)
	if err != nil {
		return nil, err
	}
	w := &wire{conn: conn}
	if auth != "" {
		words := []string{"AUTH"}
		if user, password, both := strings.Cut(auth, ":"); both {
			words = append(words, user, password)
		} else {
			words = append(words, auth)
		}
		if _, err := w.ask(words...); err != nil {
			conn.Close()
			return nil, err
		}
	}
	return w, nil
}

func (w *wire) close() { w.conn.Close() }

// appendRequest appends a command in the protocol's form.
func appendRequest(b []byte, args []string) []byte {
	b = fmt.Appendf(b, "*%d\r\n", len(args))
	for _, a := range args {
		b = strconv.AppendInt(append(b, '$'), int64(len(a)), 10)
		b = append(append(append(b, "\r\n"...), a...), "\r\n"...)
	}
	return b
}

func (w *wire) send(args ...string) error {
	w.out = appendRequest(w.out[:0], args)
	_, err := w.conn.Write(w.out)
	return err
}

// ask sends a command and returns its reply.
func (w *wire) ask(args ...string) (reply, error) {
	if err := w.send(args...); err != nil {
		return reply{}, err
	}
	r, _, err := w.next()
	if err == nil && r.kind == '-' {
		err = fmt.Errorf("%s: %s", args[0], r.text)
	}
	return r, err
}

// next reads the next reply. raw is valid until the next call.
func (w *wire) next() (r reply, raw []byte, err error) {
	w.in = append(w.in[:0], w.in[w.consumed:]...)
	w.consumed = 0
	for {
		if n := scan(w.in, &r); n < 0 {
			return r, nil, errReply
		} else if n > 0 {
			w.consumed = n
			return r, w.in[:n], nil
		}
		w.in = slices.Grow(w.in, 4096)
		n, err := w.conn.Read(w.in[len(w.in):cap(w.in)])
		w.in = w.in[:len(w.in)+n]
		if err != nil {
			return r, nil, err
		}
	}
}

// text sends a command and returns its reply as text, with blanks between the elements of an array.
func (w *wire) text(args ...string) (string, error) {
	t, err := w.tree(args...)
	if err == nil && t.kind == '-' {
		err = errors.New(t.text)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", args[0], err)
	}
	return t.String(), nil
}

// tree is a reply with its elements.
type tree struct {
	kind  byte
	text  string
	items []tree
}

// String formats a reply as text. Null is empty.
func (t tree) String() string {
	switch t.kind {
	case '_':
		return ""
	case '*':
		var items []string
		for _, item := range t.items {
			items = append(items, item.String())
		}
		return strings.Join(items, " ")
	}
	return t.text
}

// tree sends a command and returns its complete reply.
func (w *wire) tree(args ...string) (tree, error) {
	if err := w.send(args...); err != nil {
		return tree{}, err
	}
	_, raw, err := w.next()
	if err != nil {
		return tree{}, err
	}
	t, _ := readTree(raw)
	return t, nil
}

// readTree parses a complete reply.
func readTree(b []byte) (t tree, rest []byte) {
	line, rest, _ := bytes.Cut(b, []byte("\r\n"))
	t = tree{kind: line[0], text: string(line[1:])}
	n, _ := strconv.Atoi(t.text)
	switch t.kind {
	case '$', '*':
		switch {
		case n < 0:
			t.kind = '_'
		case t.kind == '$':
			t.text, rest = string(rest[:n]), rest[n+2:]
		default:
			for range n {
				var item tree
				item, rest = readTree(rest)
				t.items = append(t.items, item)
			}
		}
	}
	return t, rest
}

// fillWindow is how many requests fill sends ahead of their replies.
const fillWindow = 256

// fill sends n requests as fast as possible.
func (w *wire) fill(n int, request func(b []byte, i uint64) []byte) error {
	var b []byte
	sent := 0
	for got := 0; got < n; {
		b = b[:0]
		for sent < n && sent-got < fillWindow {
			b = request(b, uint64(sent))
			sent++
		}
		if _, err := w.conn.Write(b); err != nil {
			return err
		}
		for half := got + (sent-got+1)/2; got < half; got++ {
			r, _, err := w.next()
			if err == nil && r.kind == '-' {
				err = errors.New(string(r.text))
			}
			if err != nil {
				return fmt.Errorf("preparing: %w", err)
			}
		}
	}
	return nil
}

// field returns a number from a section of INFO.
func (w *wire) field(section, name string) (float64, error) {
	info, err := w.text("INFO", section)
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

// identity returns the name and version of a server: "redis", "8.0.6".
func (w *wire) identity() (name, version string) {
	info, err := w.text("INFO", "server")
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

// all sends many requests in pipelines; all must succeed.
func (w *wire) all(requests [][]string) error {
	const atOnce = 200
	for part := range slices.Chunk(requests, atOnce) {
		var b []byte
		for _, args := range part {
			b = appendRequest(b, args)
		}
		if _, err := w.conn.Write(b); err != nil {
			return err
		}
		for _, args := range part {
			r, _, err := w.next()
			if err != nil {
				return err
			}
			if r.kind == '-' {
				return fmt.Errorf("%q: %s", args, r.text)
			}
		}
	}
	return nil
}
