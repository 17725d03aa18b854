package connection

// Client-side caching: who has read what, and who is told when it changes. As
// in Redis the table goes by the names of keys, whatever the database, and a
// client is told once: it is remembered again when it reads again.
//
// Reads and writes of a key come here under the lock of its shard, so no
// change is missed between a read and its being remembered. Messages are
// posted to the connections, behind the replies that are under way; that whose command
// changed the keys has them right behind its reply. They leave before
// the change is safe on the disk: they say nothing but that a key is to be read again,
// and that read waits.

import (
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/resp"
	"github.com/limitkv/limitkv/server/command"
)

// invalidateChannel is where RESP2 clients are told, in the form of Pub/Sub.
const invalidateChannel = "__redis__:invalidate"

type tracker struct {
	s       *command.Server
	keysMax *atomic.Int64

	mu      sync.Mutex
	clients map[int64]*tracked
	// readers are the ids of those who have read a key; readings is how many
	// there are in all, nameBytes how long the names of the keys are.
	readers   map[string][]int64
	readings  int
	nameBytes int64
	// broadcasts are the ids of those who are told of every key with a prefix.
	broadcasts map[string][]int64
	// queue is what is told when the command that changes the keys ends: behind
	// the reply that it may cause, and all keys of a transaction in one message
	// where they are broadcast.
	queue    []*message
	isQueued atomic.Bool
}

// message is what a client is to be told.
type message struct {
	client    int64
	broadcast bool
	prefix    string // of a broadcast
	keys      []string
	has       map[string]bool // the keys of a broadcast
	all       bool            // every key may have changed
}

// tracked is a session that tracks. What CLIENT TRACKING said does not change;
// caching belongs to the session's goroutine, the rest to the tracker's lock.
type tracked struct {
	session                          *command.Session
	redirect                         int64 // 0 = itself
	broadcast, optIn, optOut, noLoop bool
	prefixes                         []string

	// caching: CLIENT CACHING was said before the command that comes.
	caching bool
}

// trackedKey is where a session keeps its tracked.
type trackedKey struct{}

func (f *family) declareTracking() {
	t := &f.tracker
	f.s.Mutexes = append(f.s.Mutexes, &t.mu)
	t.s = f.s
	t.keysMax = f.s.Config.Int("tracking-table-max-keys", 1000000, 0, math.MaxInt64, "most keys that are remembered for client-side caching, 0 = any number")
	f.s.Config.OnChange(func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.shrink()
		t.send(nil)
	}, "tracking-table-max-keys")
	t.clients, t.readers, t.broadcasts = map[int64]*tracked{}, map[string][]int64{}, map[string][]int64{}
	f.s.Keyspace.Touched = t.touched
	f.s.OnClose = append(f.s.OnClose, t.stop)
	f.s.OnReset = append(f.s.OnReset, func(c *command.Ctx) { t.stop(c.Session) })
	f.s.OtherMemory = append(f.s.OtherMemory, t.bytes)
	f.s.InfoStats = append(f.s.InfoStats, func(w *command.InfoWriter) {
		t.mu.Lock()
		defer t.mu.Unlock()
		w.Line("tracking_total_keys", len(t.readers))
		w.Line("tracking_total_items", t.readings)
		w.Line("tracking_total_prefixes", len(t.broadcasts))
	})
}

// What is kept of a key that was read, besides its name, and of each client that read it.
const (
	readKeyBytes    = 96
	readClientBytes = 8
)

// bytes is what the table takes.
func (t *tracker) bytes() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return int64(len(t.readers))*readKeyBytes + t.nameBytes + int64(t.readings)*readClientBytes
}

// of is how a session tracks, nil if it does not. For its own goroutine.
func (t *tracker) of(s *command.Session) *tracked {
	if s.Shown.Flags.Load()&command.ShownTracking == 0 {
		return nil
	}
	x, _ := s.Slot(trackedKey{}, nil).(*tracked)
	return x
}

