package replication

// Full synchronisation: a snapshot for replicas that cannot continue from where they left off. Replicas that ask while others
// wait share one snapshot. It is taken while all keys are held, so it matches their position in the stream exactly.

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/journal"
	"github.com/limitkv/limitkv/engine/vfs"
	"github.com/limitkv/limitkv/replication"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/dumpfile"
	"github.com/limitkv/limitkv/server/persistence"
)

// aheadBytesMax is how many bytes of a snapshot may be queued for a replica.
const aheadBytesMax = 1 << 20

// gatherPoll is how often gather checks whether the snapshot may begin.
const gatherPoll = 20 * time.Millisecond

// askSnapshot queues a replica for a snapshot.
func (n *Node) askSnapshot(r *replica) {
	n.full.Add(1)
	n.activate()
	n.enter(r)
	if n.p.diskless.Load() && r.peer.EOF && n.p.disklessDelay.Load() > 0 {
		n.s.Logf('n', "Delay next BGSAVE for diskless SYNC")
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.syncing && !n.ended {
		n.syncing = true
		n.running.Add(1)
		go n.synchronise()
	}
}

// synchronise makes snapshots until no replica waits for one.
func (n *Node) synchronise() {
	defer n.running.Done()
	defer n.s.Caught("a full synchronisation")
	for {
		group := n.gather()
		if group == nil {
			return
		}
		if n.p.diskless.Load() && group[0].peer.EOF {
			n.sendDirectly(group)
		} else {
			n.sendByFile(group)
		}
	}
}

// gather returns the replicas for the next snapshot: the first one that waits, and all that want the same. Before a snapshot
// without a file it waits for more replicas (repl-diskless-sync-delay). It returns nil when no replica waits any more.
func (n *Node) gather() []*replica {
	for {
		n.mu.Lock()
		var group []*replica
		for _, r := range n.replicas {
			if state(r.state.Load()) == waits && !r.gone.Load() && (group == nil || r.alike(group[0])) {
				group = append(group, r)
			}
		}
		if group == nil || n.ended {
			n.syncing = false
			n.mu.Unlock()
			return nil
		}
		n.mu.Unlock()
		most := n.p.disklessMaxReplicas.Load()
		direct := n.p.diskless.Load() && group[0].peer.EOF
		if !direct || engine.Monotonic()-group[0].since >= n.p.disklessDelay.Load()*1e6 || most > 0 && int64(len(group)) >= most {
			return group
		}
		select {
		case <-n.stop:
		case <-time.After(gatherPoll):
		}
	}
}

// alike tells whether one snapshot fits both.
func (r *replica) alike(other *replica) bool {
	a, b := &r.peer, &other.peer
	return a.audience() == b.audience() && a.Native == b.Native && a.Only == b.Only && a.EOF == b.EOF && a.NoKeys == b.NoKeys &&
		a.NoFunctions == b.NoFunctions
}

// transfer describes the snapshot for a group. When the snapshot begins, it stores the place in the journal in at, calls begun
// for each replica, and logs what.
func (n *Node) transfer(group []*replica, what string, at *journal.LSN, begun func(r *replica)) *persistence.Transfer {
	p := &group[0].peer
	return &persistence.Transfer{
		For: p.audience(), Plain: !p.Native && !p.Only, NoKeys: p.NoKeys, NoFunctions: p.NoFunctions,
		Begin: func(c *command.Ctx) [][2]string {
			first := n.stream.Follow(nudge)
			defer first.Leave()
			selected := n.position.Reselect()
			*at = c.KS.Journal.End()
			id := n.stream.State().ID
			for _, r := range group {
				if r.gone.Load() {
					continue
				}
				if !r.peer.Only {
					r.begin(first.Same(r.more))
				}
				if r.gone.Load() {
					r.leave()
				}
				r.state.Store(int32(loads))
				if !r.old {
					r.say(fmt.Sprintf("+FULLRESYNC %s %d\r\n", id, first.Pos()), false)
				}
				begun(r)
			}
			n.s.Logf('n', "%s started by pid %d", what, os.Getpid())
			return dumpfile.Facts(replication.Place{ID: id, Offset: first.Pos(), Selected: selected})
		},
		Dead: func() bool { return !anyLeft(group) || n.stopping() },
	}
}

func (n *Node) stopping() bool {
	select {
	case <-n.stop:
		return true
	default:
		return false
	}
}

// left returns how many replicas of a group are still connected.
func left(group []*replica) (there int) {
	for _, r := range group {
		if !r.gone.Load() {
			there++
		}
	}
	return there
}

func anyLeft(group []*replica) bool { return left(group) > 0 }

var (
	errNobody  = errors.New("no replica wants it any more")
	errGivenUp = errors.New("it was given up")
)

// fan writes to all replicas of a group, as fast as the slowest of them. It begins once the snapshot's place in the journal is
// confirmed.
type fan struct {
	node  *Node
	group []*replica
	at    *journal.LSN
	of    *persistence.Transfer // nil if the snapshot is read from a file
}

// confirmPoll is how often Write checks for that.
const confirmPoll = time.Millisecond

func (w fan) Write(b []byte) (int, error) {
	for w.node.s.Keyspace.Journal.Confirmed() < *w.at {
		if !anyLeft(w.group) || w.node.stopping() {
			return 0, errNobody
		}
		time.Sleep(confirmPoll)
	}
	chunk := bytes.Clone(b)
	for _, r := range w.group {
		if !r.gone.Load() {
			r.put(chunk)
		}
	}
	for _, r := range w.group {
		if err := w.wait(r); err != nil {
			return 0, err
		}
	}
	if !anyLeft(w.group) {
		return 0, errNobody
	}
	return len(b), nil
}

// wait waits until at most aheadBytesMax of the snapshot are queued for a replica.
func (w fan) wait(r *replica) error {
	var killed <-chan struct{}
	if w.of != nil {
		killed = w.of.Killed
	}
	for !r.gone.Load() && r.behind() > aheadBytesMax {
		select {
		case <-r.room:
		case <-killed:
			return errGivenUp
		case <-w.node.stop:
			return errNobody
		}
	}
	return nil
}

// sendDirectly sends a snapshot while it is made. It ends with a mark, as its length is not known before.
func (n *Node) sendDirectly(group []*replica) {
	n.s.Logf('n', "Starting BGSAVE for SYNC with target: replicas sockets")
	mark := newID()
	var at journal.LSN
	t := n.transfer(group, "Background RDB transfer", &at, func(r *replica) { r.say("$EOF:"+mark+"\r\n", true) })
	err := n.files.Transfer(t, fan{n, group, &at, t})
	n.leftOutKeys.Add(t.LeftOut.Load())
	if err != nil {
		if !anyLeft(group) {
			n.s.Logf('n', "Diskless rdb transfer, last replica dropped, killing fork child") // Redis's words; there is no process here
		}
		n.failed(group, err)
		return
	}
	n.s.Logf('n', "Diskless rdb transfer, done reading from pipe, %d replicas still up.", left(group))
	n.s.Logf('n', "Background RDB transfer terminated with success")
	for _, r := range group {
		if r.gone.Load() {
			continue
		}
		r.put([]byte(mark))
		n.sentAll(r)
	}
}

// sentAll continues with a replica whose whole snapshot is in the queue.
func (n *Node) sentAll(r *replica) {
	switch {
	case r.peer.Only:
		n.s.Logf('n', "RDB transfer completed, rdb only replica (%s) should be disconnected asap", r.name())
		r.state.Store(int32(leaving))
		r.wake()
	case n.p.diskless.Load() && r.peer.EOF && !r.old:
		n.s.Logf('n', "Streamed RDB transfer with replica %s succeeded (socket). Waiting for REPLCONF ACK from replica to enable streaming", r.name())
		r.follow(true)
	default:
		r.follow(false)
		n.s.Logf('n', "Synchronization with replica %s succeeded", r.name())
	}
}

// failed disconnects the replicas whose snapshot failed.
func (n *Node) failed(group []*replica, err error) {
	if !n.stopping() {
		n.s.Logf('w', "the snapshot for replicas was not sent: %v", err)
	}
	for _, r := range group {
		if !r.gone.Load() {
			n.s.Kill(r.sess)
		}
	}
}

// sendByFile writes a snapshot to a file, and sends its length and the file.
func (n *Node) sendByFile(group []*replica) {
	n.s.Logf('n', "Starting BGSAVE for SYNC with target: disk")
	var at journal.LSN
	t := n.transfer(group, "Background saving", &at, func(*replica) {})
	file, size, err := n.makeFile(t)
	n.leftOutKeys.Add(t.LeftOut.Load())
	if err != nil {
		n.failed(group, err)
		return
	}
	n.s.Logf('n', "Background saving terminated with success")
	for _, r := range group {
		if !r.gone.Load() {
			r.whole.Store(true)
			r.say("$"+strconv.FormatInt(size, 10)+"\r\n", true)
		}
	}
	buf := make([]byte, 256<<10)
	out := fan{n, group, &at, nil}
	for at := int64(0); at < size && err == nil; {
		some := min(int64(len(buf)), size-at)
		if _, err = file.ReadAt(buf[:some], at); err == nil {
			_, err = out.Write(buf[:some])
		}
		at += some
	}
	_ = file.Close() // the file was unlinked before
	if err != nil {
		n.failed(group, err)
		return
	}
	for _, r := range group {
		if !r.gone.Load() {
			n.sentAll(r)
		}
	}
}

// makeFile writes a snapshot to an unlinked file, and returns it with its length.
func (n *Node) makeFile(t *persistence.Transfer) (file vfs.File, size int64, err error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, 0, err
	}
	temp := filepath.Join(dir, fmt.Sprintf("temp-repl-%d.rdb", os.Getpid()))
	if file, err = n.s.FS.Create(temp); err != nil {
		return nil, 0, err
	}
	err = n.files.Transfer(t, file)
	if err == nil {
		size, err = file.Size()
	}
	_ = n.s.FS.Remove(temp) // the open file stays
	if err != nil {
		_ = file.Close()
		return nil, 0, err
	}
	return file, size, nil
}
