package replication

// The link of a replica to its primary: one connection after the other, by Redis's protocol. Here is what is said, and how
// long is waited for an answer; what a file or a command of the stream means is for the Follower to know.

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

// Follower is whom a link works for. All methods but Progress and Timeout are called by the link's own goroutine.
type Follower interface {
	// Settings is asked before each connection.
	Settings() Settings
	// Timeout is after how much silence a connection is given up.
	Timeout() time.Duration
	// From is what the follower has: the id of a stream and how many bytes of it; id is empty where nothing can be gone on
	// from.
	From() (id string, offset int64)
	// Load takes over a whole file, which the stream of the id goes on from at the offset.
	Load(file *File, id string, offset int64) error
	// Continue says that the stream goes on from where the follower is, under an id.
	Continue(id string) error
	// Ahead tells of the commands that Take is called with next, at most AheadMax.
	Ahead(commands [][][]byte)
	// Take applies the nth of them. raw is what was read for it, the line ends between commands too. Both are valid until it
	// returns. Where asked is true the primary wants to know how far the follower is.
	Take(nth int, args [][]byte, raw []byte) (asked bool, err error)
	// FailsOver tells whether the primary is to be one by being followed; Answered says whether it has agreed.
	FailsOver() bool
	Answered(agreed bool)
	// Lost says that the stream broke for another reason than its connection: nothing can be gone on from.
	Lost()
	// Progress is how much of the stream was applied, and how much of it is on the disk, -1 where nothing is kept there.
	Progress() (applied, durable int64)
	// Up says whether the stream is read.
	Up(up bool)
	// Log takes a line at a level: 'd', 'v', 'n' or 'w'.
	Log(level byte, format string, args ...any)
}

// AheadMax is how many commands a follower is told of before it takes the first of them: so that it can have their keys in
// the processor's caches, of which a lookup waits longer than it works.
const AheadMax = 16

// Settings are what a connection goes by.
type Settings struct {
	Dial func(ctx context.Context) (net.Conn, error)
	// User and Password are sent if there is a password.
	User, Password string
	// Port and IP are where the replica says that it listens; no IP is the connection's.
	Port int
	IP   string
	// Capabilities are those of the replica besides eof and psync2.
	Capabilities []string
	// Version is that of Valkey whose files and commands are understood; to Redis it says nothing.
	Version string
	// Timeout is how long connecting and writing may take.
	Timeout time.Duration
}

// LinkState is how far a link is. Its text is what ROLE says.
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

// LinkStatus is what is known of a link.
type LinkStatus struct {
	State LinkState
	// Read is how much of the stream was read.
	Read int64
	// Silent is for how long nothing was read, and Down for how long it has not been connected after it was; -1 for neither.
	Silent, Down time.Duration
	// FileSize is how long the file is that is read, -1 if that is not known, and FileRead how much of it was read.
	FileSize, FileRead int64
}

// Link keeps a follower connected to a primary until it is stopped.
type Link struct {
	f      Follower
	name   string // of the primary, for the log
	ctx    context.Context
	cancel context.CancelFunc

	received *atomic.Int64 // bytes, of all links
	state    atomic.Int32
	read     atomic.Int64
	lastRead atomic.Int64 // Unix nanoseconds
	fileSize atomic.Int64
	fileRead atomic.Int64

	mu        sync.Mutex // guards what follows; conn is written to under writing
	conn      net.Conn
	downSince time.Time

	writing sync.Mutex

	// The link's goroutine's alone.
	settings Settings
	in       input
}

// errStopped is why a link ends.
var errStopped = errors.New("the link was stopped")

// retryEvery is how often it is tried to connect, and ackEvery how often a primary is told how far its replica is, as in
// Redis.
const (
	retryEvery = time.Second
	ackEvery   = time.Second
)

// NewLink makes a link to a primary of a name, which counts in received the bytes that it reads.
func NewLink(f Follower, name string, received *atomic.Int64) *Link {
	l := &Link{f: f, name: name, received: received}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// Stop ends the link. It does not wait until Run has returned.
func (l *Link) Stop() {
	l.cancel()
	l.Drop()
}

// Stopped tells whether Stop was called.
func (l *Link) Stopped() bool { return l.ctx.Err() != nil }

// Drop ends the connection; another one is tried.
func (l *Link) Drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != nil {
		_ = l.conn.Close() // whoever reads it finds out
	}
}

// Status is what is known of the link. Callable from anywhere.
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

// Addresses are those of the connection, empty where there is none.
func (l *Link) Addresses() (remote, local string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != nil {
		remote, local = l.conn.RemoteAddr().String(), l.conn.LocalAddr().String()
	}
	return remote, local
}

// Run connects, again and again, until Stop is called.
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
			if time.Since(began) > retryEvery/10 { // at once, as Redis does, but not as fast as it breaks
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

// connect is one connection, from its beginning to its end.
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
	if l.Stopped() { // Stop may have come before there was a connection to close
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
	_ = conn.SetWriteDeadline(time.Now().Add(l.settings.Timeout)) // the write fails where this does
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
		l.Drop() // what is being written ends
		end()
	}()
	if err := l.ack(); err != nil {
		return err
	}
	parser := resp.Parser{MaxBulk: resp.CommandBytesMax} // the primary's clients have kept to its limit
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

// beat calls fn every ackEvery until it returns false, or end is called, which waits for a call that is under way.
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

// acknowledge tells the primary how far its replica is.
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

// input is what was read of a connection and not used yet: b from from to to.
type input struct {
	link     *Link
	conn     net.Conn
	b        []byte
	from, to int
}

// inputSize is how much is asked for at once, and inputKept how large a buffer may stay.
const (
	inputSize = 128 << 10
	inputKept = 4 << 20
)

func (in *input) rest() []byte { return in.b[in.from:in.to] }

// fill reads more behind what there is, in a buffer that has room for need bytes in all, unless they are many: then it has
// room for twice what there is, since what was announced may not come.
func (in *input) fill(need int) error {
	left := in.to - in.from
	need = min(max(need, left+inputSize/2), max(inputKept, 2*left))
	if b := in.b; left == 0 && len(b) > inputKept && need <= inputKept || len(b) < need {
		b = make([]byte, max(need, inputSize, 2*left)) // what is not all there is read in few steps
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

// silencePoll is how often it is looked how long silence may last, which CONFIG SET changes.
const silencePoll = time.Second

// read reads what there is, for which it waits as long as silence may last.
func (in *input) read(b []byte) (n int, err error) {
	l := in.link
	var late net.Error
	for began := time.Now(); ; {
		_ = in.conn.SetReadDeadline(time.Now().Add(silencePoll)) // the read fails where this does
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
