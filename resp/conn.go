package resp

// A connection and the handler that serves it. A connection does no I/O: a driver moves its bytes. So all of it can be tested
// and fuzzed without a socket.

import (
	"net/netip"
	"sync/atomic"
)

// Handler is what a server does. All calls for one connection come from the
// goroutine that owns it, one at a time.
type Handler interface {
	// Opened is called before anything is read. It may reply and close.
	Opened(c *Conn)

	// Serve runs the commands in order, appends their replies to c.Out and returns how many it ran. It runs all of them,
	// except in these cases: it called c.Pause (it gets the rest again after Resume), c.Close (the rest are dropped) or
	// c.Yield, or c.Full says that the replies should be sent first (it gets the rest again afterwards). The batch and
	// all its bytes are valid until Serve returns. After c.HandOver, Serve returns a negative number.
	Serve(c *Conn, batch []Command) int

	// Closed is called once, when the connection has ended and no command of it is still handed over. c.Reason says why it
	// ended.
	Closed(c *Conn)
}

// Command is a command as received: its name and arguments.
type Command struct {
	Args [][]byte
	Size int // bytes it took on the wire

	// Own, if it is not 0, says that each argument of at least Own bytes has its own memory, which the handler may keep.
	Own int
}

// Reason is why a connection ended.
type Reason uint8

// The reasons.
const (
	ReasonNone     Reason = iota // it has not ended
	ReasonPeer                   // the client closed it, or it broke
	ReasonHandler                // Close was called
	ReasonProtocol               // protocol error, see Conn.ProtocolError
	ReasonInput                  // more unparsed input than the query buffer limit
	ReasonOutput                 // more unsent output than the output limit
	ReasonShutdown               // the server stops
)

// Conn is a connection. It does no I/O: a driver (an epoll loop, a goroutine, a
// test) gives it bytes and takes bytes from it.
//
// A connection belongs to one goroutine. Only Handler's methods and functions given to Post may use it,
// except where a comment says "from anywhere".
type Conn struct {
	// Data belongs to the handler.
	Data any

	// Out takes the replies. The handler may append to it while it runs. Out is
	// sent when the handler returns, or earlier if it is long.
	Out *Writer

	// ID counts the connections of a server from 1.
	ID uint64

	// Loop is the index of the event loop, -1 for a goroutine per connection.
	Loop int

	// Fd is the file descriptor, -1 if there is none.
	Fd int

	// Inside says that the client is a part of this process.
	Inside bool

	// QueryBufferLimit is how many bytes of unparsed input may accumulate (0: the default).
	// QueuedBytes is input that the handler keeps and that counts towards the limit too: Redis counts
	// the commands queued by MULTI. QueuedBytes may be read from anywhere.
	QueryBufferLimit int64
	QueuedBytes      atomic.Int64

	// OutputHard is how many bytes of unsent output may accumulate, 0 for no limit.
	// OutputSoft is a limit that output may exceed for OutputSoftMicros. A client
	// over a limit is disconnected.
	OutputHard       int64
	OutputSoft       int64
	OutputSoftMicros int64

	// Buffered, if set, is called when QueryBytes or OutputBytes (without SharedBytes) changes. bytes is the growth,
	// negative for a decrease.
	Buffered func(bytes int64)

	handler Handler
	owner   owner
	source  Source // nil: replies are sent
	owed    int    // bytes of Out that are sent before those of the source
	parser  Parser
	mail    mailbox
	out     Writer

	remote, local netip.AddrPort
	path          string // of the unix socket

	in        backlog // input kept between turns: an incomplete command, or all input while paused or choked
	softSince int64   // when output went over OutputSoft, 0 if it is not over it

	protocolErr error
	paused      bool
	away        bool // a command of c was handed over and has not returned, see HandOver
	choked      bool // commands wait until the peer has taken output, see mayKeep
	hungUp      bool // the peer is gone: its remaining commands run, their replies are dropped
	fullAt      int  // see Full
	closing     closeMode
	reason      Reason
	gone        bool
	more        bool // complete commands were left at the end of the turn
	queued      bool // c waits for another turn
	turn        uint64
	took        int64 // microseconds of this turn, see Took

	opened      int64
	lastActive  atomic.Int64
	bytesIn     atomic.Int64
	bytesOut    atomic.Int64
	queryBytes  atomic.Int64
	outputBytes atomic.Int64
	sharedBytes atomic.Int64
}

