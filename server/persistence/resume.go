package persistence

// Restarts without a full synchronisation. A snapshot records its position in the replication stream. A server that loads it
// continues there: a primary keeps the ID that its replicas know, a replica continues with its primary. So neither needs a
// full synchronisation, unless too much has changed meanwhile.

import (
	"github.com/limitkv/limitkv/engine/journal"
	"github.com/limitkv/limitkv/replication"
	"github.com/limitkv/limitkv/resp"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/dumpfile"
)

// facts are a snapshot's fields about the replication stream. The caller holds all locks.
func (f *Files) facts() [][2]string {
	at, ok := f.position.At()
	if !ok {
		return nil
	}
	return dumpfile.Facts(at)
}

// resume continues the replication stream at the position of the snapshot that was loaded.
func (f *Files) resume(at replication.Place) {
	switch {
	case len(at.ID) != len(replication.NoID) || at.Selected >= f.s.Keyspace.Databases():
	case at.Offset > replication.OffsetMax:
		f.s.Logf('w', "The snapshot was made at byte %d of its stream, beyond all that can be. Replicas load everything again.", at.Offset)
	default:
		f.position.Restore(at)
	}
}

// expired sends replicas the removal of a key that was not loaded because its deadline had passed.
func (f *Files) expired(db int, key []byte) {
	if !f.position.Leads() {
		return
	}
	cmd := resp.AppendCommand(nil, command.Removed(f.s.Config.Value("lazyfree-lazy-expire") == "yes"), key)
	f.s.Keyspace.Journal.Append(&journal.Batch{
		NowMicros: f.s.Keyspace.Clock.Now(), RESP: cmd, Effects: []journal.Effect{{DB: db, End: len(cmd)}},
	})
}
