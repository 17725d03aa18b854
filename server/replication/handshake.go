package replication

// Where in the stream a new replica begins.

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/limitkv/limitkv/replication"
	"github.com/limitkv/limitkv/server/command"
)

// Acknowledged notes the offset that a replica has applied, and the offset that it has on disk. Only the session's goroutine
// calls it.
func (n *Node) Acknowledged(sess *command.Session, offset, synced int64) {
	r := replicaOf(sess)
	if r == nil {
		return
	}
	r.acknowledged(offset, synced)
	n.countGood()
	n.Look()
}

// Name is the replica's name in the log.
func (p *Peer) Name(sess *command.Session) string {
	if p.Port == 0 {
		return fmt.Sprintf("client id #%d", sess.ID)
	}
	ip := p.IP
	if ip == "" {
		ip = sess.Conn.Remote().Addr().Unmap().String()
	}
	return ip + ":" + strconv.FormatInt(p.Port, 10)
}

// PrimaryDown tells whether the server has a primary but no connection to it.
func (n *Node) PrimaryDown() bool { return n.follower.down() }

// Continue makes a session a replica that has the stream with this ID up to an offset. It continues there if it can, and gets
// a snapshot otherwise.
func (n *Node) Continue(sess *command.Session, id string, from int64) {
	p := PeerOf(sess)
	name := p.Name(sess)
	r := n.newReplica(sess, *p)
	cursor, why := n.stream.FollowFrom(id, from, r.more)
	if cursor == nil {
		n.logRefusal(id, from, name, why)
		if !strings.HasPrefix(id, "?") {
			n.refused.Add(1)
		}
		n.askSnapshot(r)
		return
	}
	n.partial.Add(1)
	n.activate()
	r.head = []byte("+CONTINUE\r\n")
	if p.PSYNC2 {
		r.head = []byte("+CONTINUE " + n.stream.State().ID + "\r\n")
	}
	n.s.Logf('n', "Partial resynchronization request from %s accepted. Sending %d bytes of backlog starting from offset %d.", name, cursor.Lag(), from)
	r.begin(cursor)
	r.state.Store(int32(online))
	n.enter(r)
}

func (n *Node) logRefusal(id string, from int64, name string, why replication.Refusal) {
	st := n.stream.State()
	switch {
	case strings.HasPrefix(id, "?"):
		n.s.Logf('n', "Full resync requested by replica %s", name)
	case why == replication.OtherID:
		n.s.Logf('n', "Partial resynchronization not accepted: Replication ID mismatch (Replica asked for '%s', my replication IDs are '%s' and '%s')", id, st.ID, st.ID2)
	case why == replication.SecondPassed:
		n.s.Logf('n', "Partial resynchronization not accepted: Requested offset for second ID was %d, but I can reply up to %d", from, st.Second)
	default:
		n.s.Logf('n', "Unable to partial resync with replica %s for lack of backlog (Replica request was: %d).", name, from)
		if from > st.Offset {
			n.s.Logf('w', "Warning: replica %s tried to PSYNC with an offset that is greater than the master replication offset.", name)
		}
	}
}

// Sync makes a session a replica that gets a snapshot and acknowledges nothing: an old replica, or a program that fetches a
// snapshot.
func (n *Node) Sync(sess *command.Session) {
	r := n.newReplica(sess, *PeerOf(sess))
	r.old = true
	n.askSnapshot(r)
}

// native tells whether only limitkv knows a command: its name has a dot, or it restores a value of a type that Redis does not
// have.
func native(cmd []byte) bool {
	name, rest := replication.Word(cmd, true)
	if bytes.IndexByte(name, '.') >= 0 {
		return true
	}
	if len(name) < len("RESTORE") || !command.EqualFold(name[:len("RESTORE")], "RESTORE") { // or RESTORE-ASKING
		return false
	}
	var payload []byte
	for range 3 {
		payload, rest = replication.Word(rest, false)
	}
	return len(payload) > 0 && payload[0] == moduleType
}

// moduleType is the first byte of a payload with a module's value. limitkv's own types look like module types to Redis.
const moduleType = 7