type closeMode uint8

const (
	keepOpen closeMode = iota
	closeFlushed
	closeNow
)

// owner is the driver of a connection.
type owner interface {
	// post tells the owning goroutine that there is mail; false if it has ended.
	post() bool
	// nudge tells it that the source has more, which need not be sent at once.
	nudge()
	// resume asks for another turn.
	resume()
	// flush sends the bytes in Out.
	flush()
	// others sends the replies of other connections that are ready to be sent.
	others()
	// handOver gives everything that the calling goroutine does, except the running command,
	// to another goroutine; false if it cannot.
	handOver(ran, mark int) bool
	// unsent is how many bytes of output the peer has yet to take, including Out.
	unsent() int
	// gather makes the system send fewer, larger packets, where it can.
	gather()
}

// scratch is memory that a turn needs and that nothing uses after it. A driver has one.
type scratch struct {
	args  [][]byte
	batch []Command
	ends  []int // where each command of the batch ends in the input

	data []byte // the input, while it is served
	own  bool   // data is the whole of the connection's own buffer, c.in
}

// forget drops the arguments of a batch that has run: the handler may have stored some of them.
func (s *scratch) forget() {
	clear(s.args)
	clear(s.batch)
	s.args, s.batch = s.args[:0], s.batch[:0]
}

// release drops the arguments of the last batch, so that they do not keep a
// large input buffer alive.
func (s *scratch) release() {
	if cap(s.args) > argsKeptMax {
		s.args = nil
	}
	clear(s.args[:cap(s.args)])
	clear(s.batch[:cap(s.batch)])
	s.args, s.batch = s.args[:0], s.batch[:0]
}

func (c *Conn) init(id uint64, h Handler, o owner, now int64) {
	c.ID, c.handler, c.owner, c.opened = id, h, o, now
	c.Fd, c.Loop = -1, -1
	c.Out = &c.out
	c.parser.bulk, c.parser.Large = -1, largeBytes
	c.lastActive.Store(now)
}

// Pause stops serving c after the current command: Serve must return at once.
// The driver continues to read input, up to the query buffer limit, since it can
// see the end of the connection only behind all input.
func (c *Conn) Pause() { c.paused = true }

// Resume ends a pause. From another goroutine: c.Post(c.Resume).
func (c *Conn) Resume() {
	if c.paused && !c.away {
		c.paused = false
		c.owner.resume()
	}
}

// Paused tells whether c is paused.
func (c *Conn) Paused() bool { return c.paused }

// Took says that this turn took so many microseconds. Replies are sent when all ready connections have had their
// turn, or when the turns since the last sending took LateMicrosMax together.
func (c *Conn) Took(micros int64) { c.took = micros }

// Others sends the replies of earlier turns now, since the present turn may take long.
func (c *Conn) Others() { c.owner.others() }

// Post makes the goroutine that owns c run fn and then send what fn appended to
// c.Out. It may be called from anywhere and never blocks. Functions posted to one
// connection run in the order of their calls. fn runs once, also if c has ended by then (see
// Gone). If Post returns false, the server has stopped and fn does not run.
func (c *Conn) Post(fn func()) bool {
	first, ok := c.mail.put(fn)
	return ok && (!first || c.owner.post())
}

// Close ends c, after Out has been sent if afterFlush is set, else at once. No further
// command is served.
func (c *Conn) Close(afterFlush bool) { c.close(afterFlush, ReasonHandler) }

func (c *Conn) close(afterFlush bool, why Reason) {
	mode := closeNow
	if afterFlush {
		mode = closeFlushed
	}
	if mode > c.closing {
		c.closing = mode
	}
	if c.reason == ReasonNone {
		c.reason = why
	}
}

// Gone tells whether c has ended.
func (c *Conn) Gone() bool { return c.gone }

// Reason is why c ended or is about to.
func (c *Conn) Reason() Reason { return c.reason }

