package faults

// LKV.LOG: the commands that clients sent, for tests to inspect.

import (
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/server/command"
)

// The log has the newest commands, within both limits.
const (
	logCommandsMax = 100_000
	logBytesMax    = 64 << 20
)

// log holds the commands received while it was on.
type log struct {
	on      bool
	entries []Received // a queue, the oldest first
	first   int
	bytes   int
	dropped int64
}

// Received is a command as a client sent it.
type Received struct {
	Micros int64
	Client int64
	DB     int
	Args   [][]byte
	bytes  int
}

// entryBytes is the size of an entry without arguments, argBytes that of an argument without its bytes.
const (
	entryBytes = 72
	argBytes   = 32
)

// add logs the context's command, without its secrets.
func (l *log) add(c *command.Ctx) {
	r := Received{Micros: c.Now, Client: c.Session.ID, DB: c.DB, Args: command.Clone(c.Args), bytes: entryBytes}
	for i, a := range r.Args {
		if c.Cmd != nil && c.Cmd.Secret != nil && c.Cmd.Secret(c.Args, i) {
			r.Args[i] = []byte("(redacted)")
		}
		r.bytes += len(a) + argBytes
	}
	l.entries = append(l.entries, r)
	l.bytes += r.bytes
	for len(l.entries)-l.first > logCommandsMax || l.bytes > logBytesMax {
		l.bytes -= l.entries[l.first].bytes
		l.entries[l.first] = Received{}
		l.first++
		l.dropped++
	}
	if l.first > 1000 && l.first > len(l.entries)/2 {
		l.entries = append([]Received(nil), l.entries[l.first:]...)
		l.first = 0
	}
}

// Log turns the log on or off, and keeps its entries.
func (in *Injector) Log(ks *engine.Keyspace, on bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.places.Of(ks).log.on = on
	in.arm()
}

// ResetLog empties the log and returns how many commands it had, with those that were dropped.
func (in *Injector) ResetLog(ks *engine.Keyspace) int64 {
	in.mu.Lock()
	defer in.mu.Unlock()
	kept := &in.places.Of(ks).log
	n := int64(len(kept.entries)-kept.first) + kept.dropped
	*kept = log{on: kept.on}
	return n
}

// Logged returns commands from the log, the oldest first: at most so many unless most is negative, of one client unless client
// is negative, and those that match a pattern unless it is nil.
func (in *Injector) Logged(ks *engine.Keyspace, pattern []byte, client, most int64) (list []Received) {
	in.mu.Lock()
	defer in.mu.Unlock()
	kept := &in.places.Of(ks).log
	for _, r := range kept.entries[kept.first:] {
		if int64(len(list)) == most {
			break
		}
		if client >= 0 && r.Client != client {
			continue
		}
		if pattern != nil {
			cmd, known := in.s.Table.Resolve(r.Args)
			if !known {
				cmd = nil
			}
			if !matches(pattern, r.Args, cmd) {
				continue
			}
		}
		list = append(list, r)
	}
	return list
}
