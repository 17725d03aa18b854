// Package info, internal to the server, is the family of INFO: the sections and fields that people, clients and
// redis_exporter read, with Redis's names. A field of Redis that has no equivalent here is left out, unless tools need it;
// then it is 0.
package info

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"sort"
	"strconv"
	"sync"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/server"
	"github.com/limitkv/limitkv/server/command"
)

type family struct {
	s     *server.Server
	rates rates
}

// Values that do not change while the server runs, and need a system call: the names of the system and of the program.
var (
	nameOnce       = sync.OnceValue(systemName)
	executableOnce = sync.OnceValue(func() string {
		path, _ := os.Executable() // empty if it is unknown
		return path
	})
)

// Commands are the rows of the family.
func Commands(s *server.Server) []*command.Command {
	f := &family{s: s}
	f.addInfo()
	return []*command.Command{f.infoRow(), f.lolwutRow(), timeRow}
}

var timeRow = &command.Command{
	Name: "time", Arity: 1, Group: command.GroupServer, Since: "2.6.0",
	Flags:      command.Loading | command.Stale | command.Fast,
	Summary:    "The server's time: Unix seconds, and microseconds of the second.",
	Complexity: "O(1)",
	Tips:       []string{"nondeterministic_output"},
	Run: func(c *command.Ctx) {
		c.Array(2)
		c.BulkString(strconv.FormatInt(c.Now/1e6, 10))
		c.BulkString(strconv.FormatInt(c.Now%1e6, 10))
	},
}

func (f *family) infoRow() *command.Command {
	return &command.Command{
		Name: "info", Arity: -1, Group: command.GroupServer, Since: "1.0.0",
		Flags:      command.Loading | command.Stale | command.TakesTime,
		ACL:        []string{"dangerous"},
		Summary:    "Reports the state and the statistics of the server.",
		Complexity: "O(1)",
		Tips:       []string{"nondeterministic_output", "request_policy:all_shards", "response_policy:special"},
		Syntax:     "[section:string...]",
		History:    [][2]string{{"7.0.0", "Several sections in one call."}},
		Plan:       f.infoPlan,
		Run:        f.infoCommand,
	}
}

// asked lists the sections that an INFO asks for, each once, in their order.
func (f *family) asked(args [][]byte) (list []*command.InfoSection) {
	var names []string
	all, defaults := false, len(args) == 1
	for _, arg := range args[1:] {
		switch name := command.Lower(arg); name {
		case "all", "everything":
			all = true
		case "default":
			defaults = true
		default:
			names = append(names, name)
		}
	}
	for i := range f.s.Info {
		if s := &f.s.Info[i]; all || defaults && s.Default || slices.Contains(names, s.Name) {
			list = append(list, s)
		}
	}
	return list
}

// infoPlan locks all shards in EXEC, as scripts do. Elsewhere INFO adds counters up shard by shard and locks one at a time,
// so that nobody waits for it.
func (f *family) infoPlan(c *command.Ctx, set *engine.LockSet) (long bool) {
	if c.Session.Multi.Active {
		set.AddAll()
	}
	return false
}

func (f *family) infoCommand(c *command.Ctx) {
	f.s.Keyspace.Dirty.Add(c.Worker.Changes) // of the commands before this one
	c.Worker.Changes = 0
	sections := f.asked(c.Args)
	w := command.InfoWriter{View: &c.View, Sizes: slices.ContainsFunc(sections, func(s *command.InfoSection) bool { return s.Sizes })}
	mark := c.Writer.Mark()
	w.Into(c.Buf)
	for _, s := range sections {
		s.Write(&w)
	}
	c.Buf = w.Text()
	c.MakeVerbatim(mark, "txt")
}