// SetMaxBulk sets the longest argument accepted, in bytes.
func (c *Conn) SetMaxBulk(n int64) { c.parser.MaxBulk = n }

// SetUnauthenticated applies, or lifts, the limits for clients that have yet to
// authenticate. While they apply, Serve gets one command at a time, since each
// command may lift them.
func (c *Conn) SetUnauthenticated(v bool) { c.parser.Unauthenticated = v }

// Remote is the client's address; the zero value if it has none (unix sockets).
func (c *Conn) Remote() netip.AddrPort { return c.remote }

// RemoteAddr is the client's address as CLIENT LIST shows it: "127.0.0.1:50000",
// "[::1]:50000", "/path:0" for a unix socket.
func (c *Conn) RemoteAddr() string { return c.addr(c.remote) }

// LocalAddr is the address the client connected to, in the same form.
func (c *Conn) LocalAddr() string { return c.addr(c.local) }

func (c *Conn) addr(a netip.AddrPort) string {
	if !a.IsValid() {
		return c.path + ":0"
	}
	return a.String()
}

// OpenedAt is when c was accepted, in microseconds of Options.Now.
func (c *Conn) OpenedAt() int64 { return c.opened }

// LastActive is when input last came, in microseconds of Options.Now. Callable
// from anywhere, as are the counters below.
func (c *Conn) LastActive() int64 { return c.lastActive.Load() }

// BytesIn is how many bytes were received.
func (c *Conn) BytesIn() int64 { return c.bytesIn.Load() }

// BytesOut is how many bytes were sent.
func (c *Conn) BytesOut() int64 { return c.bytesOut.Load() }

// QueryBytes is how much input waits to be complete or to be served.
func (c *Conn) QueryBytes() int64 { return c.queryBytes.Load() }

// OutputBytes is how many bytes of output wait for the peer. SharedBytes is how many of them are the source's: other
// connections may send the same bytes, so they are not this connection's memory.
func (c *Conn) OutputBytes() int64 { return c.outputBytes.Load() + c.sharedBytes.Load() }
func (c *Conn) SharedBytes() int64 { return c.sharedBytes.Load() }

// noteQueryBytes updates QueryBytes.
func (c *Conn) noteQueryBytes() {
	held, _ := c.parser.held()
	c.setBuffered(&c.queryBytes, int64(c.in.len()+held))
}

func (c *Conn) setOutputBytes(n int) { c.setBuffered(&c.outputBytes, int64(n)) }

func (c *Conn) setSharedBytes(n int64) {
	if c.sharedBytes.Load() != n {
		c.sharedBytes.Store(n)
	}
}

// setBuffered changes one of the counters. It compares first, since the counters mostly stay as they are
// and an atomic write for every turn costs more.
func (c *Conn) setBuffered(of *atomic.Int64, n int64) {
	before := of.Load()
	if n == before {
		return
	}
	of.Store(n)
	if c.Buffered != nil {
		c.Buffered(n - before)
	}
}

