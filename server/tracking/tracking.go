// Package tracking, internal to the server, is client-side caching: it remembers which clients have read which keys, and sends
// them invalidations. As in Redis the table has key names without their database, and a client gets one message for a key
// until it reads the key again.
//
// Reads and writes of a key call this package under the lock of its shard, so no change between a read and its entry in the
// table is missed. Messages are posted to the connections, behind replies that are being sent. The client whose command
// changed the keys gets them right after its reply. Messages do not wait until the change is confirmed: they only say that a
// key must be read again, and that read waits.
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

// invalidateChannel is the Pub/Sub channel of the messages to RESP2 clients.
const invalidateChannel = "__redis__:invalidate"

// Table is the table of keys that clients have read.
type Table struct {
	s       *command.Server
	keysMax *atomic.Int64

	mu      sync.Mutex
	clients map[int64]*Client
	// readers are the IDs of the clients that have read a key. readings is the total number of these IDs, nameBytes the total
	// length of the key names.
	readers   map[string][]int64
	readings  int
	nameBytes int64
	// broadcasts are the IDs of the clients that get messages for all keys with a prefix.
	broadcasts map[string][]int64
	// queue is the messages to send at the end of the command that changes the keys. So they follow its reply, and all keys of
	// a transaction are in one message per prefix in broadcast mode.
	queue    []*message
	isQueued atomic.Bool
}

// message is an invalidation for a client.
type message struct {
	client    int64
	broadcast bool
	prefix    string // of a broadcast
	keys      []string
	has       map[string]bool // the set of keys, of a broadcast
	all       bool            // every key may have changed
}

// Client is a session that tracks. The arguments of CLIENT TRACKING do not change. Caching belongs to the session's goroutine,
// all else to the table's lock.
type Client struct {
	Session                          *command.Session
	Redirect                         int64 // 0 = itself
	Broadcast, OptIn, OptOut, NoLoop bool
	Prefixes                         []string

	// Caching: CLIENT CACHING applies to the next command.
	Caching bool
}

// clientKey is the key of a session's Client.
type clientKey struct{}

// New makes a server's table.
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

// Counts returns the number of keys, of clients over all keys, and of broadcast prefixes.
func (t *Table) Counts() (keys, items, prefixes int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.readers), t.readings, len(t.broadcasts)
}

// The bytes of a key in the table, besides its name, and of each client that has read it.
const (
	readKeyBytes    = 96
	readClientBytes = 8
)

// bytes returns the memory of the table.
func (t *Table) bytes() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return int64(len(t.readers))*readKeyBytes + t.nameBytes + int64(t.readings)*readClientBytes
}

// Of returns a session's Client, nil if it does not track. Only the session's goroutine calls it.
func (t *Table) Of(s *command.Session) *Client {
	if s.Shown.Flags.Load()&command.ShownTracking == 0 {
		return nil
	}
	x, _ := s.Slot(clientKey{}, nil).(*Client)
	return x
}

// Start begins to track, or changes how a session tracks. Prefixes add up.
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

// Stop ends a session's tracking. Its entries in the table are removed when the keys change.
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

// count makes keyspaces report changes while any client tracks.
func (t *Table) count() {
	t.s.Tracking.Store(int64(len(t.clients)))
	on := len(t.clients) > 0
	t.s.Keyspace.Each(func(ks *engine.Keyspace) { ks.Tracking.Store(on) })
	if len(t.clients) == 0 {
		t.readers = map[string][]int64{} // clear would keep the map's memory
		t.readings, t.nameBytes = 0, 0
	}
}

// Read remembers that a session has read the keys of a command. The caller holds their shards.
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

// shrink removes keys until the table is within its limit, and queues messages to their readers. The caller holds t.mu.
func (t *Table) shrink() {
	most := t.keysMax.Load()
	for key := range t.readers {
		if most == 0 || int64(len(t.readers)) <= most {
			return
		}
		t.invalidate(key, nil, 0)
	}
}

// Commanded sends the messages that the command queued, and ends the effect of CLIENT CACHING.
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

// touched handles a change of a key, whose shard the caller holds.
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
	if v.Who == 0 { // not a command but an expiry: nothing else sends the message
		t.send(nil)
	}
}

// gather adds a key to the broadcast to a client for a prefix. The caller holds t.mu.
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

// invalidate queues a message to the readers of a key in a keyspace, and removes them from the table. nil means any keyspace.
// The caller holds t.mu.
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

// leave sets the remaining readers of a key. The caller holds t.mu.
func (t *Table) leave(key string, ids []int64) {
	if len(ids) > 0 {
		t.readers[key] = ids
	} else if _, there := t.readers[key]; there {
		delete(t.readers, key)
		t.nameBytes -= int64(len(key))
	}
}

// send sends the queued messages. c is the command that is ending, nil if there is none. The caller holds t.mu.
func (t *Table) send(c *command.Ctx) {
	for _, m := range t.queue {
		x := t.clients[m.client]
		if x == nil {
			continue
		}
		if m.all {
			null := resp.Writer{Proto: x.Session.Proto()} // Redis does not use the protocol of the client it redirects to
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

// Flushed queues a message to all clients in the command's keyspace that all keys may have changed.
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
	if c.Session.Conn == nil { // no command of a client will end and send the message
		t.send(nil)
	}
}

// tell sends a message to a client, or to the one it redirects to. write appends its value. The caller holds t.mu.
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
		default: // RESP2 has no form for it
			return
		}
		write(w)
	})
}

// broken tells a client that the one it redirects to has disconnected.
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
