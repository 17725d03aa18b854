package replication

// What is asked and said of following: REPLICAOF, the parameter replicaof, and what INFO and ROLE tell of a replica.

import (
	"strconv"
	"time"

	"github.com/limitkv/limitkv/replication"
	"github.com/limitkv/limitkv/resp/number"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/params"
)

// followParam is replicaof, which CONFIG REWRITE writes and CONFIG SET does not change.
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

func (f *follower) rows() []*command.Command {
	follow := func(name, since string) *command.Command {
		return &command.Command{
			Name: name, Arity: 3, Group: command.GroupServer, Since: since,
			Flags:      command.NoAsyncLoading | command.Admin | command.NoScript | command.Stale | command.WholeKeyspace,
			Summary:    "Makes the server a replica of another one, or a primary.",
			Complexity: "O(1)",
			Syntax:     "args=(host-port={host:string port:integer} | no-one={NO ONE})",
			Run:        f.replicaOf,
		}
	}
	slaveof := follow("slaveof", "1.0.0")
	slaveof.DeprecatedSince, slaveof.ReplacedBy = "5.0.0", "REPLICAOF"
	return []*command.Command{follow("replicaof", "5.0.0"), slaveof}
}

func (f *follower) replicaOf(c *command.Ctx) {
	a := c.Cursor(1)
	switch {
	case f.s.Cluster:
		c.Error("ERR REPLICAOF not allowed in cluster mode.")
		return
	case f.failing():
		c.Error("ERR REPLICAOF not allowed while failing over.")
		return
	case f.s.Loading.On():
		c.Error(command.ErrLoading)
		return
	case a.Is("NO") && a.Is("ONE"):
		if f.leader() != nil {
			f.lead(c)
			f.s.Logf('n', "MASTER MODE enabled (user request from '%s')", c.Session.Line(c))
		}
		c.OK()
		return
	}
	if replicaOf(c.Session) != nil { // the change ends the connections of all replicas
		c.Error("ERR Command is not valid when client is a replica.")
		return
	}
	n, ok := number.ParseInt(c.Args[2])
	if !ok || n < 0 || n > 65535 {
		c.Error("ERR Invalid master port")
		return
	}
	host, port := string(c.Args[1]), int(n)
	if l := f.leader(); l != nil && l.port == port && command.EqualFold(c.Args[1], l.host) {
		f.s.Logf('n', "REPLICAOF would result into synchronization with the master we are already connected with. No operation performed.")
		c.Status("OK Already connected to specified master")
		return
	}
	f.follow(c, host, port)
	f.s.Logf('n', "REPLICAOF %s:%d enabled (user request from '%s')", host, port, c.Session.Line(c))
	c.OK()
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
	offset := l.f.stream.Offset()
	read := offset
	if st.State == replication.Connected {
		read = max(st.Read, offset)
	}
	w.Line("slave_read_repl_offset", read)
	w.Line("slave_repl_offset", offset)
	w.Line("replica_full_sync_buffer_size", 0) // of what Redis keeps of a stream that comes beside the file
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

// seconds are those of a duration, -1 for none.
func seconds(d time.Duration) int64 {
	if d < 0 {
		return -1
	}
	return int64(d / time.Second)
}

// role replies ROLE of a replica.
func (l *leader) role(c *command.Ctx) {
	st := l.link.Status()
	c.Array(5)
	c.BulkString("slave")
	c.BulkString(l.host)
	c.Int(int64(l.port))
	c.BulkString(st.State.String())
	offset := int64(-1)
	if st.State == replication.Connected {
		offset = l.f.stream.Offset()
	}
	c.Int(offset)
}
