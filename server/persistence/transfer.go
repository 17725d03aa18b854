package persistence

// Snapshots for replicas: one that is made in the background, and goes to them instead of into a file of its own.

import (
	"io"
	"sync/atomic"
	"time"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/rdb"
	"github.com/limitkv/limitkv/server/command"
)

// transferPoll is how often it is looked whether another snapshot has ended, for which one for replicas waits, and while
// tests slow one down, whether somebody wants it.
const transferPoll = 5 * time.Millisecond

// Transfer is a snapshot that is sent to replicas.
type Transfer struct {
	For rdb.Audience
	// Plain leaves out the keys of types that limitkv alone has, which LeftOut then counts.
	Plain   bool
	LeftOut atomic.Int64
	// NoKeys and NoFunctions leave these out.
	NoKeys, NoFunctions bool
	// Begin is called at the moment that the snapshot is of, all keys being held, and returns more of what the file says of
	// itself.
	Begin func(c *command.Ctx) (facts [][2]string)
	// Dead tells whether nobody wants it any more.
	Dead func() bool
	// Killed is set before Begin is called, and closed when the snapshot is given up: FLUSHALL has made it worthless, or the
	// server ends.
	Killed <-chan struct{}
}

// Transfer writes a snapshot for replicas, as soon as no other is being written, and returns when it is written. It is called
// on a goroutine of its own.
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

// SlowLoad waits for as long as loading so many keys is to take more (key-load-delay), while they are wanted.
func (f *Files) SlowLoad(keys int, unwanted func() error) { f.slower(f.p.loadDelay, keys, unwanted) }

// claim takes the place of the one snapshot that can be made at a time. Who ends the server does not wait for one that is for
// replicas, which may be slow to take it: it ends with their connections. It reports false while there is another.
func (f *Files) claim() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.saving || f.rewriting {
		return false
	}
	f.saving = true
	return true
}

// leavesOut tells whether an entry is not for the replicas that the snapshot is for, and counts those that are of a type
// that they do not know.
func (p *snapshotWriter) leavesOut(e engine.Entry) bool {
	out := p.excludes(e)
	if out && !p.transfer.NoKeys {
		p.transfer.LeftOut.Add(1)
	}
	return out
}

// excludes tells whether an entry is not for the replicas that the snapshot is for.
func (p *snapshotWriter) excludes(e engine.Entry) bool {
	t := p.transfer
	return t != nil && (t.NoKeys || t.Plain && !e.Kind().Plain())
}
