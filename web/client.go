package web

// A client of the server inside its process, in RESP3, for one request.

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"

	"github.com/limitkv/limitkv/resp"
)

// client is a connection to the server. It ends with its HTTP request, so that a blocked command does not outlive the
// request.
type client struct {
	conn net.Conn
	buf  []byte // the bytes of the next reply that have arrived
	left int    // how many bytes the further replies may take
	stop func() bool
}

// repliesBytesMax is how many bytes the replies to one request may take.
const repliesBytesMax = 32 << 20

func (s *Site) dial(ctx context.Context, r *http.Request) *client {
	var remote net.Addr = &net.TCPAddr{}
	if at, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		remote = net.TCPAddrFromAddrPort(at)
	}
	c := &client{conn: s.o.Dial(remote), left: repliesBytesMax}
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
	words := make([][]byte, len(args))
	for i, a := range args {
		words[i] = []byte(a)
	}
	if _, err := c.conn.Write(resp.AppendCommand(nil, words...)); err != nil {
		return nil, err
	}
	for {
		reply, err := c.receive()
		if err != nil {
			return nil, err
		}
		if resp.Kind(reply[0]) != resp.KindPush { // not a reply, but an out-of-band message
			r := resp.NewReader(reply)
			return value(&r, 0)
		}
	}
}

var errReply = errors.New("the server's reply cannot be read")

// errTooMuch is the error for replies that are too long for the page.
var errTooMuch = errors.New("the replies are more than 32 MB")

// receive waits for the bytes of a whole reply.
func (c *client) receive() (reply []byte, err error) {
	var scan resp.Scanner
	for {
		n, err := scan.Scan(c.buf)
		switch {
		case err == nil:
			reply, c.buf = c.buf[:n], c.buf[n:]
			return reply, nil
		case !errors.Is(err, resp.ErrIncomplete):
			return nil, errReply
		case c.left == 0:
			return nil, errTooMuch
		}
		had := len(c.buf)
		c.buf = slices.Grow(c.buf, 4096)
		n, err = c.conn.Read(c.buf[had:min(cap(c.buf), had+c.left)])
		c.buf = c.buf[:had+n]
		c.left -= n
		if n == 0 && err != nil {
			return nil, err
		}
	}
}

// depthMax is how deep replies may nest. Only scripts can return deeper ones.
const depthMax = 64

// value is the next reply of a reader.
func value(r *resp.Reader, depth int) (any, error) {
	v, err := r.Next()
	for ; err == nil && v.Kind == resp.KindAttribute; v, err = r.Next() { // skip attributes
		for range v.N {
			if err := r.Skip(); err != nil {
				return nil, errReply
			}
		}
	}
	if err != nil || depth > depthMax {
		return nil, errReply
	}
	switch {
	case v.Null:
		return nil, nil
	case v.Kind == resp.KindError || v.Kind == resp.KindBulkError:
		return failure(v.Data), nil
	case v.Kind == resp.KindInt:
		return v.Int(), nil
	case v.Kind == resp.KindDouble:
		return v.Double(), nil
	case v.Kind == resp.KindBool:
		return v.Bool(), nil
	case v.Kind == resp.KindArray || v.Kind == resp.KindSet || v.Kind == resp.KindMap || v.Kind == resp.KindPush:
		list := make([]any, v.N)
		for i := range list {
			if list[i], err = value(r, depth+1); err != nil {
				return nil, err
			}
		}
		if v.Kind == resp.KindMap {
			return pairs(list), nil
		}
		return list, nil
	}
	return string(v.Data), nil
}
