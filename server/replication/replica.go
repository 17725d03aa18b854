package replication

// A replica, and what its connection sends to it: the answer to PSYNC, then a snapshot if it needs one, then the stream.

import (
	"sync"
	"sync/atomic"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/rdb"
	"github.com/limitkv/limitkv/replication"
	"github.com/limitkv/limitkv/server/command"
)

// Peer holds what a session has announced by REPLCONF.
type Peer struct {
	IP                  string
	Port                int64
	EOF, PSYNC2, Native bool  // it understands: a snapshot of unknown length, a changed replication ID, limitkv's own types
	Version             int64 // of Valkey, as 0x090102; 0: not announced
	Only                bool  // it wants the snapshot without the stream
	NoKeys, NoFunctions bool
}

type peerKey struct{}

// PeerOf returns what a session has announced so far. Only the session's goroutine calls it.
func PeerOf(sess *command.Session) *Peer {
	return sess.Slot(peerKey{}, func() any { return &Peer{} }).(*Peer)
}

// valkey9 is the first version of Valkey with its own file format.
const valkey9 = 0x090000

// audience returns the readers for whom the replica's snapshot is written.
func (p *Peer) audience() rdb.Audience {
	switch {
	case p.Native || p.Only:
		return rdb.ForAny
	case p.Version >= valkey9:
		return rdb.ForValkey
	case p.Version > 0:
		return rdb.ForValkey8
	}
	return rdb.ForRedis
}

// state is the progress of a replica.
type state int32

const (
	waits   state = iota // for a snapshot to begin
	loads                // the snapshot is being made or sent
	online               // it follows the stream
	leaving              // it wanted only a snapshot, and has it
)

// replica is a connection that receives the stream.
type replica struct {
	node *Node
	sess *command.Session
	peer Peer // as of its request
	old  bool // it used SYNC, and acknowledges nothing

	state  atomic.Int32
	since  int64        // time of its request, on the monotonic clock
	acked  atomic.Int64 // the offset that it has acknowledged
	synced atomic.Int64 // the offset that it has on disk
	heard  atomic.Int64 // time of the last acknowledgement, on the monotonic clock
	moved  atomic.Int64 // time when it last received something
	gone   atomic.Bool
	whole  atomic.Bool // its snapshot is written to a file, which is being sent

	mu     sync.Mutex
	head   []byte   // sent first
	said   bool     // head is complete
	queue  [][]byte // of the snapshot, sent after head
	queued int
	room   chan struct{} // signalled when the queue has more room
	// cursor is the replica's position in the stream, nil until the moment of its snapshot. With held, the stream begins after
	// the first acknowledgement, since the replica recognises the end of the snapshot by the silence after it.
	cursor *replication.Cursor
	held   bool
	plain  *replication.Plain // nil: it knows all types
	out    []byte             // converted by plain
	sent   int                // bytes of out that were sent
	last   part               // where the last result of Next came from
}

type part uint8

const (
	nothing part = iota
	fromHead
	fromQueue
	fromStream
)

func (n *Node) newReplica(sess *command.Session, p Peer) *replica {
	now := engine.Monotonic()
	r := &replica{node: n, sess: sess, peer: p, since: now, room: make(chan struct{}, 1)}
	r.heard.Store(now)
	r.moved.Store(now)
	if !p.Native {
		r.plain = &replication.Plain{Native: native}
	}
	return r
}

// more makes the connection send more of the stream soon. It may be called under any lock.
func (r *replica) more() { r.sess.Conn.Nudge() }

// wake makes the connection look for data to send. It may be called under any lock.
func (r *replica) wake() { r.sess.Conn.Post(nudge) }

func nudge() {}

// Next returns what to send next: see resp.Source.
func (r *replica) Next() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = nothing
	switch {
	case len(r.head) > 0:
		r.last = fromHead
		return r.head
	case len(r.queue) > 0:
		r.last = fromQueue
		return r.queue[0]
	}
	switch state(r.state.Load()) {
	case leaving:
		r.sess.Conn.Close(true)
	case online:
		if !r.held {
			r.last = fromStream
			return r.next()
		}
	}
	return nil
}

// next returns the next part of the stream, in the form for this replica.
func (r *replica) next() []byte {
	if r.plain == nil {
		return r.cursor.Next()
	}
	for r.sent == len(r.out) {
		b := r.cursor.Next()
		if len(b) == 0 {
			return nil
		}
		before := r.plain.LeftOut
		var ok bool
		if r.out, ok = r.plain.Turn(r.out[:0], b); !ok {
			r.node.s.Logf('w', "the replication stream is damaged: closing the link to replica %s", r.name())
			r.sess.Conn.Close(false)
			return nil
		}
		r.node.leftOutEffects.Add(r.plain.LeftOut - before)
		r.sent = 0
		r.cursor.Advance(len(b))
	}
	return r.out[r.sent:]
}