// serve parses data, which is all of c.in if own, and runs the complete commands in
// it, at most budget of them. It returns how many bytes it consumed. c.more tells
// whether commands were left. done is negative if c belongs to another goroutine
// now, see HandOver.
func (c *Conn) serve(data []byte, own bool, s *scratch, budget int) (done int) {
	c.more = false
	c.turn++
	s.data, s.own = data, own
	c.choked = c.choked && c.mayKeep(len(data))
	for done < len(data) && !c.paused && !c.choked && !c.more && c.closing == keepOpen {
		if budget <= 0 {
			c.more = true
			break
		}
		limit := min(batchCommandsMax, budget)
		if c.parser.Unauthenticated {
			limit = 1
		}
		s.args, s.batch, s.ends = s.args[:0], s.batch[:0], s.ends[:0]
		pos := done
		var err error
		for len(s.batch) < limit && pos < len(data) {
			var n int
			var args [][]byte
			n, args, err = c.parser.Next(data[pos:], s.args)
			if n == 0 {
				break
			}
			pos += n
			if len(args) > len(s.args) {
				s.batch = append(s.batch, Command{Args: args[len(s.args):len(args):len(args)], Size: n})
				s.ends = append(s.ends, pos)
				s.args = args
				if c.parser.ready() {
					held, _ := c.parser.held()
					s.batch[len(s.batch)-1].Size, s.batch[len(s.batch)-1].Own = held+n, c.parser.Large
					break
				}
			} else if len(s.batch) == 0 {
				done = pos // even if the next command is incomplete: this part is not parsed again
			}
		}
		n := len(s.batch)
		large := n > 0 && s.batch[0].Own != 0
		budget -= n
		if n > 0 {
			c.fullAt = len(c.Out.Buf) + fullBytes
			ran := c.handler.Serve(c, s.batch)
			if ran < 0 {
				return ran
			}
			c.parser.Release()
			if ran > 0 {
				done = s.ends[ran-1]
				if large {
					c.parser.forgetLarge()
					s.forget()
				}
			}
			c.relieve(len(data) - done)
			if ran < n { // paused, full, closed or yielding
				c.parser.reset()
				continue
			}
		}
		done = pos
		if c.paused || c.choked || c.closing != keepOpen {
			if err != nil {
				c.parser.reset() // the same error is found again
			}
			break
		}
		if err != nil {
			c.protocolErr = err
			c.Out.Error("ERR " + err.Error())
			c.close(true, ReasonProtocol)
			break
		}
		if n < limit && !large && !c.parser.waits { // the rest is an incomplete command
			break
		}
	}
	s.data = nil
	return done
}

// relieve sends the replies if they are many, and chokes c if its peer
// does not take them. kept is how many bytes of input are still to be served.
func (c *Conn) relieve(kept int) {
	if c.Out.Len() < writeChunkBytes {
		return
	}
	c.owner.flush()
	c.choked = c.owner.unsent() > chokeBytes && c.mayKeep(kept)
}

// mayKeep tells whether commands may wait instead of being run; kept is the size of all
// input. They may not wait if
//   - the input takes more memory than the unsent replies (beyond chokeBytes);
//   - the input is so long that the query buffer limit, which is meant for
//     incomplete commands, might end c;
//   - c has a limit of output: Redis would disconnect it there, and so must we;
//   - the peer is gone, so that nobody takes the replies.
func (c *Conn) mayKeep(kept int) bool {
	return c.OutputHard <= 0 && c.OutputSoft <= 0 && !c.hungUp &&
		kept <= max(chokeBytes, c.owner.unsent()) && int64(kept) <= c.inputLimit()/2
}

// drained ends a choke if the peer has taken enough. It reports whether it ended one.
func (c *Conn) drained() bool {
	if !c.choked || c.owner.unsent() > chokeBytes/2 {
		return false
	}
	c.choked = false
	return true
}

// hangUp notes that the peer is gone. It reports whether commands of the peer still wait because of a choke:
// they run before c ends, as they would have done on arrival.
func (c *Conn) hangUp() bool {
	if !c.choked || c.paused || c.in.len() == 0 || c.closing != keepOpen {
		return false
	}
	c.hungUp, c.choked = true, false
	return true
}

// Full tells whether there are so many replies that they should be sent
// before more commands are run.
func (c *Conn) Full() bool { return c.Out.Len() >= c.fullAt }

func (c *Conn) inputLimit() int64 {
	if c.QueryBufferLimit <= 0 {
		return DefaultQueryBufferBytes
	}
	return c.QueryBufferLimit
}

// overInput tells whether c has more unparsed input than it may. The parsed part
// of an incomplete command does not count, as in Redis.
func (c *Conn) overInput() bool {
	parsed, _ := c.parser.Parsed()
	_, coming := c.parser.held()
	held := int64(c.in.len()-parsed+coming) + c.QueuedBytes.Load()
	return held > c.inputLimit() || held > unauthQueryBytesMax && c.parser.Unauthenticated
}

// overOutput tells whether n unsent bytes of output are more than c may have.
func (c *Conn) overOutput(n, now int64) bool {
	if c.OutputHard > 0 && n > c.OutputHard {
		return true
	}
	if c.OutputSoft <= 0 || n <= c.OutputSoft {
		c.softSince = 0
		return false
	}
	if c.softSince == 0 {
		c.softSince = now
	}
	return now-c.softSince > c.OutputSoftMicros
}
