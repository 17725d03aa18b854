package replication

// A replica: what its connection is sent. First the answer to PSYNC, then a snapshot, if it needs one, then the stream.

import (
	"sync"
	"sync/atomic"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/rdb"
	"github.com/limitkv/limitkv/replication"
	"github.com/limitkv/limitkv/server/command"
)

// Peer is what a session has said of itself by REPLCONF.
type Peer struct {
	IP                  string
	Port                int64
	EOF, PSYNC2, Native bool  // what it understands: a snapshot without length, another name of the stream, limitkv's own types
	Version             int64 // of Valkey, as 0x090102; 0 if it has said none
	Only                bool  // the snapshot, and nothing behind it
	NoKeys, NoFunctions bool
}

type peerKey struct{}

// PeerOf is what a session has said so far. For the session's goroutine.
func PeerOf(sess *command.Session) *Peer {
	return sess.Slot(peerKey{}, func() any { return &Peer{} }).(*Peer)
}

// valkey9 is the first version of Valkey that has a format of its own.
const valkey9 = 0x090000

// audience is for whom a snapshot for the replica is written.
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

// state is how far a replica has come.
type state int32

const (
	waits   state = iota // for a snapshot to begin
	loads                // the snapshot is being made or sent
	online               // it follows the stream
	leaving              // it wanted a snapshot alone, and has it
)

// replica is a connection that is sent the stream.
type replica struct {
	node *Node
	sess *command.Session
	peer Peer // as it was when it asked
	old  bool // it asked by SYNC, and acknowledges nothing

	state  atomic.Int32
	since  int64        // when it asked, on the monotonic clock
	acked  atomic.Int64 // the offset that it says it has come to
	synced atomic.Int64 // and has on its disk
	heard  atomic.Int64 // when it said so, on the monotonic clock
	moved  atomic.Int64 // when it took something last
	gone   atomic.Bool
	whole  atomic.Bool // the file of its snapshot is made, and being sent

	mu     sync.Mutex
	head   []byte   // what is sent first
	said   bool     // and nothing more comes there
	queue  [][]byte // of the snapshot, behind it
	queued int
	room   chan struct{} // told when there is more room in the queue
	// cursor is where it is in the stream, nil until the moment that its snapshot is of. held: the stream begins with its
	// first acknowledgement, since it finds the end of a snapshot by what nothing follows.
	cursor *replication.Cursor
	held   bool
	plain  *replication.Plain // nil: it knows all types
	out    []byte             // what plain made
	sent   int                // of it
	last   part               // what Next returned
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

// more has the connection send more of the stream soon. It may be called under any lock.
func (r *replica) more() { r.sess.Conn.Nudge() }

// wake has the connection look for more to send. It may be called under any lock.
func (r *replica) wake() { r.sess.Conn.Post(nudge) }

func nudge() {}

// Next is what is sent next: see resp.Source.
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

// next is what comes next in the stream, as the replica is to have it.
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

// Sent says that so much of it is sent.
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

// Unsent is how much of the stream it has yet to be sent.
func (r *replica) Unsent() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cursor == nil {
		return 0
	}
	return r.cursor.Lag() + int64(len(r.out)-r.sent)
}

// say sends something before all else. With last, the snapshot follows: nothing more may come in between.
func (r *replica) say(b string, last bool) {
	r.mu.Lock()
	r.head = append(r.head, b...)
	r.said = r.said || last
	r.mu.Unlock()
	r.wake()
}

// keepAlive tells a replica that waits for its snapshot that it has not been forgotten.
func (r *replica) keepAlive() {
	r.mu.Lock()
	if !r.said && len(r.head) == 0 {
		r.head = append(r.head, '\n')
	}
	r.mu.Unlock()
	r.wake()
}

// put adds to the snapshot. It does not copy.
func (r *replica) put(b []byte) {
	r.mu.Lock()
	r.queue = append(r.queue, b)
	r.queued += len(b)
	r.mu.Unlock()
	r.wake()
}

// behind is how much of the snapshot waits to be sent.
func (r *replica) behind() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.queued
}

// begin puts the replica's place in the stream where the cursor is.
func (r *replica) begin(at *replication.Cursor) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cursor = at
}

// follow has it sent the stream, all of the snapshot being in the queue. With held the stream waits for its word.
func (r *replica) follow(held bool) {
	r.mu.Lock()
	r.held = held
	r.mu.Unlock()
	r.heard.Store(engine.Monotonic())
	r.state.Store(int32(online))
	r.node.countGood()
	r.wake()
}

// acknowledged notes an acknowledgement, at a time of the monotonic clock.
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

// leave ends it, whose connection has ended.
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

// lagSeconds is for how long it has said nothing.
func (r *replica) lagSeconds(now int64) int64 { return max(0, now-r.heard.Load()) / 1e6 }

// address is where the replica listens, as it says or as its connection does.
func (r *replica) address() (ip string, port int64) {
	if ip = r.peer.IP; ip == "" {
		ip = r.sess.Conn.Remote().Addr().Unmap().String()
		if !r.sess.Conn.Remote().IsValid() {
			ip = r.sess.Conn.RemoteAddr()
		}
	}
	return ip, r.peer.Port
}

// name is how the log calls it.
func (r *replica) name() string { return r.peer.Name(r.sess) }

// shown is its state as INFO tells it.
func (r *replica) shown() string {
	switch state(r.state.Load()) {
	case waits:
		return "wait_bgsave"
	case loads:
		if !r.whole.Load() { // as Redis calls it until its child has ended
			return "wait_bgsave"
		}
		return "send_bulk"
	case leaving:
		return "rdb_transmitted"
	}
	return "online"
}
