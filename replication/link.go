package replication

// A Link connects a replica to its primary by Redis's protocol, one connection after another. This file contains the
// protocol and its timeouts. The meaning of a file or of a command in the stream is left to the Follower.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/limitkv/limitkv/resp"
)

// Follower is the user of a link. The link's own goroutine calls all methods except Progress and Timeout.
type Follower interface {
	// Settings is called before each connection.
	Settings() Settings
	// Timeout is how long the primary may be silent before the link closes the connection.
	Timeout() time.Duration
	// From is what the follower has: the ID of a stream and how many bytes of it. id is empty if the follower cannot
	// continue a stream.
	From() (id string, offset int64)
	// Load loads a whole file. The stream with the ID continues from it at the offset.
	Load(file *File, id string, offset int64) error
	// Continue is called if the stream continues from where the follower is, with a given ID.
	Continue(id string) error
	// Ahead announces the commands of the next calls of Take, at most AheadMax.
	Ahead(commands [][][]byte)
	// Take applies the nth of them. raw is the bytes that were read for it, including line ends before it. Both are
	// valid until Take returns. asked is true if the primary requests the follower's offset.
	Take(nth int, args [][]byte, raw []byte) (asked bool, err error)
	// FailsOver reports whether PSYNC asks the other server to become a primary. Answered reports whether it agreed.
	FailsOver() bool
	Answered(agreed bool)
	// Lost is called if the stream broke for another reason than its connection: the follower cannot continue it.
	Lost()
	// Progress is how much of the stream was applied, and how much of it is on the disk, -1 if nothing is stored there.
	Progress() (applied, durable int64)
	// Up is called with true when the link begins to read the stream, and with false when that ends.
	Up(up bool)
	// Log logs a line at a level: 'd', 'v', 'n' or 'w'.
	Log(level byte, format string, args ...any)
}

// AheadMax is how many commands are announced to a follower before it takes the first of them. So it can load their keys
// into the processor's caches: a lookup waits for memory longer than it computes.
const AheadMax = 16

// Settings configure a connection.
type Settings struct {
	Dial func(ctx context.Context) (net.Conn, error)
	// User and Password are sent if there is a password.
	User, Password string
	// Port and IP are the address that the replica announces. Without an IP the primary uses the connection's.
	Port int
	IP   string
	// Capabilities are the replica's capabilities besides eof and psync2.
	Capabilities []string
	// Version is the version of Valkey whose files and commands the replica understands. Redis ignores it.
	Version string
	// Timeout is how long connecting, or one write, may take.
	Timeout time.Duration
}

// LinkState is the state of a link. Its text is what ROLE returns.
type LinkState int32

// The states of a link.
const (
	Connect LinkState = iota
	Connecting
	Handshake
	Transfer
	Connected
)

func (s LinkState) String() string {
	return [...]string{"connect", "connecting", "handshake", "sync", "connected"}[s]
}

// LinkStatus describes a link.
type LinkStatus struct {
	State LinkState
	// Read is how much of the stream was read.
	Read int64
	// Silent is the time since the last read, Down the time since the link was last connected; -1 if there is no such
	// time.
	Silent, Down time.Duration
	// FileSize is the size of the file that the primary sends, -1 if unknown. FileRead is how much of it was read.
	FileSize, FileRead int64
}

// Link keeps a follower connected to a primary until it is stopped.
type Link struct {
	f      Follower
	name   string // of the primary, for the log
	ctx    context.Context
	cancel context.CancelFunc

	received *atomic.Int64 // number of bytes, over all links
	state    atomic.Int32
	read     atomic.Int64
	lastRead atomic.Int64 // Unix nanoseconds
	fileSize atomic.Int64
	fileRead atomic.Int64

	mu        sync.Mutex // guards the fields below; writes to conn need writing instead
	conn      net.Conn
	downSince time.Time

	writing sync.Mutex

	// Only the link's goroutine uses these.
	settings Settings
	in       input
}

// errStopped is the error of a stopped link.
var errStopped = errors.New("the link was stopped")

// retryEvery is how often the link tries to connect, and ackEvery how often a replica sends its offset to the primary,
// as in Redis.
const (
	retryEvery = time.Second
	ackEvery   = time.Second
)

