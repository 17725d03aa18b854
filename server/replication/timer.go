package replication

// The timer: pings, time-outs of silent replicas, and the end of an unused backlog.

import (
	"time"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/journal"
)

// tickEvery is how often a failover and the limits of output buffers are checked. All else happens every second.
const (
	tickEvery      = 100 * time.Millisecond
	ticksPerSecond = int(time.Second / tickEvery)
)

func (n *Node) tick() {
	defer n.running.Done()
	defer n.s.Caught("the timer of replication")
	t := time.NewTicker(tickEvery)
	defer t.Stop()
	for ticks := 1; ; ticks++ {
		select {
		case <-n.stop:
			return
		case <-t.C:
		}
		n.lookFailover()
		replicas := n.all()
		for _, r := range replicas {
			if r.Unsent() > 0 {
				r.wake() // its connection checks the limits
			}
		}
		if ticks%ticksPerSecond == 0 {
			n.everySecond(replicas)
		}
	}
}

func (n *Node) everySecond(replicas []*replica) {
	now := engine.Monotonic()
	if offset := n.stream.Offset(); offset != n.lastOffset {
		n.lastOffset, n.lastSent = offset, now
	}
	if len(replicas) > 0 && !n.s.Follows() && !n.FailingOver() && now-n.lastSent >= n.p.pingPeriod.Load()*1e6-1e5 {
		n.send(pingCommand)
		n.lastOffset, n.lastSent = n.stream.Offset(), now // or the ping would count as data a second later, and delay the next
	}
	timeout := n.p.timeout.Load() * 1e6
	for _, r := range replicas {
		switch s := state(r.state.Load()); {
		case s == waits, s == loads && r.behind() == 0:
			r.keepAlive()
		case s == online && !r.old && now-r.heard.Load() > timeout:
			n.s.Logf('w', "Disconnecting timedout replica (streaming sync): %s", r.name())
			n.s.Kill(r.sess)
		case s == loads && r.behind() > 0 && now-r.moved.Load() > timeout:
			n.s.Logf('w', "Disconnecting timedout replica (full sync): %s", r.name())
			n.s.Kill(r.sess)
		}
	}
	n.countGood()
	n.mu.Lock()
	idle := now - n.noneSince
	n.mu.Unlock()
	if ttl := n.p.backlogTTL.Load(); len(replicas) == 0 && !n.s.Follows() && ttl > 0 && idle/1e6 >= ttl && n.stream.State().Active {
		n.forget(ttl)
	}
}

// forget frees the backlog.
func (n *Node) forget(ttl int64) {
	if !n.position.End() {
		return // a replica has connected meanwhile
	}
	n.s.Logf('n', "Replication backlog freed after %d seconds without connected replicas.", ttl)
}

var (
	pingCommand   = []byte("*1\r\n$4\r\nPING\r\n")
	getAckCommand = []byte("*3\r\n$8\r\nREPLCONF\r\n$6\r\nGETACK\r\n$1\r\n*\r\n")
)

// send sends all replicas a command that changes no keys.
func (n *Node) send(cmd []byte) {
	n.s.Keyspace.Journal.Append(&journal.Batch{
		NowMicros: n.s.Keyspace.Clock.Now(), NoMulti: true, RESP: cmd,
		Effects: []journal.Effect{{DB: journal.AnyDB, End: len(cmd), ReplicasOnly: true}},
	})
}
