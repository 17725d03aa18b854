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
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/persistence"
)

// aheadBytesMax is how much of a snapshot may wait for a replica to take it.
const aheadBytesMax = 1 << 20

// gatherPoll is how often it is looked whether the snapshot may begin.
const gatherPoll = 20 * time.Millisecond

// askSnapshot has a replica wait for a snapshot.
func (f *family) askSnapshot(r *replica) {
	f.full.Add(1)
	f.activate()
	f.enter(r)
	if f.p.diskless.Load() && r.peer.eof && f.p.disklessDelay.Load() > 0 {
		f.s.Logf('n', "Delay next BGSAVE for diskless SYNC")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.syncing && !f.ended {
		f.syncing = true
		f.running.Add(1)
		go f.synchronise()
	}
}

// synchronise makes snapshots until nobody waits for one.
func (f *family) synchronise() {
	defer f.running.Done()
	defer f.s.Caught("a full synchronisation")
	for {
		group := f.gather()
		if group == nil {
			return
		}
		if f.p.diskless.Load() && group[0].peer.eof {
			f.sendDirectly(group)
		} else {
			f.sendByFile(group)
		}
	}
}

// gather returns those who get the next snapshot: who waits for the same as the first of them, which is sent directly only
// after a while in which others may come. It returns nil when nobody waits any more.
func (f *family) gather() []*replica {
	for {
		f.mu.Lock()
		var group []*replica
		for _, r := range f.replicas {
			if state(r.state.Load()) == waits && !r.gone.Load() && (group == nil || r.alike(group[0])) {
				group = append(group, r)
			}
		}
		if group == nil || f.ended {
			f.syncing = false
			f.mu.Unlock()
			return nil
		}
		f.mu.Unlock()
		most := f.p.disklessMaxReplicas.Load()
		direct := f.p.diskless.Load() && group[0].peer.eof
		if !direct || engine.Monotonic()-group[0].since >= f.p.disklessDelay.Load()*1e6 || most > 0 && int64(len(group)) >= most {
			return group
		}
		select {
		case <-f.stop:
		case <-time.After(gatherPoll):
		}
	}
}

// alike tells whether one snapshot is for both.
func (r *replica) alike(other *replica) bool {
	a, b := &r.peer, &other.peer
	return a.audience() == b.audience() && a.native == b.native && a.only == b.only && a.eof == b.eof && a.noKeys == b.noKeys &&
		a.noFunctions == b.noFunctions
}

// transfer is the snapshot for a group, of a place in the journal. what is what the log says begins, and begun is called
// then, for each.
func (f *family) transfer(group []*replica, what string, at *journal.LSN, begun func(r *replica)) *persistence.Transfer {
	p := &group[0].peer
	return &persistence.Transfer{
		For: p.audience(), Plain: !p.native && !p.only, NoKeys: p.noKeys, NoFunctions: p.noFunctions,
		Begin: func(c *command.Ctx) [][2]string {
			first := f.stream.Follow(nudge)
			defer first.Leave()
			f.place.Load().Reselect()
			*at = c.KS.Journal.End()
			id := f.stream.State().ID
			for _, r := range group {
				if r.gone.Load() {
					continue
				}
				if !r.peer.only {
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
			f.s.Logf('n', "%s started by pid %d", what, os.Getpid())
			selected := 0
			if l := f.follower.leader(); l != nil {
				selected = l.selected()
			}
			return facts(id, first.Pos(), selected)
		},
		Dead: func() bool { return !anyLeft(group) || f.stopping() },
	}
}

func (f *family) stopping() bool {
	select {
	case <-f.stop:
		return true
	default:
		return false
	}
}

// left is how many of a group are still there.
func left(group []*replica) (n int) {
	for _, r := range group {
		if !r.gone.Load() {
			n++
		}
	}
	return n
}

func anyLeft(group []*replica) bool { return left(group) > 0 }

var (
	errNobody  = errors.New("no replica wants it any more")
	errGivenUp = errors.New("it was given up")
)

// fan is a writer to all of a group. It goes as fast as the slowest of them, and begins when the place in the journal is
// confirmed that the snapshot is of.
type fan struct {
	f     *family
	group []*replica
	at    *journal.LSN
	of    *persistence.Transfer // nil for one that is a file by now
}

// confirmPoll is how often it is looked whether it is.
const confirmPoll = time.Millisecond

func (w fan) Write(b []byte) (int, error) {
	for w.f.s.Keyspace.Journal.Confirmed() < *w.at {
		if !anyLeft(w.group) || w.f.stopping() {
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
		case <-w.f.stop:
			return errNobody
		}
	}
	return nil
}

// sendDirectly sends a snapshot as it is made. Its end is a mark, since nobody knows before how long it will be.
func (f *family) sendDirectly(group []*replica) {
	f.s.Logf('n', "Starting BGSAVE for SYNC with target: replicas sockets")
	mark := newID()
	var at journal.LSN
	t := f.transfer(group, "Background RDB transfer", &at, func(r *replica) { r.say("$EOF:"+mark+"\r\n", true) })
	err := f.s.Persistence.Transfer(t, fan{f, group, &at, t})
	f.leftOutKeys.Add(t.LeftOut.Load())
	if err != nil {
		if !anyLeft(group) {
			f.s.Logf('n', "Diskless rdb transfer, last replica dropped, killing fork child") // Redis's words: no process is
		}
		f.failed(group, err)
		return
	}
	f.s.Logf('n', "Diskless rdb transfer, done reading from pipe, %d replicas still up.", left(group))
	f.s.Logf('n', "Background RDB transfer terminated with success")
	for _, r := range group {
		if r.gone.Load() {
			continue
		}
		r.put([]byte(mark))
		f.sentAll(r)
	}
}

// sentAll goes on with a replica that has all of its snapshot in the queue.
func (f *family) sentAll(r *replica) {
	switch {
	case r.peer.only:
		f.s.Logf('n', "RDB transfer completed, rdb only replica (%s) should be disconnected asap", r.name())
		r.state.Store(int32(leaving))
		r.wake()
	case f.p.diskless.Load() && r.peer.eof && !r.old:
		f.s.Logf('n', "Streamed RDB transfer with replica %s succeeded (socket). Waiting for REPLCONF ACK from replica to enable streaming", r.name())
		r.follow(true)
	default:
		r.follow(false)
		f.s.Logf('n', "Synchronization with replica %s succeeded", r.name())
	}
}

// failed ends the replicas of a snapshot that could not be made.
func (f *family) failed(group []*replica, err error) {
	if !f.stopping() {
		f.s.Logf('w', "the snapshot for replicas was not sent: %v", err)
	}
	for _, r := range group {
		if !r.gone.Load() {
			f.s.Kill(r.sess)
		}
	}
}

// sendByFile writes a snapshot to a file and sends that, with its length before it.
func (f *family) sendByFile(group []*replica) {
	f.s.Logf('n', "Starting BGSAVE for SYNC with target: disk")
	var at journal.LSN
	t := f.transfer(group, "Background saving", &at, func(*replica) {})
	file, size, err := f.makeFile(t)
	f.leftOutKeys.Add(t.LeftOut.Load())
	if err != nil {
		f.failed(group, err)
		return
	}
	f.s.Logf('n', "Background saving terminated with success")
	for _, r := range group {
		if !r.gone.Load() {
			r.whole.Store(true)
			r.say("$"+strconv.FormatInt(size, 10)+"\r\n", true)
		}
	}
	buf := make([]byte, 256<<10)
	out := fan{f, group, &at, nil}
	for at := int64(0); at < size && err == nil; {
		n := min(int64(len(buf)), size-at)
		if _, err = file.ReadAt(buf[:n], at); err == nil {
			_, err = out.Write(buf[:n])
		}
		at += n
	}
	_ = file.Close() // it has no name any more
	if err != nil {
		f.failed(group, err)
		return
	}
	for _, r := range group {
		if !r.gone.Load() {
			f.sentAll(r)
		}
	}
}

// makeFile writes a snapshot to a file that has no name any more, and returns it with its length.
func (f *family) makeFile(t *persistence.Transfer) (file vfs.File, size int64, err error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, 0, err
	}
	temp := filepath.Join(dir, fmt.Sprintf("temp-repl-%d.rdb", os.Getpid()))
	if file, err = f.s.FS.Create(temp); err != nil {
		return nil, 0, err
	}
	err = f.s.Persistence.Transfer(t, file)
	if err == nil {
		size, err = file.Size()
	}
	_ = f.s.FS.Remove(temp) // what is open stays
	if err != nil {
		_ = file.Close()
		return nil, 0, err
	}
	return file, size, nil
}