// NewLink returns a link to a primary. name is the primary's name in the log. The link adds the bytes that it reads to
// received.
func NewLink(f Follower, name string, received *atomic.Int64) *Link {
	l := &Link{f: f, name: name, received: received}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// Stop ends the link. It does not wait for Run to return.
func (l *Link) Stop() {
	l.cancel()
	l.Drop()
}

// Stopped reports whether Stop was called.
func (l *Link) Stopped() bool { return l.ctx.Err() != nil }

// Drop closes the connection. The link then tries another one.
func (l *Link) Drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != nil {
		_ = l.conn.Close() // its reader gets an error
	}
}

// Status describes the link. It may be called from any goroutine.
func (l *Link) Status() LinkStatus {
	s := LinkStatus{State: LinkState(l.state.Load()), Read: l.read.Load(), FileSize: l.fileSize.Load(), FileRead: l.fileRead.Load()}
	s.Silent, s.Down = -1, -1
	if at := l.lastRead.Load(); at != 0 {
		s.Silent = time.Since(time.Unix(0, at))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.downSince.IsZero() {
		s.Down = time.Since(l.downSince)
	}
	return s
}

// Addresses are the addresses of the connection, empty if there is none.
func (l *Link) Addresses() (remote, local string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != nil {
		remote, local = l.conn.RemoteAddr().String(), l.conn.LocalAddr().String()
	}
	return remote, local
}

// Run connects, and reconnects, until Stop is called.
func (l *Link) Run() {
	for {
		began := time.Now()
		err := l.connect()
		was := LinkState(l.state.Swap(int32(Connect)))
		if was == Connected {
			l.mu.Lock()
			l.downSince = time.Now()
			l.mu.Unlock()
			l.f.Up(false)
		}
		if l.Stopped() {
			return
		}
		if was == Connected {
			l.f.Log('n', "Connection with master lost: %v", err)
			l.f.Log('n', "Caching the disconnected master state.")
			if time.Since(began) > retryEvery/10 { // reconnect at once, as Redis does, unless the connection broke at once too
				continue
			}
		} else {
			l.f.Log('w', "MASTER <-> REPLICA sync: %v", err)
		}
		select {
		case <-time.After(retryEvery - min(time.Since(began), retryEvery*9/10)):
		case <-l.ctx.Done():
			return
		}
	}
}

// connect handles one connection, from its beginning to its end.
func (l *Link) connect() error {
	l.settings = l.f.Settings()
	l.f.Log('n', "Connecting to MASTER %s", l.name)
	l.state.Store(int32(Connecting))
	ctx, cancel := context.WithTimeout(l.ctx, l.settings.Timeout)
	conn, err := l.settings.Dial(ctx)
	cancel()
	if err != nil {
		return fmt.Errorf("Error condition on socket for SYNC: %w", err)
	}
	defer l.hangUp()
	l.mu.Lock()
	l.conn = conn
	l.mu.Unlock()
	if l.Stopped() { // Stop may have been called before there was a connection to close
		return errStopped
	}
	l.f.Log('n', "MASTER <-> REPLICA sync started")
	l.in = input{link: l, conn: conn, b: l.in.b}
	l.lastRead.Store(time.Now().UnixNano())
	l.state.Store(int32(Handshake))
	if err := l.handshake(); err != nil {
		return err
	}
	if err := l.sync(); err != nil {
		return err
	}
	return l.follow()
}

func (l *Link) hangUp() {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.conn.Close()
	l.conn = nil
	l.lastRead.Store(0)
}

// say sends a command.
func (l *Link) say(words ...string) error {
	var w resp.Writer
	w.Array(len(words))
	for _, word := range words {
		w.BulkString(word)
	}
	return l.write(w.Buf)
}

func (l *Link) write(b []byte) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	conn := l.in.conn
	_ = conn.SetWriteDeadline(time.Now().Add(l.settings.Timeout)) // if this fails, the write fails too
	_, err := conn.Write(b)
	return err
}

