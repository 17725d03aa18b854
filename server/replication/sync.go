package replication

// Full synchronisation: a snapshot for those who cannot go on where they left off. Replicas that come while others wait
// share one. The moment that it is of and their place in the stream are the same, since all keys are held then.

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

// aheadBytesMax is how much of a snapshot may wait for a replica to take it.
const aheadBytesMax = 1 << 20

// gatherPoll is how often it is looked whether the snapshot may begin.
const gatherPoll = 20 * time.Millisecond

// askSnapshot has a replica wait for a snapshot.
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

// synchronise makes snapshots until nobody waits for one.
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

// gather returns those who get the next snapshot: who waits for the same as the first of them, which is sent directly only
// after a while in which others may come. It returns nil when nobody waits any more.
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

// alike tells whether one snapshot is for both.
func (r *replica) alike(other *replica) bool {
	a, b := &r.peer, &other.peer
	return a.audience() == b.audience() && a.Native == b.Native && a.Only == b.Only && a.EOF == b.EOF && a.NoKeys == b.NoKeys &&
		a.NoFunctions == b.NoFunctions
}

// transfer is the snapshot for a group, of a place in the journal. what is what the log says begins, and begun is called
// then, for each.
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

// left is how many of a group are still there.
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

// fan is a writer to all of a group. It goes as fast as the slowest of them, and begins when the place in the journal is
// confirmed that the snapshot is of.
type fan struct {
	node  *Node
	group []*replica
	at    *journal.LSN
	of    *persistence.Transfer // nil for one that is a file by now
}

// confirmPoll is how often it is looked whether it is.
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

// wait waits until a replica has taken what there is of its snapshot, but for some.
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

// sendDirectly sends a snapshot as it is made. Its end is a mark, since nobody knows before how long it will be.
func (n *Node) sendDirectly(group []*replica) {
	n.s.Logf('n', "Starting BGSAVE for SYNC with target: replicas sockets")
	mark := newID()
	var at journal.LSN
	t := n.transfer(group, "Background RDB transfer", &at, func(r *replica) { r.say("$EOF:"+mark+"\r\n", true) })
	err := n.files.Transfer(t, fan{n, group, &at, t})
	n.leftOutKeys.Add(t.LeftOut.Load())
	if err != nil {
		if !anyLeft(group) {
			n.s.Logf('n', "Diskless rdb transfer, last replica dropped, killing fork child") // Redis's words: no process is
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

// sentAll goes on with a replica that has all of its snapshot in the queue.
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

// failed ends the replicas of a snapshot that could not be made.
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

// sendByFile writes a snapshot to a file and sends that, with its length before it.
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
	_ = file.Close() // it has no name any more
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

// makeFile writes a snapshot to a file that has no name any more, and returns it with its length.
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
	_ = n.s.FS.Remove(temp) // what is open stays
	if err != nil {
		_ = file.Close()
		return nil, 0, err
	}
	return file, size, nil
}
