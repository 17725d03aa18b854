package observe

// The metrics for Prometheus. Most are fields of INFO, under names that follow Prometheus's conventions.

import (
	"slices"
	"strconv"
	"strings"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/histogram"
	"github.com/limitkv/limitkv/web"
)

// metric is a field of INFO as a metric. A name that ends in _total is a counter. A field that ends in _ms is converted to
// seconds, the unit that Prometheus expects of all times.
type metric struct {
	field, name string
	help        string
}

const micros = 1e6

// metrics are the exported fields of INFO. A field that INFO does not have is left out.
var metrics = []metric{
	{"uptime_in_seconds", "limitkv_uptime_seconds", "How long the server runs."},
	{"clock_offset_ms", "limitkv_clock_offset_seconds", "By how much the server's clock is ahead of the system's."},
	{"connected_clients", "limitkv_connections", "Clients that are connected."},
	{"maxclients", "limitkv_connections_max", "How many clients may be connected (maxclients)."},
	{"blocked_clients", "limitkv_blocked_clients", "Clients that wait for a key, a limiter, a queue or a lock."},
	{"pubsub_clients", "limitkv_pubsub_clients", "Clients that listen to channels."},
	{"total_connections_received", "limitkv_connections_accepted_total", "Connections that were accepted."},
	{"rejected_connections", "limitkv_connections_rejected_total", "Connections that were refused, since there were too many."},
	{"evicted_clients", "limitkv_connections_evicted_total", "Connections that were ended to save memory."},
	{"client_query_buffer_limit_disconnections", "limitkv_connections_input_limit_total", "Connections that were ended for sending too much at once."},
	{"client_output_buffer_limit_disconnections", "limitkv_connections_output_limit_total", "Connections that were ended for not reading replies."},
	{"total_net_input_bytes", "limitkv_network_receive_bytes_total", "Bytes received from clients."},
	{"total_net_output_bytes", "limitkv_network_transmit_bytes_total", "Bytes sent to clients."},
	{"total_error_replies", "limitkv_error_replies_total", "Replies that were errors."},

	{"used_memory", "limitkv_memory_used_bytes", "Memory in use, as maxmemory counts it."},
	{"used_memory_rss", "limitkv_memory_resident_bytes", "Memory that the process has from the system."},
	{"used_memory_peak", "limitkv_memory_used_peak_bytes", "The most memory that was in use."},
	{"mem_clients_normal", "limitkv_memory_clients_bytes", "Memory that clients' buffers take."},
	{"maxmemory", "limitkv_memory_max_bytes", "The limit of memory in use (maxmemory), 0 for none."},

	{"keyspace_hits", "limitkv_key_lookups_hit_total", "Lookups that found their key."},
	{"keyspace_misses", "limitkv_key_lookups_missed_total", "Lookups that did not find their key."},
	{"expired_keys", "limitkv_keys_expired_total", "Keys that ended at their deadline."},
	{"evicted_keys", "limitkv_keys_evicted_total", "Keys that were removed to make room."},
	{"total_blocking_keys", "limitkv_keys_waited_for", "Keys that somebody waits for."},

	{"rdb_changes_since_last_save", "limitkv_snapshot_changes_pending", "Changes since the last snapshot."},
	{"rdb_last_save_time", "limitkv_snapshot_last_timestamp_seconds", "When the last snapshot was made."},
	{"rdb_last_bgsave_status", "limitkv_snapshot_last_ok", "Whether the last snapshot was written."},
	{"rdb_bgsave_in_progress", "limitkv_snapshot_running", "Whether a snapshot is being written."},
	{"aof_enabled", "limitkv_log_enabled", "Whether there is an append-only file."},
	{"aof_last_write_status", "limitkv_log_ok", "Whether the append-only file can be written."},
	{"aof_last_bgrewrite_status", "limitkv_log_rewrite_last_ok", "Whether the last rewrite of the append-only file succeeded."},
	{"aof_current_size", "limitkv_log_size_bytes", "The size of the append-only files."},
	{"aof_buffer_length", "limitkv_log_pending_bytes", "What of the append-only file is not written yet."},
	{"aof_delayed_fsync", "limitkv_log_syncs_delayed_total", "Syncs of the append-only file that came late."},
	{"loading", "limitkv_loading", "Whether the server is reading what is on disk."},

	{"connected_slaves", "limitkv_replicas", "Replicas that are connected."},
	{"master_repl_offset", "limitkv_replication_offset_bytes", "How far the stream to replicas has come."},
	{"master_link_status", "limitkv_replication_link_up", "Whether this replica is connected to its primary."},
	{"master_last_io_seconds_ago", "limitkv_replication_silence_seconds", "How long this replica has heard nothing from its primary."},

	{"limiters", "limitkv_limiters", "Limiters that there are: not those that are as new."},
	{"limiter_calls_granted", "limitkv_limiter_calls_granted_total", "Calls that limiters granted."},
	{"limiter_calls_refused", "limitkv_limiter_calls_refused_total", "Calls that limiters refused."},
	{"limiter_grants_settled", "limitkv_limiter_grants_settled_total", "Grants that were settled or ended."},
	{"limiter_waiters", "limitkv_limiter_waiters", "Calls that wait for a limiter."},

	{"delay_queues", "limitkv_queues", "Queues that there are."},
	{"delay_queue_entries_waiting", "limitkv_queue_entries_waiting", "Entries of queues that are due or will be."},
	{"delay_queue_entries_leased", "limitkv_queue_entries_leased", "Entries of queues that somebody works on."},
	{"delay_queue_entries_delivered", "limitkv_queue_entries_delivered_total", "Entries of queues that were handed out."},
	{"delay_queue_waiters", "limitkv_queue_waiters", "Workers that wait for an entry."},

	{"locks", "limitkv_locks", "Locks that are held."},
	{"lock_calls_granted", "limitkv_lock_calls_granted_total", "Calls that got their lock."},
	{"lock_calls_refused", "limitkv_lock_calls_refused_total", "Calls that did not get their lock."},
	{"lock_waiters", "limitkv_lock_waiters", "Calls that wait for a lock."},
	{"lock_leases_lost", "limitkv_lock_leases_lost_total", "Locks that were lost, as their lease ended."},
}