// start makes a session track, or track otherwise. Prefixes add up.
func (t *tracker) start(next *tracked) {
	s := next.session
	was := t.of(s)
	if next.broadcast && len(next.prefixes) == 0 && was == nil {
		next.prefixes = []string{""}
	}
	t.mu.Lock()
	for _, p := range next.prefixes {
		if !slices.Contains(t.broadcasts[p], s.ID) {
			t.broadcasts[p] = append(t.broadcasts[p], s.ID)
		}
	}
	if was != nil {
		next.prefixes = append(slices.Clone(was.prefixes), next.prefixes...)
		slices.Sort(next.prefixes)
	}
	t.clients[s.ID] = next
	t.count()
	t.mu.Unlock()
	s.Keep(trackedKey{}, next)
	s.Show(command.ShownTracking, true)
	s.Show(command.ShownTrackingBroadcast, next.broadcast)
	s.Show(command.ShownTrackingBroken, false)
	s.Shown.Redirect.Store(next.redirect + 1)
	s.Shown.Prefixes.Store(int32(len(next.prefixes)))
	var bytes int64
	for _, p := range next.prefixes {
		bytes += int64(len(p))
	}
	s.Shown.PrefixBytes.Store(bytes)
}

// stop ends a session's tracking. What it has read is forgotten as the keys
// change.
func (t *tracker) stop(s *command.Session) {
	if s.Shown.Flags.Load()&command.ShownTracking == 0 {
		return
	}
	s.Show(command.ShownTracking|command.ShownTrackingBroadcast|command.ShownTrackingBroken, false)
	s.Shown.Redirect.Store(0)
	s.Shown.Prefixes.Store(0)
	s.Shown.PrefixBytes.Store(0)
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range t.clients[s.ID].prefixes {
		left := slices.DeleteFunc(t.broadcasts[p], func(id int64) bool { return id == s.ID })
		if len(left) == 0 {
			delete(t.broadcasts, p)
		} else {
			t.broadcasts[p] = left
		}
	}
	delete(t.clients, s.ID)
	t.count()
}

// count makes the keyspace tell of changes while anybody tracks.
func (t *tracker) count() {
	t.s.Tracking.Store(int64(len(t.clients)))
	on := len(t.clients) > 0
	t.s.Keyspace.Each(func(ks *engine.Keyspace) { ks.Tracking.Store(on) })
	if len(t.clients) == 0 {
		t.readers = map[string][]int64{} // a map that is cleared keeps its memory
		t.readings, t.nameBytes = 0, 0
	}
}

// Read remembers that a session has read the keys of a command. Their shards
// are held.
func (t *tracker) Read(c *command.Ctx, cmd *command.Command, args [][]byte) {
	x := t.of(c.Session)
	if x == nil || x.broadcast || x.optIn && !x.caching || x.optOut && x.caching || cmd.Flags&command.PubSub != 0 {
		return
	}
	id := c.Session.ID
	t.mu.Lock()
	defer t.mu.Unlock()
	cmd.EachKey(args, func(pos int) {
		ids, there := t.readers[string(args[pos])]
		if !there {
			t.nameBytes += int64(len(args[pos]))
		}
		if !slices.Contains(ids, id) {
			t.readers[string(args[pos])] = append(ids, id)
			t.readings++
		}
	})
	t.shrink()
}

// shrink forgets keys until there are no more than may be, and queues messages for those who have read them. The lock is
// held.
func (t *tracker) shrink() {
	most := t.keysMax.Load()
	for key := range t.readers {
		if most == 0 || int64(len(t.readers)) <= most {
			return
		}
		t.invalidate(key, nil, 0)
	}
}

// Commanded sends what the command queued, and ends what CLIENT CACHING said.
func (t *tracker) Commanded(c *command.Ctx) {
	if t.isQueued.Load() {
		t.mu.Lock()
		t.send(c)
		t.mu.Unlock()
	}
	if x := t.of(c.Session); x != nil && x.caching && !c.Session.Multi.Active && !isClient(c.Cmd) {
		x.caching = false
	}
}

func isClient(cmd *command.Command) bool {
	return cmd != nil && cmd.Parent() != nil && cmd.Parent().Name == "client"
}

// touched tells of a change to a key, whose shard is held.
func (t *tracker) touched(v *engine.View, _ int, key []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	name := string(key)
	for prefix, ids := range t.broadcasts {
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		for _, id := range ids {
			if x := t.clients[id]; x != nil && !(x.noLoop && id == v.Who) && t.s.KeyspaceOf(x.session) == v.KS {
				t.gather(id, prefix, name)
			}
		}
	}
	if t.readings > 0 {
		t.invalidate(name, v.KS, v.Who)
	}
	if v.Who == 0 { // no command will end: a key expires
		t.send(nil)
	}
}

