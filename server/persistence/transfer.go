package persistence

// Snapshots that are made in the background and sent to replicas instead of a file.

import (
	"io"
	"sync/atomic"
	"time"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/rdb"
	"github.com/limitkv/limitkv/server/command"
)

// transferPoll is how often a snapshot for replicas checks whether another one has ended. It is also how often a delay for
// tests checks whether the snapshot is still wanted.
const transferPoll = 5 * time.Millisecond

// Transfer is a snapshot that is sent to replicas.
type Transfer struct {
	For rdb.Audience
	// Plain leaves out the keys whose types only limitkv has; LeftOut counts them.
	Plain   bool
	LeftOut atomic.Int64
	// NoKeys and NoFunctions leave these out.
	NoKeys, NoFunctions bool
	// Begin is called at the moment of the cut, while all locks are held, and returns more fields for the file's header.
	Begin func(c *command.Ctx) (facts [][2]string)
	// Dead tells whether nobody wants it any more.
	Dead func() bool
	// Killed is set before Begin is called. It is closed when the snapshot is aborted: FLUSHALL has made it worthless, or the
	// server ends.
	Killed <-chan struct{}
}

// Transfer writes a snapshot for replicas once no other is being written, and returns after that. It is called on its own
// goroutine.
func (f *Files) Transfer(t *Transfer, to io.Writer) error {
	for !f.claim() {
		if t.Dead() {
			return errKilled
		}
		select {
		case <-f.stop:
			return errKilled
		case <-time.After(transferPoll):
		}
	}
	st := &f.status
	p := &snapshotWriter{f: f, transfer: t, killed: make(chan struct{})}
	t.Killed = p.killed
	_ = f.held(func(c *command.Ctx) error {
		p.now, p.format = c.Now, f.dumps.FileFormat()
		p.format.For = t.For
		if !t.NoFunctions {
			p.libraries = f.s.Functions.Libraries(c.KS)
		}
		p.facts = t.Begin(c)
		st.saveBegan.Store(c.Now)
		p.cutOff(c)
		f.mu.Lock()
		f.current = p
		f.mu.Unlock()
		return nil
	})
	err := f.quietly(func() error { return p.write(to) })
	p.ended(err)
	st.saveBegan.Store(0)
	f.mu.Lock()
	f.saving, f.current = false, nil
	f.mu.Unlock()
	return err
}

// SlowLoad waits for the extra time of loading so many keys (key-load-delay), while they are wanted.
func (f *Files) SlowLoad(keys int, unwanted func() error) { f.slower(f.p.loadDelay, keys, unwanted) }

// claim reserves the only slot for a snapshot. The end of the server does not wait for a snapshot for replicas, which may read
// slowly; that one ends with their connections. It reports false while another one runs.
func (f *Files) claim() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.saving || f.rewriting {
		return false
	}
	f.saving = true
	return true
}

// leavesOut tells whether an entry is not for the replicas of this snapshot, and counts those whose type they do not know.
func (p *snapshotWriter) leavesOut(e engine.Entry) bool {
	out := p.excludes(e)
	if out && !p.transfer.NoKeys {
		p.transfer.LeftOut.Add(1)
	}
	return out
}

// excludes tells whether an entry is not for the replicas of this snapshot.
func (p *snapshotWriter) excludes(e engine.Entry) bool {
	t := p.transfer
	return t != nil && (t.NoKeys || t.Plain && !e.Kind().Plain())
}
