package replication

// How far replicas are behind when the server is to end.

import (
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/resp"
)

// behindBy is of how many bytes a replica has not said that it has them.
func (n *Node) behindBy(r *replica) int64 { return n.Offset() - r.acked.Load() }

// InSync tells whether all replicas have all that was written.
func (n *Node) InSync() bool {
	for _, r := range n.all() {
		if n.behindBy(r) != 0 {
			return false
		}
	}
	return true
}

// Ask asks all replicas how far they are.
func (n *Node) Ask() {
	if !n.s.Follows() { // a replica's stream is its primary's
		n.send(getAckCommand)
	}
}

// Send sends replicas a command that was not run here.
func (n *Node) Send(args [][]byte) {
	if !n.s.Follows() {
		n.send(resp.AppendCommand(nil, args...))
	}
}

// LogLag writes in the log which replicas are behind.
func (n *Node) LogLag() {
	all, lagging := n.all(), 0
	now := engine.Monotonic()
	for _, r := range all {
		behind := n.behindBy(r)
		if behind == 0 {
			continue
		}
		lagging++
		lag := int64(0)
		if r.isOnline() {
			lag = r.lagSeconds(now)
		}
		n.s.Logf('n', "Lagging replica %s reported offset %d behind master, lag=%d, state=%s.", r.name(), behind, lag, r.shown())
	}
	if len(all) > 0 {
		n.s.Logf('n', "%d of %d replicas are in sync when shutting down.", len(all)-lagging, len(all))
	}
}