// sections are the sections of INFO with these fields. The latencies of commands are histograms instead.
var sections = []string{"server", "clients", "memory", "persistence", "stats", "replication", "limitkv"}

// metrics writes all metrics. Counters are summed up shard by shard, each under its lock for a moment.
func (o *Site) metrics(m *web.Metrics) {
	var c command.Ctx // it holds no locks and only reads
	c.KS, c.Now = o.s.Keyspace, o.s.Keyspace.Clock.Now()
	w := command.InfoWriter{View: &c.View}
	for _, section := range o.s.Info {
		if slices.Contains(sections, section.Name) {
			section.Write(&w)
		}
	}
	fields := make(map[string]string)
	for line := range strings.Lines(w.String()) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	m.Gauge("limitkv_build_info", "The server's versions.", 1, "version", o.s.Version, "redis_version", command.RedisVersion)
	ready := 0.0
	if o.unready() == "" {
		ready = 1
	}
	m.Gauge("limitkv_ready", "Whether clients are to be sent here, as /readyz says: not while it loads, cannot write, or has as many as it may.", ready)
	for _, x := range metrics {
		value, ok := number(fields[x.field])
		if strings.HasSuffix(x.field, "_ms") {
			value /= 1000
		}
		switch {
		case !ok:
		case strings.HasSuffix(x.name, "_total"):
			m.Counter(x.name, x.help, value)
		default:
			m.Gauge(x.name, x.help, value)
		}
	}
	o.keys(m, w.Tally())
	o.prefixes(m)
	o.calls(m)
	o.s.Stats.EachError(func(code string, n int64) {
		m.Counter("limitkv_errors_total", "Error replies by their first word.", float64(n), "code", code)
	})
}

// number parses a field's value. ok and up are 1, err and down are 0.
func number(value string) (float64, bool) {
	switch value {
	case "ok", "up":
		return 1, true
	case "err", "down":
		return 0, true
	}
	n, err := strconv.ParseFloat(value, 64)
	return n, err == nil
}

func (o *Site) keys(m *web.Metrics, t *engine.Tally) {
	for db, st := range t.DBs {
		if st.Keys > 0 || db == 0 {
			name := strconv.Itoa(db)
			m.Gauge("limitkv_keys", "Keys by database.", float64(st.Keys), "db", name)
			m.Gauge("limitkv_keys_with_deadline", "Keys that end at a time, by database.", float64(st.Expires), "db", name)
		}
	}
	for kind, n := range t.Kinds {
		if n > 0 {
			m.Gauge("limitkv_keys_by_type", "Keys by the type of their value.", float64(n), "type", engine.Kind(kind).String())
		}
	}
}

// limits are the upper bounds of the buckets for commands' times, in microseconds.
var limits = []int64{10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 50_000, 100_000, 500_000, 1_000_000, 5_000_000}

// calls writes the calls and times of each command that was called.
func (o *Site) calls(m *web.Metrics) {
	for _, cmd := range o.s.Table.All() {
		calls, took, failed, rejected := o.s.Workers.Sum(cmd)
		if calls == 0 && failed == 0 && rejected == 0 {
			continue
		}
		name := cmd.FullName()
		times(m, "limitkv_command_duration_seconds", "How long commands took, without the time that they waited.",
			o.s.Workers.Times(cmd), float64(took)/micros, "command", name)
		if failed > 0 {
			m.Counter("limitkv_command_failures_total", "Commands that replied an error.", float64(failed), "command", name)
		}
		if rejected > 0 {
			m.Counter("limitkv_command_rejections_total", "Commands that were refused before they ran.", float64(rejected), "command", name)
		}
	}
}

func times(m *web.Metrics, name, help string, t *histogram.Times, sum float64, labels ...string) {
	buckets := make([]web.Bucket, len(limits))
	next, below := 0, int64(0)
	t.Each(func(top, n int64) {
		for ; next < len(limits) && top > limits[next]; next++ {
			buckets[next] = web.Bucket{UpTo: float64(limits[next]) / micros, Count: below}
		}
		below += n
	})
	for ; next < len(limits); next++ {
		buckets[next] = web.Bucket{UpTo: float64(limits[next]) / micros, Count: below}
	}
	m.Histogram(name, help, t.Calls, sum, buckets, labels...)
}
