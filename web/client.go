package web

// A client of the server inside its process, in RESP3, for one request.

import (
	"bufio"
	"context"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"net/netip"
	"strconv"
)

// client is a connection to the server. It ends with the request that it is for, so that a command that waits does not
// outlive who asked for it.
type client struct {
	conn net.Conn
	r    *bufio.Reader
	left int // of what replies may take
	stop func() bool
}

// repliesBytesMax is what the replies to one request may take.
const repliesBytesMax = 32 << 20

func (s *Site) dial(ctx context.Context, r *http.Request) *client {
	var remote net.Addr = &net.TCPAddr{}
	if at, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		remote = net.TCPAddrFromAddrPort(at)
	}
	c := &client{conn: s.o.Dial(remote), left: repliesBytesMax}
	c.r = bufio.NewReader(c.conn)
	c.stop = context.AfterFunc(ctx, func() { c.conn.Close() })
	return c
}

func (c *client) close() {
	c.stop()
	c.conn.Close()
}

// failure is an error reply. pairs are the keys and values of a map, one after the other.
type (
	failure string
	pairs   []any
)

// do sends a command and returns its reply: nil, bool, int64, float64, string, failure, []any or pairs. An error
// ends the connection.
func (c *client) do(args []string) (any, error) {
	b := append(strconv.AppendInt([]byte("*"), int64(len(args)), 10), "\r\n"...)
	for _, a := range args {
		b = append(strconv.AppendInt(append(b, '$'), int64(len(a)), 10), "\r\n"...)
		b = append(append(b, a...), "\r\n"...)
	}
	if _, err := c.conn.Write(b); err != nil {
		return nil, err
	}
	for {
		reply, pushed, err := c.read(0)
		if err != nil || !pushed {
			return reply, err
		}
	}
}

var errReply = errors.New("the server's reply cannot be read")

// errTooMuch is for what no page shows.
var errTooMuch = errors.New("the replies are more than 32 MB")

// depthMax is how deep replies are nested at most: what is deeper is a script's joke.
const depthMax = 64

// read reads a reply. pushed tells that it is a message, which nobody asked for.
func (c *client) read(depth int) (v any, pushed bool, err error) {
	line, err := c.line()
	if err != nil {
		return nil, false, err
	}
	if len(line) == 0 || depth > depthMax {
		return nil, false, errReply
	}
	rest := line[1:]
	switch line[0] {
	case '-':
		return failure(rest), false, nil
	case ':':
		n, err := strconv.ParseInt(rest, 10, 64)
		return n, false, err
	case '_':
		return nil, false, nil
	case '#':
		return rest == "t", false, nil
	case ',':
		f, err := strconv.ParseFloat(rest, 64)
		return f, false, err
	case '+', '(':
		return rest, false, nil
	}
	n, err := strconv.Atoi(rest)
	if err != nil || n > math.MaxInt32 {
		return nil, false, errReply
	}
	if n < 0 {
		return nil, false, nil
	}
	switch line[0] {
	case '$', '=', '!':
		if c.left -= n; c.left < 0 {
			return nil, false, errTooMuch
		}
		b := make([]byte, n+2)
		if _, err := io.ReadFull(c.r, b); err != nil {
			return nil, false, err
		}
		switch s := string(b[:n]); {
		case line[0] == '!':
			return failure(s), false, nil
		case line[0] == '=' && n >= len("txt:"):
			return s[len("txt:"):], false, nil
		default:
			return s, false, nil
		}
	case '*', '~', '>':
		list, err := c.list(n, depth)
		return list, line[0] == '>', err
	case '%':
		list, err := c.list(2*n, depth)
		return pairs(list), false, err
	case '|': // attributes of what follows
		if _, err := c.list(2*n, depth); err != nil {
			return nil, false, err
		}
		return c.read(depth)
	}
	return nil, false, errReply
}

func (c *client) list(n, depth int) ([]any, error) {
	list := make([]any, 0, min(n, 1024))
	for range n {
		v, _, err := c.read(depth + 1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

// line reads a line without its end.
func (c *client) line() (string, error) {
	b, err := c.r.ReadSlice('\n')
	for errors.Is(err, bufio.ErrBufferFull) { // an error of a script may be long
		whole := append([]byte(nil), b...)
		for errors.Is(err, bufio.ErrBufferFull) && len(whole) <= c.left {
			b, err = c.r.ReadSlice('\n')
			whole = append(whole, b...)
		}
		b = whole
	}
	if err != nil {
		return "", err
	}
	if c.left -= len(b); c.left < 0 {
		return "", errTooMuch
	}
	if len(b) < 2 {
		return "", errReply
	}
	return string(b[:len(b)-2]), nil
}
