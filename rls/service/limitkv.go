package service

// The calls on limitkv: RL.MACQUIRE with all limits at once, over a few connections that all requests share.

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

// Take is a cost of one limiter.
type Take struct {
	Key  string
	Cost uint64
	Rule []string
}

// Group is what is taken from all of its limiters or from none.
type Group struct {
	Takes []Take
	// Peek takes nothing and tells what would be.
	Peek bool
	// Rest takes what there is of the one limiter, if that is less than the cost.
	Rest bool
}

// Decision is what limitkv says of one limiter.
type Decision struct {
	Limited          bool
	Remaining        uint64
	RetryAfter, Full time.Duration
}

// Server says where limitkv is and who asks.
type Server struct {
	Addr     string // host:port, or the path of a Unix socket
	Username string
	Password string
	DB       int
	TLS      *tls.Config
	// Timeout is how long connecting may take. How long an answer may take is the caller's.
	Timeout time.Duration
}

// Client talks to limitkv. A connection that breaks is made anew with the next call.
type Client struct {
	server Server
	conn   atomic.Pointer[rueidis.Client]
	stop   context.CancelFunc
	done   chan struct{}
	// slots has a place for each call that limitkv has not answered yet, whether somebody still waits for it or not.
	slots chan struct{}
}

// callsMax is how many calls may be without an answer. A connection has room for so many: rueidis lets the next one wait
// for room without looking at its deadline, so a limitkv that hangs would hold requests up for longer than the timeout.
const callsMax = 1 << ringScale

const ringScale = 10

// errAway is a limitkv that no connection could be made to yet.
var errAway = errors.New("limitkv is not reachable")

// NewClient connects in the background, so that the gateway starts while limitkv is away. It tells logf why it cannot.
func NewClient(s Server, logf func(format string, args ...any)) *Client {
	ctx, stop := context.WithCancel(context.Background())
	c := &Client{server: s, stop: stop, done: make(chan struct{}), slots: make(chan struct{}, callsMax)}
	go c.connect(ctx, logf)
	return c
}

// connectEvery is how long the client waits after it could not connect.
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
		DisableCache: true, // it is answers that change with each call
		DisableRetry: true, // a call whose answer was lost may have been counted
		// Somebody reads each connection all the time, so one that breaks is seen at once, not by the next call.
		AlwaysPipelining: true,
		DialCtxFn: func(ctx context.Context, addr string, d *net.Dialer, cfg *tls.Config) (net.Conn, error) {
			if cfg != nil {
				return (&tls.Dialer{NetDialer: d, Config: cfg}).DialContext(ctx, network, addr)
			}
			return d.DialContext(ctx, network, addr)
		},
	}
}

// Close ends all connections.
func (c *Client) Close() {
	c.stop()
	<-c.done
	if conn := c.conn.Load(); conn != nil {
		(*conn).Close()
	}
}

// Ping tells whether limitkv answers.
func (c *Client) Ping(ctx context.Context) error {
	conn := c.conn.Load()
	if conn == nil {
		return errAway
	}
	return (*conn).Do(ctx, (*conn).B().Ping().Build()).Error()
}

// Decide has limitkv decide on the groups, one after the other but in one round trip. The answer has the decision of each
// limiter.
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
	go func() { // what a caller gave up keeps its slot until limitkv answers, or the connection breaks
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
	if len(groups) == 1 { // without the slices of several
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

// command is the command for a group.
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

// decisions reads the answer to a group.
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