// follow applies the stream until the connection ends.
func (l *Link) follow() error {
	l.mu.Lock()
	l.downSince = time.Time{}
	l.mu.Unlock()
	applied, _ := l.f.Progress()
	l.read.Store(applied + int64(len(l.in.rest())))
	l.state.Store(int32(Connected))
	l.f.Up(true)
	end := beat(l.acknowledge)
	defer func() {
		l.Drop() // ends a write in progress
		end()
	}()
	if err := l.ack(); err != nil {
		return err
	}
	parser := resp.Parser{MaxBulk: resp.CommandBytesMax} // the primary has enforced its own limit on its clients
	var words [][]byte
	commands, sizes := make([][][]byte, 0, AheadMax), make([]int, 0, AheadMax)
	for {
		raw := l.in.rest()
		words, commands, sizes = words[:0], commands[:0], sizes[:0]
		var broken error
		for used := 0; len(commands) < AheadMax; {
			n, got, err := parser.Next(raw[used:], words)
			if broken = err; err != nil || n == 0 {
				break
			}
			commands, sizes = append(commands, got[len(words):len(got):len(got)]), append(sizes, n)
			words = got
			used += n
		}
		if len(commands) > 0 {
			l.f.Ahead(commands)
		}
		for i, n := range sizes {
			asked, err := l.f.Take(i, commands[i], raw[:n])
			if err != nil {
				return err
			}
			raw = raw[n:]
			l.in.from += n
			if asked {
				if err := l.ack(); err != nil {
					return err
				}
			}
		}
		clear(words)
		clear(commands)
		if parser.Release(); broken != nil {
			l.f.Log('w', "what the primary sends is no stream of commands, so all is asked for anew: %v", broken)
			l.f.Lost()
			return broken
		}
		if len(commands) == 0 {
			if err := l.in.fill(parser.Need()); err != nil {
				return err
			}
		}
	}
}

// beat calls fn every ackEvery until it returns false or end is called. end waits for a call that is running.
func beat(fn func() bool) (end func()) {
	ended, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		t := time.NewTicker(ackEvery)
		defer t.Stop()
		for {
			select {
			case <-ended:
				return
			case <-t.C:
				if !fn() {
					return
				}
			}
		}
	}()
	return func() {
		close(ended)
		<-done
	}
}

// acknowledge sends the replica's offset to the primary.
func (l *Link) acknowledge() bool {
	if l.ack() != nil {
		l.Drop()
		return false
	}
	return true
}

func (l *Link) ack() error {
	applied, durable := l.f.Progress()
	words := []string{"REPLCONF", "ACK", strconv.FormatInt(applied, 10)}
	if durable >= 0 {
		words = append(words, "FACK", strconv.FormatInt(durable, 10))
	}
	return l.say(words...)
}

// input contains what was read from a connection and is not used yet: b[from:to].
type input struct {
	link     *Link
	conn     net.Conn
	b        []byte
	from, to int
}

// inputSize is how many bytes are read at once, and inputKept the largest buffer that is kept.
const (
	inputSize = 128 << 10
	inputKept = 4 << 20
)

func (in *input) rest() []byte { return in.b[in.from:in.to] }

// fill reads more bytes after the unused ones. The buffer gets room for need bytes in all, unless they are many: then
// it gets room for twice the unused bytes, since the announced bytes may never come.
func (in *input) fill(need int) error {
	left := in.to - in.from
	need = min(max(need, left+inputSize/2), max(inputKept, 2*left))
	if b := in.b; left == 0 && len(b) > inputKept && need <= inputKept || len(b) < need {
		b = make([]byte, max(need, inputSize, 2*left)) // doubling reads a large command in few steps
		copy(b, in.rest())
		in.b, in.from, in.to = b, 0, left
	} else if left == 0 || len(b)-in.from < need {
		copy(b, in.rest())
		in.from, in.to = 0, left
	}
	n, err := in.read(in.b[in.to:])
	in.to += n
	if LinkState(in.link.state.Load()) == Connected {
		in.link.read.Add(int64(n))
	}
	if n > 0 {
		return nil
	}
	return err
}

// silencePoll is how often a read checks Timeout, which CONFIG SET may change.
const silencePoll = time.Second

// read reads what is available. It waits for that at most as long as Timeout allows.
func (in *input) read(b []byte) (n int, err error) {
	l := in.link
	var late net.Error
	for began := time.Now(); ; {
		_ = in.conn.SetReadDeadline(time.Now().Add(silencePoll)) // if this fails, the read fails too
		if n, err = in.conn.Read(b); n > 0 {
			l.lastRead.Store(time.Now().UnixNano())
			l.received.Add(int64(n))
			return n, nil
		}
		if !errors.As(err, &late) || !late.Timeout() || time.Since(began) >= l.f.Timeout() {
			break
		}
	}
	switch {
	case late != nil && late.Timeout():
		if LinkState(l.state.Load()) == Transfer {
			return 0, errors.New("Timeout receiving bulk data from MASTER... If the problem persists try to set the 'repl-timeout' parameter in redis.conf to a larger value.")
		}
		if LinkState(l.state.Load()) != Connected {
			return 0, errors.New("Timeout connecting to the MASTER...")
		}
		return 0, errors.New("MASTER timeout: no data nor PING received...")
	case err == nil:
		err = io.ErrNoProgress
	}
	return 0, err
}
