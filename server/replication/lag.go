package replication

// How far replicas are behind when the server ends.

import (
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/resp"
)

// behindBy returns how many bytes of the stream a replica has not acknowledged.
func (n *Node) behindBy(r *replica) int64 { return n.Offset() - r.acked.Load() }

// InSync tells whether all replicas have acknowledged the whole stream.
func (n *Node) InSync() bool {
	for _, r := range n.all() {
		if n.behindBy(r) != 0 {
			return false
		}
	}
	return true
}

// Ask asks all replicas for an acknowledgement.
func (n *Node) Ask() {
	if !n.s.Follows() { // the stream of a replica is its primary's
		n.send(getAckCommand)
	}
}

// Send sends replicas a command that did not run here.
func (n *Node) Send(args [][]byte) {
	if !n.s.Follows() {
		n.send(resp.AppendCommand(nil, args...))
	}
}

// LogLag logs which replicas are behind.
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
