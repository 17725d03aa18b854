package replication

// Following, as users see it: the parameter replicaof, and the replica's part of INFO and ROLE.

import (
	"strconv"
	"time"

	"github.com/limitkv/limitkv/replication"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/params"
)

// followParam is replicaof. CONFIG REWRITE writes it, CONFIG SET cannot change it.
func followParam(f *follower) *params.Param {
	return &params.Param{
		Name: "replicaof", Alias: "slaveof", Immutable: true, Words: true, Help: "host and port of a server to be a replica of",
		Get: func() string {
			if l := f.leader(); l != nil {
				return l.host + " " + strconv.Itoa(l.port)
			}
			return ""
		},
		Set: func(value string) error {
			host, port, err := parse(value)
			if err != nil {
				return err
			}
			c := f.s.OwnCtx()
			if host == "" {
				f.lead(c)
			} else {
				f.follow(c, host, port)
			}
			return nil
		},
	}
}

// info writes the fields of INFO that only a replica has.
func (l *leader) info(w *command.InfoWriter) {
	st := l.link.Status()
	up := "down"
	if st.State == replication.Connected {
		up = "up"
	}
	silent := int64(-1)
	if st.State == replication.Connected {
		silent = seconds(st.Silent)
	}
	w.Line("master_host", l.host)
	w.Line("master_port", l.port)
	w.Line("master_link_status", up)
	w.Line("master_last_io_seconds_ago", silent)
	w.Line("master_sync_in_progress", flag(st.State == replication.Transfer))
	offset := l.f.n.stream.Offset()
	read := offset
	if st.State == replication.Connected {
		read = max(st.Read, offset)
	}
	w.Line("slave_read_repl_offset", read)
	w.Line("slave_repl_offset", offset)
	w.Line("replica_full_sync_buffer_size", 0) // Redis buffers a stream that arrives beside the file
	w.Line("replica_full_sync_buffer_peak", 0)
	if st.State == replication.Transfer {
		size, left, percent := max(st.FileSize, 0), int64(0), 0.0
		if st.FileSize > 0 {
			left, percent = st.FileSize-st.FileRead, float64(st.FileRead)/float64(st.FileSize)*100
		}
		w.Line("master_sync_total_bytes", size)
		w.Line("master_sync_read_bytes", st.FileRead)
		w.Line("master_sync_left_bytes", left)
		w.Linef("master_sync_perc", "%.2f", percent)
		w.Line("master_sync_last_io_seconds_ago", seconds(st.Silent))
	}
	if st.State != replication.Connected {
		w.Line("master_link_down_since_seconds", seconds(st.Down))
	}
	c := l.f.s.Config
	w.Line("slave_priority", c.Value("replica-priority"))
	w.Line("slave_read_only", flag(c.Value("replica-read-only") == "yes"))
	w.Line("replica_announced", flag(c.Value("replica-announced") == "yes"))
}

// seconds returns a duration in seconds, -1 if it is negative.
func seconds(d time.Duration) int64 {
	if d < 0 {
		return -1
	}
	return int64(d / time.Second)
}

// Primary holds what ROLE reports about the primary.
type Primary struct {
	Host   string
	Port   int
	State  string // of the link
	Offset int64  // the offset of the stream, -1 while the link is down
}

// Primary returns the primary that the server follows. ok is false if it is a primary itself.
func (n *Node) Primary() (p Primary, ok bool) {
	l := n.follower.leader()
	if l == nil {
		return p, false
	}
	st := l.link.Status()
	p = Primary{l.host, l.port, st.State.String(), -1}
	if st.State == replication.Connected {
		p.Offset = n.stream.Offset()
	}
	return p, true
}

// Follow makes the server a replica of another one. The caller holds all locks.
func (n *Node) Follow(c *command.Ctx, host string, port int) { n.follower.follow(c, host, port) }

// Lead makes the server a primary, if it is a replica. The caller holds all locks.
func (n *Node) Lead(c *command.Ctx) { n.follower.lead(c) }
