// Package tracking, internal to the server, is client-side caching: who has read what, and who is told when it changes. As
// in Redis the table goes by the names of keys, whatever the database, and a
// client is told once: it is remembered again when it reads again.
//
// Reads and writes of a key come here under the lock of its shard, so no
// change is missed between a read and its being remembered. Messages are
// posted to the connections, behind the replies that are under way; that whose command
// changed the keys has them right behind its reply. They leave before
// the change is safe on the disk: they say nothing but that a key is to be read again,
// and that read waits.
package tracking

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

// Table is what the clients of a server have read.
type Table struct {
	s       *command.Server
	keysMax *atomic.Int64

	mu      sync.Mutex
	clients map[int64]*Client
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

// Client is a session that tracks. What CLIENT TRACKING said does not change;
// Caching belongs to the session's goroutine, the rest to the table's lock.
type Client struct {
	Session                          *command.Session
	Redirect                         int64 // 0 = itself
	Broadcast, OptIn, OptOut, NoLoop bool
	Prefixes                         []string

	// Caching: CLIENT CACHING was said before the command that comes.
	Caching bool
}

// clientKey is where a session keeps its Client.
type clientKey struct{}

// New makes the table of a server.
func New(s *command.Server) *Table {
	t := &Table{s: s, clients: map[int64]*Client{}, readers: map[string][]int64{}, broadcasts: map[string][]int64{}}
	s.Mutexes = append(s.Mutexes, &t.mu)
	t.keysMax = s.Config.Int("tracking-table-max-keys", 1000000, 0, math.MaxInt64, "most keys that are remembered for client-side caching, 0 = any number")
	s.Config.OnChange(func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.shrink()
		t.send(nil)
	}, "tracking-table-max-keys")
	s.Keyspace.Touched = t.touched
	s.OtherMemory = append(s.OtherMemory, t.bytes)
	return t
}

// Counts are how many keys were read, by how many clients in all, and how many prefixes are broadcast.
func (t *Table) Counts() (keys, items, prefixes int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.readers), t.readings, len(t.broadcasts)
}

// What is kept of a key that was read, besides its name, and of each client that read it.
const (
	readKeyBytes    = 96
	readClientBytes = 8
)

// bytes is what the table takes.
func (t *Table) bytes() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return int64(len(t.readers))*readKeyBytes + t.nameBytes + int64(t.readings)*readClientBytes
}

// Of is how a session tracks, nil if it does not. For its own goroutine.
func (t *Table) Of(s *command.Session) *Client {
	if s.Shown.Flags.Load()&command.ShownTracking == 0 {
		return nil
	}
	x, _ := s.Slot(clientKey{}, nil).(*Client)
	return x
}

// Start makes a session track, or track otherwise. Prefixes add up.
func (t *Table) Start(next *Client) {
	s := next.Session
	was := t.Of(s)
	if next.Broadcast && len(next.Prefixes) == 0 && was == nil {
		next.Prefixes = []string{""}
	}
	t.mu.Lock()
	for _, p := range next.Prefixes {
		if !slices.Contains(t.broadcasts[p], s.ID) {
			t.broadcasts[p] = append(t.broadcasts[p], s.ID)
		}
	}
	if was != nil {
		next.Prefixes = append(slices.Clone(was.Prefixes), next.Prefixes...)
		slices.Sort(next.Prefixes)
	}
	t.clients[s.ID] = next
	t.count()
	t.mu.Unlock()
	s.Keep(clientKey{}, next)
	s.Show(command.ShownTracking, true)
	s.Show(command.ShownTrackingBroadcast, next.Broadcast)
	s.Show(command.ShownTrackingBroken, false)
	s.Shown.Redirect.Store(next.Redirect + 1)
	s.Shown.Prefixes.Store(int32(len(next.Prefixes)))
	var bytes int64
	for _, p := range next.Prefixes {
		bytes += int64(len(p))
	}
	s.Shown.PrefixBytes.Store(bytes)
}

