package replication

// What the time brings: pings, those who are silent for too long, and a backlog that nobody needs.

import (
	"time"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/journal"
)

// tickEvery is how often it is looked who is behind by too much; the rest is done every second.
const (
	tickEvery      = 100 * time.Millisecond
	ticksPerSecond = int(time.Second / tickEvery)
)

func (f *family) tick() {
	defer f.running.Done()
	defer f.s.Caught("the timer of replication")
	t := time.NewTicker(tickEvery)
	defer t.Stop()
	for n := 1; ; n++ {
		select {
		case <-f.stop:
			return
		case <-t.C:
		}
		f.lookFailover()
		replicas := f.all()
		for _, r := range replicas {
			if r.Unsent() > 0 {
				r.wake() // it looks whether it is over a limit
			}
		}
		if n%ticksPerSecond == 0 {
			f.everySecond(replicas)
		}
	}
}

func (f *family) everySecond(replicas []*replica) {
	now := engine.Monotonic()
	if offset := f.stream.Offset(); offset != f.lastOffset {
		f.lastOffset, f.lastSent = offset, now
	}
	if len(replicas) > 0 && !f.s.Follows() && !f.failingOver() && now-f.lastSent >= f.p.pingPeriod.Load()*1e6-1e5 {
		f.send(pingCommand)
		f.lastOffset, f.lastSent = f.stream.Offset(), now // or it would be seen a second later, and the next ping be late
	}
	timeout := f.p.timeout.Load() * 1e6
	for _, r := range replicas {
		switch s := state(r.state.Load()); {
		case s == waits, s == loads && r.behind() == 0:
			r.keepAlive()
		case s == online && !r.old && now-r.heard.Load() > timeout:
			f.s.Logf('w', "Disconnecting timedout replica (streaming sync): %s", r.name())
			f.s.Kill(r.sess)
		case s == loads && r.behind() > 0 && now-r.moved.Load() > timeout:
			f.s.Logf('w', "Disconnecting timedout replica (full sync): %s", r.name())
			f.s.Kill(r.sess)
		}
	}
	f.countGood()
	f.mu.Lock()
	idle := now - f.noneSince
	f.mu.Unlock()
	if ttl := f.p.backlogTTL.Load(); len(replicas) == 0 && !f.s.Follows() && ttl > 0 && idle/1e6 >= ttl && f.stream.State().Active {
		f.forget(ttl)
	}
}

// forget lets the backlog go.
func (f *family) forget(ttl int64) {
	f.leading.Lock()
	defer f.leading.Unlock()
	if !f.stream.End() {
		return // somebody came meanwhile
	}
	f.place.Load().Leave()
	f.s.Logf('n', "Replication backlog freed after %d seconds without connected replicas.", ttl)
}

var (
	pingCommand   = []byte("*1\r\n$4\r\nPING\r\n")
	getAckCommand = []byte("*3\r\n$8\r\nREPLCONF\r\n$6\r\nGETACK\r\n$1\r\n*\r\n")
)

// send sends all replicas a command that changes nothing.
func (f *family) send(cmd []byte) {
	f.s.Keyspace.Journal.Append(&journal.Batch{
		NowMicros: f.s.Keyspace.Clock.Now(), NoMulti: true, RESP: cmd,
		Effects: []journal.Effect{{DB: journal.AnyDB, End: len(cmd), ReplicasOnly: true}},
	})
}
