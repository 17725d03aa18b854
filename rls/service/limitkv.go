package service

// Calls of limitkv: RL.MACQUIRE with all limits at once, over a few connections that all requests share.

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// Take is the cost for one limiter.
type Take struct {
	Key  string
	Cost uint64
	Rule []string
}

// Group is taken from all of its limiters or from none.
type Group struct {
	Takes []Take
	// Peek takes nothing, and returns what would be the result.
	Peek bool
	// Rest takes what is left of its one limiter, if that is less than the cost.
	Rest bool
}

// Decision is limitkv's reply for one limiter.
type Decision struct {
	Limited          bool
	Remaining        uint64
	RetryAfter, Full time.Duration
}

// Server is the address of limitkv and the credentials.
type Server struct {
	Addr     string // host:port, or the path of a Unix socket
	Username string
	Password string
	DB       int
	TLS      *tls.Config
	// Timeout limits connecting. The caller limits the time for a reply.
	Timeout time.Duration
}

// Client calls limitkv. After a connection breaks, the next call connects again.
type Client struct {
	server Server
	conn   atomic.Pointer[rueidis.Client]
	stop   context.CancelFunc
	done   chan struct{}
	// slots has a place for each call without a reply, even if nobody waits for it any more.
	slots chan struct{}
}

// callsMax is the largest number of calls without a reply. It is the size of a connection's ring: when that is full, rueidis
// makes the next call wait without regard to its deadline. So a limitkv that hangs would delay requests longer than the
// timeout.
const callsMax = 1 << ringScale

const ringScale = 10

// errAway is the error before the first connection to limitkv.
var errAway = errors.New("limitkv is not reachable")

// NewClient connects in the background, so that the gateway can start without limitkv. It logs why it cannot connect.
func NewClient(s Server, logf func(format string, args ...any)) *Client {
	ctx, stop := context.WithCancel(context.Background())
	c := &Client{server: s, stop: stop, done: make(chan struct{}), slots: make(chan struct{}, callsMax)}
	go c.connect(ctx, logf)
	return c
}

// connectEvery is the pause after a failed attempt to connect.
const connectEvery = 200 * time.Millisecond

func (c *Client) connect(ctx context.Context, logf func(string, ...any)) {
	defer close(c.done)
	said := ""
	for ctx.Err() == nil {
		conn, err := rueidis.NewClient(c.options())
		if err == nil {
			c.conn.Store(&conn)
			return
		}
		if err.Error() != said {
			said = err.Error()
			logf("limitkv at %s: %v", c.server.Addr, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(connectEvery):
		}
	}
}

func (c *Client) options() rueidis.ClientOption {
	s := c.server
	network := "tcp"
	if len(s.Addr) > 0 && s.Addr[0] == '/' {
		network = "unix"
	}
	return rueidis.ClientOption{
		InitAddress: []string{s.Addr}, Username: s.Username, Password: s.Password, SelectDB: s.DB, TLSConfig: s.TLS,
		ClientName: "limitkv-rls", ForceSingleClient: true, RingScaleEachConn: ringScale,
		Dialer:       net.Dialer{Timeout: s.Timeout},
		DisableCache: true, // each call has another reply
		DisableRetry: true, // a call whose reply was lost may have been counted
		// Each connection is read all the time, so that a broken one is noticed at once, not by the next call.
		AlwaysPipelining: true,
		DialCtxFn: func(ctx context.Context, addr string, d *net.Dialer, cfg *tls.Config) (net.Conn, error) {
			if cfg != nil {
				return (&tls.Dialer{NetDialer: d, Config: cfg}).DialContext(ctx, network, addr)
			}
			return d.DialContext(ctx, network, addr)
		},
	}
}

// Close closes all connections.
func (c *Client) Close() {
	c.stop()
	<-c.done
	if conn := c.conn.Load(); conn != nil {
		(*conn).Close()
	}
}

// Ping returns an error if limitkv does not reply.
func (c *Client) Ping(ctx context.Context) error {
	conn := c.conn.Load()
	if conn == nil {
		return errAway
	}
	return (*conn).Do(ctx, (*conn).B().Ping().Build()).Error()
}

// Decide calls limitkv for the groups, in order and in one round trip. The result has the decision of each limiter.
func (c *Client) Decide(ctx context.Context, groups []Group) ([][]Decision, error) {
	conn := c.conn.Load()
	if conn == nil {
		return nil, errAway
	}
	select {
	case c.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	type answer struct {
		decided [][]Decision
		err     error
	}
	answered := make(chan answer, 1)
	go func() { // a call that was given up keeps its slot until limitkv replies or the connection breaks
		decided, err := decide(*conn, groups)
		<-c.slots
		answered <- answer{decided, err}
	}()
	select {
	case a := <-answered:
		return a.decided, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func decide(conn rueidis.Client, groups []Group) ([][]Decision, error) {
	ctx := context.Background()
	out := make([][]Decision, len(groups))
	if len(groups) == 1 { // avoids the slices for several groups
		d, err := decisions(conn.Do(ctx, command(conn, groups[0])), groups[0])
		out[0] = d
		return out, err
	}
	cmds := make(rueidis.Commands, len(groups))
	for i, g := range groups {
		cmds[i] = command(conn, g)
	}
	for i, r := range conn.DoMulti(ctx, cmds...) {
		d, err := decisions(r, groups[i])
		if err != nil {
			return nil, err
		}
		out[i] = d
	}
	return out, nil
}

// command returns the command for a group.
func command(conn rueidis.Client, g Group) rueidis.Completed {
	if g.Rest {
		t := g.Takes[0]
		return conn.B().Arbitrary("RL.ACQUIRE").Keys(t.Key).Args(strconv.FormatUint(t.Cost, 10), "ATMOST").Args(t.Rule...).Build()
	}
	b := conn.B().Arbitrary("RL.MACQUIRE", strconv.Itoa(len(g.Takes)))
	for _, t := range g.Takes {
		b = b.Keys(t.Key).Args(strconv.FormatUint(t.Cost, 10))
	}
	if g.Peek {
		b = b.Args("PEEK")
	}
	b = b.Args("EACH")
	for i, t := range g.Takes {
		b = b.Args("RULE", strconv.Itoa(i+1)).Args(t.Rule...)
	}
	return b.Build()
}

// decisions parses the reply to a group.
func decisions(r rueidis.RedisResult, g Group) ([]Decision, error) {
	list, err := r.ToArray()
	if err != nil {
		return nil, err
	}
	if g.Rest {
		d, err := decision(list)
		return []Decision{d}, err
	}
	if len(list) != len(g.Takes) {
		return nil, fmt.Errorf("limitkv told of %d limiters instead of %d", len(list), len(g.Takes))
	}
	out := make([]Decision, len(list))
	for i := range list {
		one, err := list[i].ToArray()
		if err != nil {
			return nil, err
		}
		if out[i], err = decision(one); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func decision(list []rueidis.RedisMessage) (d Decision, err error) {
	var n [5]int64
	if len(list) < len(n) {
		return d, fmt.Errorf("limitkv told %d numbers of a limiter instead of %d", len(list), len(n))
	}
	for i := range n {
		if n[i], err = list[i].AsInt64(); err != nil {
			return d, err
		}
	}
	return Decision{
		Limited: n[0] != 0, Remaining: uint64(max(n[2], 0)),
		RetryAfter: time.Duration(n[3]) * time.Millisecond, Full: time.Duration(n[4]) * time.Millisecond,
	}, nil
}