// Stop ends a session's tracking. What it has read is forgotten as the keys
// change.
func (t *Table) Stop(s *command.Session) {
	if s.Shown.Flags.Load()&command.ShownTracking == 0 {
		return
	}
	s.Show(command.ShownTracking|command.ShownTrackingBroadcast|command.ShownTrackingBroken, false)
	s.Shown.Redirect.Store(0)
	s.Shown.Prefixes.Store(0)
	s.Shown.PrefixBytes.Store(0)
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range t.clients[s.ID].Prefixes {
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
func (t *Table) count() {
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
func (t *Table) Read(c *command.Ctx, cmd *command.Command, args [][]byte) {
	x := t.Of(c.Session)
	if x == nil || x.Broadcast || x.OptIn && !x.Caching || x.OptOut && x.Caching || cmd.Flags&command.PubSub != 0 {
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
func (t *Table) shrink() {
	most := t.keysMax.Load()
	for key := range t.readers {
		if most == 0 || int64(len(t.readers)) <= most {
			return
		}
		t.invalidate(key, nil, 0)
	}
}

// Commanded sends what the command queued, and ends what CLIENT CACHING said.
func (t *Table) Commanded(c *command.Ctx) {
	if t.isQueued.Load() {
		t.mu.Lock()
		t.send(c)
		t.mu.Unlock()
	}
	if x := t.Of(c.Session); x != nil && x.Caching && !c.Session.Multi.Active && !isClient(c.Cmd) {
		x.Caching = false
	}
}

func isClient(cmd *command.Command) bool {
	return cmd != nil && cmd.Parent() != nil && cmd.Parent().Name == "client"
}

// touched tells of a change to a key, whose shard is held.
func (t *Table) touched(v *engine.View, _ int, key []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	name := string(key)
	for prefix, ids := range t.broadcasts {
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		for _, id := range ids {
			if x := t.clients[id]; x != nil && !(x.NoLoop && id == v.Who) && t.s.KeyspaceOf(x.Session) == v.KS {
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
func (t *Table) gather(client int64, prefix, key string) {
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

func (t *Table) push(m *message) {
	t.queue = append(t.queue, m)
	t.isQueued.Store(true)
}

// invalidate queues a message for those who have read a key of a keyspace, and
// forgets them; nil is any keyspace. The lock is held.
func (t *Table) invalidate(key string, ks *engine.Keyspace, by int64) {
	var others []int64
	for _, id := range t.readers[key] {
		x := t.clients[id]
		if x != nil && ks != nil && t.s.KeyspaceOf(x.Session) != ks {
			others = append(others, id)
			continue
		}
		t.readings--
		if x != nil && !x.Broadcast && !(x.NoLoop && id == by) {
			t.push(&message{client: id, keys: []string{key}})
		}
	}
	t.leave(key, others)
}

// leave forgets the readers of a key but some. The lock is held.
func (t *Table) leave(key string, ids []int64) {
	if len(ids) > 0 {
		t.readers[key] = ids
	} else if _, there := t.readers[key]; there {
		delete(t.readers, key)
		t.nameBytes -= int64(len(key))
	}
}

// send sends what is queued. c is the command whose end it is, nil if none ends. The lock is held.
func (t *Table) send(c *command.Ctx) {
	for _, m := range t.queue {
		x := t.clients[m.client]
		if x == nil {
			continue
		}
		if m.all {
			null := resp.Writer{Proto: x.Session.Proto()} // in Redis not that of whom it redirects to
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
func (t *Table) Flushed(c *command.Ctx) {
	t.mu.Lock()
	defer t.mu.Unlock()
	in := func(id int64) bool { x := t.clients[id]; return x == nil || t.s.KeyspaceOf(x.Session) == c.KS }
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
func (t *Table) tell(c *command.Ctx, x *Client, write func(w *resp.Writer)) {
	to := x.Session
	if x.Redirect != 0 {
		if to = t.s.Clients.Get(x.Redirect); to == nil {
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
		case x.Redirect != 0 && to.Subscriptions.Load() > 0:
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
func (t *Table) broken(x *Client) {
	x.Session.Show(command.ShownTrackingBroken, true)
	x.Session.Push(func(w *resp.Writer) {
		if w.Proto == 3 {
			w.Push(2)
			w.BulkString("tracking-redir-broken")
			w.Int(x.Redirect)
		}
	})
}
