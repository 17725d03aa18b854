package lkv

// LKV.SNAPSHOT saves the whole keyspace under a name, and restores it.

import (
	"slices"
	"sync"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/server"
	"github.com/limitkv/limitkv/server/command"
)

const (
	// snapshotsMax is how many snapshots a namespace can have: each one keeps what was changed since.
	snapshotsMax = 100
	// nameBytesMax is the longest name, in bytes.
	nameBytesMax = 128

	errNoSnapshot   = "ERR there is no snapshot of this name"
	errSnapshotName = "ERR the name of a snapshot has 1 to 128 bytes"
)

// snapshots are the snapshots of a namespace, in the order in which they were saved.
type snapshots struct {
	mu  sync.Mutex // never held while somebody waits for keys
	all []*snapshot
}

// snapshotter has the snapshots of all namespaces.
type snapshotter struct {
	s      *server.Server
	places command.PerKeyspace[snapshots]
}

// snapshot is a saved state.
type snapshot struct {
	name      string
	keys      *engine.Snapshot
	functions any // of Server.SaveFunctions
}

func snapshotRow(s *server.Server) *command.Command {
	f := family{s}
	all := &snapshotter{s: s}
	all.places.Begin(s.Server, nil)
	s.Mutexes = append(s.Mutexes, &all.places.Of(s.Keyspace).mu)
	save := f.row("save", 3, "name:string", "Keeps all keys of all databases, and the functions, under a name, in place of what it named.", all.save)
	restore := f.row("restore", 3, "name:string", "Brings back what a name keeps; it can be brought back again.", all.restore)
	for _, row := range []*command.Command{save, restore} {
		// They wait for scripts that hold keys, and that must not stop a loop.
		row.Plan = func(*command.Ctx, *engine.LockSet) (long bool) { return true }
		row.Complexity = "O(N) in the number of keys"
	}
	return &command.Command{
		Name: "lkv.snapshot", Arity: -2, Group: command.GroupTest, Since: "0.2.0",
		Flags:      command.Test | command.NoScript | command.NoMulti | command.Loading | command.Stale,
		Summary:    "Keeps the whole keyspace and brings it back.",
		Complexity: "That of the subcommand",
		Sub: []*command.Command{
			save, restore,
			f.row("drop", 3, "name:string", "Forgets what a name keeps.", all.drop),
			f.row("list", 2, "", "Lists what is kept: names, times of saving and numbers of keys.", all.list),
		},
	}
}

// find returns the index of the snapshot with a name, -1 if there is none. mu is held.
func (all *snapshots) find(name []byte) int {
	return slices.IndexFunc(all.all, func(x *snapshot) bool { return x.name == string(name) })
}

// room returns the error text if one more snapshot would be too many. mu is held.
func (all *snapshots) room(name []byte) string {
	if len(all.all) >= snapshotsMax && all.find(name) < 0 {
		return "ERR there are too many snapshots already"
	}
	return ""
}

func (x *snapshotter) save(c *command.Ctx) {
	all := x.places.Of(c.KS)
	name := c.Args[2]
	if len(name) == 0 || len(name) > nameBytesMax {
		c.Error(errSnapshotName)
		return
	}
	all.mu.Lock()
	problem := all.room(name)
	all.mu.Unlock()
	if problem != "" {
		c.Error(problem)
		return
	}
	next := &snapshot{string(name), c.KS.Save(), x.s.Functions.Save(c.KS)}
	all.mu.Lock()
	defer all.mu.Unlock()
	if problem := all.room(name); problem != "" { // others have saved meanwhile
		c.Error(problem)
		return
	}
	all.remove(all.find(name))
	all.all = append(all.all, next)
	c.OK()
}

// remove removes the snapshot at an index, if that is not negative. mu is held.
func (all *snapshots) remove(at int) {
	if at >= 0 {
		all.all = slices.Delete(all.all, at, at+1)
	}
}

func (x *snapshotter) restore(c *command.Ctx) {
	all := x.places.Of(c.KS)
	all.mu.Lock()
	var kept *snapshot
	if at := all.find(c.Args[2]); at >= 0 {
		kept = all.all[at]
	}
	all.mu.Unlock()
	if kept == nil {
		c.Error(errNoSnapshot)
		return
	}
	c.KS.Restore(kept.keys)
	x.s.Functions.Load(c.KS, kept.functions, true, true)
	if c.Logging() { // the keys are logged already
		c.Effect([]byte("FUNCTION"), []byte("FLUSH"))
		for _, code := range x.s.Functions.Libraries(c.KS) {
			c.Effect([]byte("FUNCTION"), []byte("LOAD"), []byte(code))
		}
	}
	if x.s.Tracking.Load() != 0 {
		x.s.Tracker.Flushed(c)
	}
	c.OK()
}

func (x *snapshotter) drop(c *command.Ctx) {
	all := x.places.Of(c.KS)
	all.mu.Lock()
	defer all.mu.Unlock()
	at := all.find(c.Args[2])
	if at < 0 {
		c.Error(errNoSnapshot)
		return
	}
	all.remove(at)
	c.OK()
}

func (x *snapshotter) list(c *command.Ctx) {
	all := x.places.Of(c.KS)
	all.mu.Lock()
	defer all.mu.Unlock()
	c.Array(len(all.all))
	for _, kept := range all.all {
		c.Map(3)
		c.BulkString("name")
		c.BulkString(kept.name)
		c.BulkString("saved")
		c.Int(kept.keys.SavedMicros / 1000)
		c.BulkString("keys")
		c.Int(int64(kept.keys.Keys))
	}
}
