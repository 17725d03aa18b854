package replication

// A restart: a snapshot says where in the stream it was made. A server that begins with it goes on from there: a primary with
// what its replicas know it by, a replica with its primary. So neither needs a full synchronisation, unless too much was
// changed meanwhile.

import (
	"strconv"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/journal"
	"github.com/limitkv/limitkv/replication"
	"github.com/limitkv/limitkv/resp"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/dumpfile"
)

// Facts are what a snapshot says of the stream behind it. All keys are held.
func (f *family) Facts(c *command.Ctx) [][2]string {
	st, selected := f.stream.State(), 0
	switch l := f.follower.leader(); {
	case l == nil && st.Active:
		selected = f.place.Load().Selected()
	case l != nil && f.follower.isWhole():
		selected = l.selected()
	default: // nobody could go on from there
		return nil
	}
	return facts(st.ID, st.Offset, selected)
}

func facts(id string, offset int64, selected int) [][2]string {
	return [][2]string{
		{dumpfile.FactSelected, strconv.Itoa(selected)}, {dumpfile.FactID, id}, {dumpfile.FactOffset, strconv.FormatInt(offset, 10)},
	}
}

// Restore has the stream go on where the snapshot was made that the server begins with.
func (f *family) Restore(id string, offset int64, selected int) {
	if len(id) != idLength || selected >= f.s.Keyspace.Databases() {
		return
	}
	if offset > replication.OffsetMax {
		f.s.Logf('w', "The snapshot was made at byte %d of its stream, beyond all that can be. Replicas load everything again.", offset)
		return
	}
	if l := f.follower.leader(); l != nil {
		l.adopt(id, offset, selected)
		return
	}
	f.leading.Lock()
	f.stream.Restore(id, offset)
	f.lead()
	f.leading.Unlock()
	f.mu.Lock()
	f.noneSince = engine.Monotonic()
	f.mu.Unlock()
	f.startTimer()
}

// idLength is how long the name of a stream is.
const idLength = 40

// Left tells replicas of a key that was left out of what the server began with, since it had expired.
func (f *family) Left(db int, key []byte) {
	if f.follower.leader() != nil || !f.stream.State().Active {
		return
	}
	cmd := resp.AppendCommand(nil, command.Removed(f.s.Config.Value("lazyfree-lazy-expire") == "yes"), key)
	f.s.Keyspace.Journal.Append(&journal.Batch{
		NowMicros: f.s.Keyspace.Clock.Now(), RESP: cmd, Effects: []journal.Effect{{DB: db, End: len(cmd)}},
	})
}