// gather adds a key to what a client is told of a prefix. The lock is held.
func (t *tracker) gather(client int64, prefix, key string) {
	for _, m := range t.queue {
		if m.broadcast && m.client == client && m.prefix == prefix {
			if !m.has[key] {
				m.has[key] = true
				m.keys = append(m.keys, key)
			}
			return
		}
	}
	t.push(&message{client: client, broadcast: true, prefix: prefix, keys: []string{key}, has: map[string]bool{key: true}})
}

func (t *tracker) push(m *message) {
	t.queue = append(t.queue, m)
	t.isQueued.Store(true)
}

// invalidate queues a message for those who have read a key of a keyspace, and
// forgets them; nil is any keyspace. The lock is held.
func (t *tracker) invalidate(key string, ks *engine.Keyspace, by int64) {
	var others []int64
	for _, id := range t.readers[key] {
		x := t.clients[id]
		if x != nil && ks != nil && t.s.KeyspaceOf(x.session) != ks {
			others = append(others, id)
			continue
		}
		t.readings--
		if x != nil && !x.broadcast && !(x.noLoop && id == by) {
			t.push(&message{client: id, keys: []string{key}})
		}
	}
	t.leave(key, others)
}

// leave forgets the readers of a key but some. The lock is held.
func (t *tracker) leave(key string, ids []int64) {
	if len(ids) > 0 {
		t.readers[key] = ids
	} else if _, there := t.readers[key]; there {
		delete(t.readers, key)
		t.nameBytes -= int64(len(key))
	}
}

// send sends what is queued. c is the command whose end it is, nil if none ends. The lock is held.
func (t *tracker) send(c *command.Ctx) {
	for _, m := range t.queue {
		x := t.clients[m.client]
		if x == nil {
			continue
		}
		if m.all {
			null := resp.Writer{Proto: x.session.Proto()} // in Redis not that of whom it redirects to
			null.Null()
			t.tell(c, x, func(w *resp.Writer) { w.Raw(null.Buf) })
			continue
		}
		t.tell(c, x, func(w *resp.Writer) {
			w.Array(len(m.keys))
			for _, key := range m.keys {
				w.BulkString(key)
			}
		})
	}
	t.queue = nil
	t.isQueued.Store(false)
}

// Flushed tells everybody that all keys of the command's keyspace may have changed.
func (t *tracker) Flushed(c *command.Ctx) {
	t.mu.Lock()
	defer t.mu.Unlock()
	in := func(id int64) bool { x := t.clients[id]; return x == nil || t.s.KeyspaceOf(x.session) == c.KS }
	for id := range t.clients {
		if in(id) {
			t.push(&message{client: id, all: true})
		}
	}
	for key, ids := range t.readers {
		left := slices.DeleteFunc(ids, in)
		t.readings -= len(ids) - len(left)
		t.leave(key, left)
	}
	if c.Session.Conn == nil { // no command of a client will end
		t.send(nil)
	}
}

// tell sends a client, or whom it redirects to, a message whose value write
// appends. The lock is held.
func (t *tracker) tell(c *command.Ctx, x *tracked, write func(w *resp.Writer)) {
	to := x.session
	if x.redirect != 0 {
		if to = t.s.Clients.Get(x.redirect); to == nil {
			t.broken(x)
			return
		}
	}
	push := to.Push
	if c != nil && c.Session == to {
		push = c.PushOwn
	}
	push(func(w *resp.Writer) {
		switch {
		case w.Proto == 3:
			w.Push(2)
			w.BulkString("invalidate")
		case x.redirect != 0 && to.Subscriptions.Load() > 0:
			w.Array(3)
			w.BulkString("message")
			w.BulkString(invalidateChannel)
		default: // RESP2 has no form to tell it in
			return
		}
		write(w)
	})
}

// broken tells a client that the one it redirects to is gone.
func (t *tracker) broken(x *tracked) {
	x.session.Show(command.ShownTrackingBroken, true)
	x.session.Push(func(w *resp.Writer) {
		if w.Proto == 3 {
			w.Push(2)
			w.BulkString("tracking-redir-broken")
			w.Int(x.redirect)
		}
	})
}
