package persistence

// A restart: a snapshot says where in the stream it was made. A server that begins with it goes on from there: a primary with
// what its replicas know it by, a replica with its primary. So neither needs a full synchronisation, unless too much was
// changed meanwhile.

import (
	"github.com/limitkv/limitkv/engine/journal"
	"github.com/limitkv/limitkv/replication"
	"github.com/limitkv/limitkv/resp"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/dumpfile"
)

// facts are what a snapshot says of the stream behind it. All keys are held.
func (f *Files) facts() [][2]string {
	at, ok := f.position.At()
	if !ok {
		return nil
	}
	return dumpfile.Facts(at)
}

// resume has the stream go on where the snapshot was made that the server begins with.
func (f *Files) resume(at replication.Place) {
	switch {
	case len(at.ID) != len(replication.NoID) || at.Selected >= f.s.Keyspace.Databases():
	case at.Offset > replication.OffsetMax:
		f.s.Logf('w', "The snapshot was made at byte %d of its stream, beyond all that can be. Replicas load everything again.", at.Offset)
	default:
		f.position.Restore(at)
	}
}

// expired tells replicas of a key that was left out of what the server began with, since its time was over.
func (f *Files) expired(db int, key []byte) {
	if !f.position.Leads() {
		return
	}
	cmd := resp.AppendCommand(nil, command.Removed(f.s.Config.Value("lazyfree-lazy-expire") == "yes"), key)
	f.s.Keyspace.Journal.Append(&journal.Batch{
		NowMicros: f.s.Keyspace.Clock.Now(), RESP: cmd, Effects: []journal.Effect{{DB: db, End: len(cmd)}},
	})
}