// addInfo adds the sections that no other family adds.
func (f *family) addInfo() {
	for _, section := range []command.InfoSection{
		{Name: "server", Default: true, Write: f.infoServer},
		{Name: "clients", Default: true, Write: f.infoClients},
		{Name: "threads", Default: true, Write: f.infoThreads},
		{Name: "stats", Default: true, Write: f.infoStats},
		{Name: "cpu", Default: true, Write: infoCPU},
		{Name: "modules", Default: true, Write: func(w *command.InfoWriter) { w.Section("Modules") }},
		{Name: "commandstats", Write: f.infoCommandStats},
		{Name: "errorstats", Default: true, Write: f.infoErrorStats},
		{Name: "cluster", Default: true, Write: func(w *command.InfoWriter) {
			w.Section("Cluster")
			w.Line("cluster_enabled", boolean(f.s.Cluster))
		}},
		{Name: "keyspace", Default: true, Write: f.infoKeyspace},
		{Name: "keysizes", Default: true, Sizes: true, Write: f.infoKeysizes},
		{Name: "limitkv", Default: true, Write: func(w *command.InfoWriter) {
			w.Section("Limitkv")
			for _, part := range f.s.OwnInfo {
				part(w)
			}
			f.s.Replication.OwnInfo(w)
		}},
	} {
		f.s.AddInfo(section)
	}
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (f *family) infoServer(w *command.InfoWriter) {
	now := f.s.Keyspace.Clock.Now()
	up := (now - f.s.StartedAt) / 1e6
	w.Section("Server")
	w.Line("redis_version", command.RedisVersion)
	w.Line("redis_git_sha1", "00000000")
	w.Line("redis_git_dirty", 0)
	w.Line("redis_build_id", f.s.BuildID)
	w.Line("redis_mode", f.s.Mode())
	w.Line("limitkv_version", f.s.Version)
	w.Line("os", nameOnce())
	w.Line("arch_bits", strconv.IntSize)
	w.Line("monotonic_clock", "POSIX clock_gettime")
	w.Line("multiplexing_api", multiplexing)
	w.Line("atomicvar_api", "go-atomic")
	w.Line("gcc_version", "0.0.0") // as Redis says where another compiler was used
	w.Line("go_version", runtime.Version())
	w.Line("process_id", os.Getpid())
	supervised := "no"
	if f.s.Config.Supervised() {
		supervised = "systemd"
	}
	w.Line("process_supervised", supervised)
	w.Line("run_id", f.s.RunID)
	port := f.s.Config.Value("port")
	if port == "0" {
		port = f.s.Config.Value("tls-port")
	}
	w.Line("tcp_port", port)
	w.Line("server_time_usec", now)
	w.Line("clock_offset_ms", f.s.Keyspace.Clock.OffMicros()/1000)
	w.Line("uptime_in_seconds", up)
	w.Line("uptime_in_days", up/(24*3600))
	w.Line("hz", f.s.Config.Value("hz"))
	w.Line("configured_hz", f.s.Config.Value("hz"))
	w.Line("lru_clock", now/1e6&(1<<24-1))
	w.Line("executable", executableOnce())
	w.Line("config_file", f.s.ConfigFile)
	w.Line("io_threads_active", boolean(f.s.Loops > 1))
	if until := f.s.Shutdown.Until(); until != 0 {
		w.Line("shutdown_in_milliseconds", (until-engine.Monotonic())/1000)
	}
	w.Line("event_loops", f.s.Loops)
	for i, l := range f.s.Listeners {
		w.Linef(fmt.Sprintf("listener%d", i), "%s", l)
	}
}

func (f *family) infoClients(w *command.InfoWriter) {
	var input, output int64
	var pubsub, watching, tracking, watched, replicas int
	sessions := f.s.Clients.All()
	for _, s := range sessions {
		input = max(input, s.Conn.QueryBytes())
		output = max(output, s.Conn.OutputBytes())
		if s.Subscriptions.Load() > 0 {
			pubsub++
		}
		if n := int(s.Watching()); n > 0 {
			watching++
			watched += n
		}
		if s.Shown.Flags.Load()&command.ShownTracking != 0 {
			tracking++
		}
		if s.Shown.Flags.Load()&command.ShownReplica != 0 {
			replicas++
		}
	}
	w.Section("Clients")
	w.Line("connected_clients", len(sessions)-replicas) // as Redis counts them
	w.Line("cluster_connections", 0)
	w.Line("maxclients", f.s.Config.Value("maxclients"))
	w.Line("client_recent_max_input_buffer", input)
	w.Line("client_recent_max_output_buffer", output)
	blocked := f.s.BlockedClients.Load()
	w.Line("blocked_clients", blocked+int64(f.s.Pause.Held()))
	w.Line("tracking_clients", tracking)
	w.Line("pubsub_clients", pubsub)
	w.Line("watching_clients", watching)
	w.Line("clients_in_timeout_table", blocked)
	w.Line("total_watched_keys", watched)
	w.Line("total_blocking_keys", w.Tally().WaitingKeys)
	w.Line("total_blocking_keys_on_nokey", w.Tally().WaitingKeysNoKey)
	if until, purpose, writes := f.s.Pause.State(); until != 0 {
		actions := "all"
		if writes {
			actions = "write"
		}
		w.Line("paused_reason", purpose.String())
		w.Line("paused_actions", actions)
		w.Line("paused_timeout_milliseconds", max(0, until-f.s.Keyspace.Clock.Now())/1000)
	}
}

func (f *family) infoStats(w *command.InfoWriter) {
	st, ks := &f.s.Stats, w.Tally().Stats
	in, out := st.BytesIn.Load(), st.BytesOut.Load()
	for _, s := range f.s.Clients.All() {
		in += s.Conn.BytesIn()
		out += s.Conn.BytesOut()
	}
	replIn, replOut := f.s.Replication.Traffic()
	in += replIn // what goes to replicas goes over connections, and is counted there
	rate := f.rates.sample(sample{engine.Monotonic(), f.s.Workers.Commands(), in, out, replIn, replOut})
	w.Section("Stats")
	w.Line("total_connections_received", st.Connections.Load())
	w.Line("total_commands_processed", f.s.Workers.Commands())
	w.Decimal("instantaneous_ops_per_sec", rate.commands, 0, "")
	w.Line("total_net_input_bytes", in)
	w.Line("total_net_output_bytes", out)
	w.Line("total_net_repl_input_bytes", replIn)
	w.Line("total_net_repl_output_bytes", replOut)
	w.Decimal("instantaneous_input_kbps", rate.in/1024, 2, "")
	w.Decimal("instantaneous_output_kbps", rate.out/1024, 2, "")
	w.Decimal("instantaneous_input_repl_kbps", rate.replIn/1024, 2, "")
	w.Decimal("instantaneous_output_repl_kbps", rate.replOut/1024, 2, "")
	w.Line("rejected_connections", st.Rejected.Load())
	full, partial, refused := f.s.Replication.Syncs()
	w.Line("sync_full", full)
	w.Line("sync_partial_ok", partial)
	w.Line("sync_partial_err", refused)
	w.Line("expired_subkeys", ks.ExpiredFields)
	w.Line("expired_keys", ks.Expired)
	w.Line("expired_stale_perc", "0.00")
	w.Line("expired_time_cap_reached_count", 0)
	w.Line("expire_cycle_cpu_milliseconds", 0)
	w.Line("evicted_keys", ks.Evicted)
	w.Line("evicted_clients", st.EvictedClients.Load())
	current, total := f.s.Keeper.Exceeded()
	w.Line("total_eviction_exceeded_time", total)
	w.Line("current_eviction_exceeded_time", current)
	w.Line("keyspace_hits", ks.Hits)
	w.Line("keyspace_misses", ks.Misses)
	channels, patterns, shardChannels := f.s.PubSub.Counts()
	w.Line("pubsub_channels", channels)
	w.Line("pubsub_patterns", patterns)
	w.Line("pubsubshard_channels", shardChannels)
	keys, items, prefixes := f.s.Tracker.Counts()
	w.Line("tracking_total_keys", keys)
	w.Line("tracking_total_items", items)
	w.Line("tracking_total_prefixes", prefixes)
	for _, add := range f.s.InfoStats {
		add(w)
	}
	// Nothing forks: these are the cuts that snapshots and rewrites begin with.
	cuts, lastMicros := f.s.Persistence.Cuts()
	w.Line("latest_fork_usec", lastMicros)
	w.Line("total_forks", cuts)
	w.Line("migrate_cached_sockets", 0)
	w.Line("slave_expires_tracked_keys", f.s.Keyspace.OwnKeys())
	w.Line("active_defrag_hits", 0)
	w.Line("active_defrag_misses", 0)
	w.Line("active_defrag_key_hits", 0)
	w.Line("active_defrag_key_misses", 0)
	w.Line("total_active_defrag_time", 0)
	w.Line("current_active_defrag_time", 0)
	w.Line("unexpected_error_replies", st.Unexpected.Load())
	w.Line("total_error_replies", st.ErrorReplies.Load())
	w.Line("dump_payload_sanitizations", f.s.Verified.Load())
	w.Line("dump_payload_repairs", f.s.Repaired.Load())
	w.Line("total_long_commands", f.s.Long.Total())
	var reads, writes, threadReads, threadWrites int64
	for i, io := range f.s.IO() {
		reads, writes = reads+io.Reads, writes+io.Writes
		if i > 0 {
			threadReads, threadWrites = threadReads+io.Reads, threadWrites+io.Writes
		}
	}
	w.Line("total_reads_processed", reads)
	w.Line("total_writes_processed", writes)
	w.Line("io_threaded_reads_processed", threadReads)
	w.Line("io_threaded_writes_processed", threadWrites)
	w.Line("client_query_buffer_limit_disconnections", st.InputDrops.Load())
	w.Line("client_output_buffer_limit_disconnections", st.OutputDrops.Load())
	w.Line("reply_buffer_shrinks", 0)
	w.Line("reply_buffer_expands", 0)
	w.Line("acl_access_denied_auth", st.DeniedAuth.Load())
	w.Line("acl_access_denied_cmd", st.DeniedCommand.Load())
	w.Line("acl_access_denied_key", st.DeniedKey.Load())
	w.Line("acl_access_denied_channel", st.DeniedChannel.Load())
}

// infoThreads has a line for every event loop, and one for the connections that
// goroutines serve, which are those with TLS.
func (f *family) infoThreads(w *command.InfoWriter) {
	w.Section("Threads")
	for i, io := range f.s.IO() {
		w.Linef(fmt.Sprintf("io_thread_%d", i), "clients=%d,reads=%d,writes=%d", io.Clients, io.Reads, io.Writes)
	}
}

func (f *family) infoCommandStats(w *command.InfoWriter) {
	w.Section("Commandstats")
	for _, cmd := range f.s.Table.All() {
		calls, micros, failed, rejected := f.s.Workers.Sum(cmd)
		if calls == 0 && failed == 0 && rejected == 0 {
			continue
		}
		perCall := 0.0
		if calls > 0 {
			perCall = float64(micros) / float64(calls)
		}
		w.Linef("cmdstat_"+cmd.FullName(), "calls=%d,usec=%d,usec_per_call=%.2f,rejected_calls=%d,failed_calls=%d",
			calls, micros, perCall, rejected, failed)
	}
}

func (f *family) infoErrorStats(w *command.InfoWriter) {
	w.Section("Errorstats")
	type count struct {
		code string
		n    int64
	}
	var all []count
	f.s.Stats.EachError(func(code string, n int64) { all = append(all, count{code, n}) })
	sort.Slice(all, func(i, j int) bool { return all[i].code < all[j].code })
	for _, e := range all {
		w.Linef("errorstat_"+e.code, "count=%d", e.n)
	}
}

func (f *family) infoKeyspace(w *command.InfoWriter) {
	w.Section("Keyspace")
	for db, st := range w.Tally().DBs {
		if st.Keys > 0 {
			w.Linef(dbName(db), "keys=%d,expires=%d,avg_ttl=%d,subexpiry=%d", st.Keys, st.Expires, st.AverageTTLMillis(), st.VolatileHashes)
		}
	}
}

// dbName is how INFO and MEMORY STATS name a database.
func dbName(db int) string { return "db" + strconv.Itoa(db) }

func infoCPU(w *command.InfoWriter) {
	system, user := processorSeconds()
	w.Section("CPU")
	w.Decimal("used_cpu_sys", system, 6, "")
	w.Decimal("used_cpu_user", user, 6, "")
	w.Line("used_cpu_sys_children", "0.000000")
	w.Line("used_cpu_user_children", "0.000000")
	// No thread is the main one: all of them serve.
	w.Decimal("used_cpu_sys_main_thread", system, 6, "")
	w.Decimal("used_cpu_user_main_thread", user, 6, "")
}
