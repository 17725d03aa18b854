// The client of the conformance tests. It is written anew rather than taken from a library because it must show what
// came over the wire, kinds and all, must be able to send bytes that no client would, and must read strictly: anything
// that is not well-formed RESP is an error here.

package peer

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

// ReplyTimeout is how long a reply may take before a test gives up: longer than a busy machine has a process stand still.
const ReplyTimeout = 30 * time.Second

// aggregateMax and bulkMax bound what the client believes a length to be, so that a corrupt reply fails and does not
// make the test allocate without end.
const (
	aggregateMax = 1 << 22
	bulkMax      = 1 << 30
)

// Conn is one connection to a server. It is not safe for use by several goroutines.
type Conn struct {
	net.Conn
	r *bufio.Reader
}

// Dial connects to a server's TCP address.
func Dial(addr string) (*Conn, error) {
	c, err := net.DialTimeout("tcp", addr, ReplyTimeout)
	if err != nil {
		return nil, err
	}
	return &Conn{Conn: c, r: bufio.NewReaderSize(c, 64<<10)}, nil
}

// AppendCommand appends a command as clients send it: an array of bulk strings.
func AppendCommand(b []byte, args ...string) []byte {
	b = append(b, '*')
	b = strconv.AppendInt(b, int64(len(args)), 10)
	b = append(b, "\r\n"...)
	for _, a := range args {
		b = append(b, '$')
		b = strconv.AppendInt(b, int64(len(a)), 10)
		b = append(b, "\r\n"...)
		b = append(b, a...)
		b = append(b, "\r\n"...)
	}
	return b
}

// Send sends a command and does not wait for its reply.
func (c *Conn) Send(args ...string) error { return c.SendRaw(AppendCommand(nil, args...)) }

// SendRaw sends bytes as they are.
func (c *Conn) SendRaw(b []byte) error {
	_ = c.SetWriteDeadline(time.Now().Add(ReplyTimeout))
	_, err := c.Write(b)
	return err
}

// Do sends a command and reads its reply. An error reply is a Value; the error is of the connection or the protocol.
func (c *Conn) Do(args ...string) (Value, error) {
	if err := c.Send(args...); err != nil {
		return Value{}, err
	}
	return c.Receive()
}

// Receive reads one reply, waiting for at most ReplyTimeout.
func (c *Conn) Receive() (Value, error) { return c.ReceiveWithin(ReplyTimeout) }

// ReceiveWithin reads one reply. Where none began in time, the error says so by Timeout (net.Error); io.EOF means
// that the server closed the connection between replies.
func (c *Conn) ReceiveWithin(d time.Duration) (Value, error) {
	_ = c.SetReadDeadline(time.Now().Add(d))
	return c.read()
}

// Silent says whether no reply byte arrives within d.
func (c *Conn) Silent(d time.Duration) bool {
	_ = c.SetReadDeadline(time.Now().Add(d))
	_, err := c.r.Peek(1)
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

// Begins waits for a reply to begin, and returns its first byte.
func (c *Conn) Begins(d time.Duration) (byte, error) {
	_ = c.SetReadDeadline(time.Now().Add(d))
	b, err := c.r.Peek(1)
	if err != nil {
		return 0, err
	}
	return b[0], nil
}

// Closed says whether the server closes the connection within d; replies that come before that are read and dropped.
func (c *Conn) Closed(d time.Duration) bool {
	_ = c.SetReadDeadline(time.Now().Add(d))
	_, err := io.Copy(io.Discard, c.r)
	var ne net.Error
	return !(errors.As(err, &ne) && ne.Timeout())
}

func (c *Conn) line() (string, error) {
	s, err := c.r.ReadString('\n')
	if err != nil {
		if err == io.EOF && s != "" {
			err = io.ErrUnexpectedEOF
		}
		return s, err
	}
	if len(s) < 3 || s[len(s)-2] != '\r' {
		return "", fmt.Errorf("protocol: line %q", s)
	}
	return s[:len(s)-2], nil
}

// length reads a length as the protocol writes it, without sign or leading zeros; -1 is a null where it may be one.
func length(s string, max int, null bool) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || strconv.Itoa(n) != s || n > max || n < -1 || n == -1 && !null {
		return 0, fmt.Errorf("protocol: length %q", s)
	}
	return n, nil
}

func (c *Conn) read() (Value, error) {
	s, err := c.line()
	if err != nil {
		return Value{}, err
	}
	v := Value{Kind: s[0], Text: s[1:]}
	switch v.Kind {
	case '+', '-', ':', ',', '#', '(':
		if v.Text == "" && v.Kind != '+' {
			return v, fmt.Errorf("protocol: empty reply of kind %q", v.Kind)
		}
		return v, nil
	case '_':
		v.Null = true
		return v, nil
	case '$', '=', '!':
		n, err := length(v.Text, bulkMax, v.Kind == '$')
		if err != nil {
			return v, err
		}
		v.Text = ""
		if n < 0 {
			v.Null = true
			return v, nil
		}
		b := make([]byte, n+2)
		if _, err := io.ReadFull(c.r, b); err != nil {
			return v, err
		}
		if string(b[n:]) != "\r\n" {
			return v, fmt.Errorf("protocol: bulk ends in %q", b[n:])
		}
		v.Text = string(b[:n])
		return v, nil
	case '*', '%', '~', '>', '|':
		n, err := length(v.Text, aggregateMax, v.Kind == '*')
		if err != nil {
			return v, err
		}
		v.Text = ""
		if n < 0 {
			v.Null = true
			return v, nil
		}
		if v.keyed() {
			n *= 2
		}
		v.Items = make([]Value, 0, min(n, 4096))
		for range n {
			item, err := c.read()
			if err != nil {
				return v, err
			}
			v.Items = append(v.Items, item)
		}
		return v, nil
	}
	return v, fmt.Errorf("protocol: reply of kind %q", v.Kind)
}

// Field is a field of what INFO replies, "" if there is none.
func Field(info, name string) string {
	_, after, _ := strings.Cut("\r\n"+info, "\r\n"+name+":")
	value, _, _ := strings.Cut(after, "\r\n")
	return value
}
