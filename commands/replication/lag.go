package replication

// How far replicas are behind when the server is to end.

import (
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/resp"
)

// behindBy is of how many bytes a replica has not said that it has them.
func (f *family) behindBy(r *replica) int64 { return f.offset() - r.acked.Load() }

// InSync tells whether all replicas have all that was written.
func (f *family) InSync() bool {
	for _, r := range f.all() {
		if f.behindBy(r) != 0 {
			return false
		}
	}
	return true
}

// Ask asks all replicas how far they are.
func (f *family) Ask() {
	if !f.s.Follows() { // a replica's stream is its primary's
		f.send(getAckCommand)
	}
}

// Send sends replicas a command that was not run here.
func (f *family) Send(args [][]byte) {
	if !f.s.Follows() {
		f.send(resp.AppendCommand(nil, args...))
	}
}

// LogLag writes in the log which replicas are behind.
func (f *family) LogLag() {
	all, lagging := f.all(), 0
	now := engine.Monotonic()
	for _, r := range all {
		behind := f.behindBy(r)
		if behind == 0 {
			continue
		}
		lagging++
		lag := int64(0)
		if r.isOnline() {
			lag = r.lagSeconds(now)
		}
		f.s.Logf('n', "Lagging replica %s reported offset %d behind master, lag=%d, state=%s.", r.name(), behind, lag, r.shown())
	}
	if len(all) > 0 {
		f.s.Logf('n', "%d of %d replicas are in sync when shutting down.", len(all)-lagging, len(all))
	}
}