// Sent notes that n bytes were sent.
func (r *replica) Sent(n int) {
	if n == 0 {
		return
	}
	r.moved.Store(engine.Monotonic())
	r.node.sent.Add(int64(n))
	r.mu.Lock()
	defer r.mu.Unlock()
	switch r.last {
	case fromHead:
		r.head = r.head[n:]
	case fromQueue:
		if r.queue[0] = r.queue[0][n:]; len(r.queue[0]) == 0 {
			r.queue[0] = nil
			r.queue = r.queue[1:]
		}
		r.queued -= n
		select {
		case r.room <- struct{}{}:
		default:
		}
	case fromStream:
		if r.plain != nil {
			r.sent += n
		} else {
			r.cursor.Advance(n)
		}
	}
}

// Unsent returns how many bytes of the stream have not been sent yet.
func (r *replica) Unsent() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cursor == nil {
		return 0
	}
	return r.cursor.Lag() + int64(len(r.out)-r.sent)
}

// say sends text before the snapshot. last means that the snapshot follows, with nothing in between.
func (r *replica) say(b string, last bool) {
	r.mu.Lock()
	r.head = append(r.head, b...)
	r.said = r.said || last
	r.mu.Unlock()
	r.wake()
}

// keepAlive sends a newline to a replica that waits for its snapshot, so that it does not time out.
func (r *replica) keepAlive() {
	r.mu.Lock()
	if !r.said && len(r.head) == 0 {
		r.head = append(r.head, '\n')
	}
	r.mu.Unlock()
	r.wake()
}

// put adds a chunk to the snapshot, without a copy.
func (r *replica) put(b []byte) {
	r.mu.Lock()
	r.queue = append(r.queue, b)
	r.queued += len(b)
	r.mu.Unlock()
	r.wake()
}

// behind returns how many bytes of the snapshot wait to be sent.
func (r *replica) behind() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.queued
}

// begin sets the replica's position in the stream.
func (r *replica) begin(at *replication.Cursor) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cursor = at
}

// follow begins to send the stream once the whole snapshot is in the queue. With held, the stream waits for the first
// acknowledgement.
func (r *replica) follow(held bool) {
	r.mu.Lock()
	r.held = held
	r.mu.Unlock()
	r.heard.Store(engine.Monotonic())
	r.state.Store(int32(online))
	r.node.countGood()
	r.wake()
}

// acknowledged notes an acknowledgement and its time, and begins a stream that waited for it.
func (r *replica) acknowledged(offset, synced int64) {
	if offset > r.acked.Load() {
		r.acked.Store(offset)
	}
	if synced > r.synced.Load() {
		r.synced.Store(synced)
	}
	r.heard.Store(engine.Monotonic())
	r.mu.Lock()
	began := r.held && r.isOnline()
	if began {
		r.held = false
	}
	r.mu.Unlock()
	if began {
		r.node.s.Logf('n', "Synchronization with replica %s succeeded", r.name())
		r.wake()
	}
}

// leave cleans up when the connection has ended.
func (r *replica) leave() {
	r.gone.Store(true)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cursor != nil {
		r.cursor.Leave()
	}
	r.queue, r.queued = nil, 0
	select {
	case r.room <- struct{}{}:
	default:
	}
}

func (r *replica) isOnline() bool { return state(r.state.Load()) == online }

// lagSeconds is the time since the last acknowledgement.
func (r *replica) lagSeconds(now int64) int64 { return max(0, now-r.heard.Load()) / 1e6 }

// address returns where the replica listens: the address that it has announced, or that of its connection.
func (r *replica) address() (ip string, port int64) {
	if ip = r.peer.IP; ip == "" {
		ip = r.sess.Conn.Remote().Addr().Unmap().String()
		if !r.sess.Conn.Remote().IsValid() {
			ip = r.sess.Conn.RemoteAddr()
		}
	}
	return ip, r.peer.Port
}

// name is the replica's name in the log.
func (r *replica) name() string { return r.peer.Name(r.sess) }

// shown is the replica's state in INFO.
func (r *replica) shown() string {
	switch state(r.state.Load()) {
	case waits:
		return "wait_bgsave"
	case loads:
		if !r.whole.Load() { // Redis reports this state until its child has ended
			return "wait_bgsave"
		}
		return "send_bulk"
	case leaving:
		return "rdb_transmitted"
	}
	return "online"
}
