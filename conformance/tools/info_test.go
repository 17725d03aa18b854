// INFO and what else monitoring reads: every field of Redis is there with a value of the same form.
package tools

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/conformance/peer"
)

// missing are fields of Redis that limitkv does not have, and why.
var missing = map[string]string{
	"module":                                 "there are no modules",
	"eventloop_cycles":                       "loops do not time themselves: reading a clock each turn costs more than it tells",
	"eventloop_duration_sum":                 "as eventloop_cycles",
	"eventloop_duration_cmd_sum":             "as eventloop_cycles",
	"instantaneous_eventloop_cycles_per_sec": "as eventloop_cycles",
	"instantaneous_eventloop_duration_usec":  "as eventloop_cycles",
}

// otherForm are fields whose values look otherwise, and why.
var otherForm = map[string]string{
	"redis_build_id":          "is that of limitkv's build, where there is one",
	"executable":              "is a path",
	"used_memory_dataset":     "Redis's may be below zero and wrap around",
	"mem_fragmentation_bytes": "may be negative",
	"allocator_rss_bytes":     "may be negative",
	"mem_allocator":           "is Go's",
	"atomicvar_api":           "is Go's",
}

// busy is a workload that has something appear in every section.
const busy = `
CONFIG SET latency-monitor-threshold 1
CONFIG SET slowlog-log-slower-than 0
SET a 1 EX 100
SET b 2
GET nosuch
HSET h f v
HEXPIRE h 100 FIELDS 1 f
LPUSH l 1 2 3
SADD s 1 2
ZADD z 1 a
XADD x * a 1
XGROUP CREATE x g 0
EVAL "return 1" 0
FUNCTION LOAD "#!lua name=lib\nredis.register_function('f', function() return 1 end)"
DEBUG SLEEP 0.01
`

// sections splits INFO's text by sections into fields.
func sections(t *testing.T, s *peer.Server, args ...string) (order []string, fields map[string]map[string]string) {
	t.Helper()
	v, err := s.Dial(t).Do(append([]string{"INFO"}, args...)...)
	if err != nil || v.IsError() {
		t.Fatalf("%s: INFO: %v, %v", s.Name, v, err)
	}
	fields = map[string]map[string]string{}
	section := ""
	for _, line := range strings.Split(v.Text, "\r\n") {
		switch name, value, ok := strings.Cut(line, ":"); {
		case strings.HasPrefix(line, "# "):
			section = line[2:]
			order = append(order, section)
			fields[section] = map[string]string{}
		case ok:
			fields[section][name] = value
		case line != "":
			t.Errorf("%s: INFO has the line %q", s.Name, line)
		}
	}
	return order, fields
}

var (
	hexadecimal = regexp.MustCompile(`^[0-9a-f]{40}$`)
	decimals    = regexp.MustCompile(`[0-9]+\.[0-9]+`)
	numbers     = regexp.MustCompile(`-?[0-9]+`)
	humans      = regexp.MustCompile(`^#(\.dd)?[BKMGT]$`)
)

// form is what a value looks like: its numbers without their digits, but with how many decimals.
func form(value string) string {
	if hexadecimal.MatchString(value) {
		return "hexadecimal"
	}
	value = decimals.ReplaceAllStringFunc(value, func(n string) string {
		return "#." + strings.Repeat("d", len(n)-strings.IndexByte(n, '.')-1)
	})
	value = numbers.ReplaceAllString(value, "#")
	if humans.MatchString(value) {
		return "human"
	}
	return value
}

func TestInfoFields(t *testing.T) {
	p := start(t, "--enable-debug-command", "yes")
	p.load(t, busy)
	for _, s := range p.each() {
		c := s.Dial(t)
		_, _ = c.Do("INCR", "l") // for errorstats
		_, _ = c.Do("SUBSCRIBE", "channel")
	}
	for _, args := range [][]string{nil, {"all"}, {"everything"}, {"default"}, {"server", "stats"}, {"threads"}, {"modules"}} {
		wantOrder, want := sections(t, p.redis, args...)
		gotOrder, got := sections(t, p.limitkv, args...)
		if !slices.Equal(theSame(wantOrder, args), theSame(gotOrder, args)) {
			t.Errorf("INFO %v: sections\n want %v\n  got %v", args, wantOrder, gotOrder)
		}
		compared := 0
		for section, fields := range want {
			if _, here := got[section]; !here && slices.Contains(otherSections(args), section) {
				continue
			}
			for name, value := range fields {
				g, ok := got[section][name]
				switch {
				case !ok && missing[name] == "" && !strings.HasPrefix(name, "io_thread_"):
					t.Errorf("INFO %v: %s has no %s, of Redis %q", args, section, name, value)
				case ok && missing[name] != "":
					t.Errorf("%s is listed as missing and is there", name)
				case ok && otherForm[name] == "" && form(g) != form(value):
					t.Errorf("INFO %v: %s %s looks otherwise\n want %q\n  got %q", args, section, name, value, g)
				}
				compared++
			}
		}
		if compared == 0 && len(wantOrder) > 0 && args[0] != "modules" {
			t.Errorf("INFO %v: nothing was compared", args)
		}
	}
}

// otherSections are not compared: limitkv's own, and, where it is not asked for, one that Redis shows always and limitkv
// makes by looking at every key.
func otherSections(args []string) []string {
	if len(args) == 0 || args[0] == "default" {
		return []string{"Limitkv", "Keysizes"}
	}
	return []string{"Limitkv"}
}

func theSame(sections, args []string) []string {
	return slices.DeleteFunc(slices.Clone(sections), func(s string) bool { return slices.Contains(otherSections(args), s) })
}

// exporterFields are those of INFO that redis_exporter makes metrics of, as far as a server of Redis 8 without
// replicas or an append-only file has them: what it expects is a number, or a status.
var exporterFields = map[string]string{
	"Server":  "uptime_in_seconds process_id hz configured_hz io_threads_active",
	"Clients": "connected_clients blocked_clients tracking_clients maxclients clients_in_timeout_table pubsub_clients watching_clients total_watched_keys total_blocking_keys total_blocking_keys_on_nokey client_recent_max_output_buffer client_recent_max_input_buffer",
	"Memory": "allocator_active allocator_allocated allocator_resident allocator_frag_ratio allocator_frag_bytes allocator_muzzy allocator_rss_ratio allocator_rss_bytes " +
		"used_memory used_memory_rss used_memory_peak used_memory_lua used_memory_vm_eval used_memory_scripts_eval used_memory_overhead used_memory_startup used_memory_dataset " +
		"number_of_cached_scripts number_of_functions number_of_libraries used_memory_vm_functions used_memory_scripts used_memory_functions used_memory_vm_total " +
		"maxmemory mem_fragmentation_ratio mem_fragmentation_bytes mem_clients_slaves mem_clients_normal mem_cluster_links mem_aof_buffer mem_replication_backlog " +
		"mem_not_counted_for_evict mem_total_replication_buffers mem_overhead_db_hashtable_rehashing total_system_memory lazyfree_pending_objects lazyfreed_objects active_defrag_running",
	"Persistence": "loading async_loading rdb_changes_since_last_save rdb_bgsave_in_progress rdb_last_save_time rdb_last_bgsave_status rdb_last_bgsave_time_sec " +
		"rdb_current_bgsave_time_sec rdb_saves rdb_last_cow_size rdb_last_load_keys_expired rdb_last_load_keys_loaded aof_enabled aof_rewrite_in_progress aof_rewrite_scheduled " +
		"aof_last_rewrite_time_sec aof_current_rewrite_time_sec aof_last_cow_size aof_last_bgrewrite_status aof_last_write_status module_fork_in_progress module_fork_last_cow_size " +
		"current_cow_peak current_cow_size current_cow_size_age current_fork_perc current_save_keys_processed current_save_keys_total",
	"Stats": "total_connections_received total_commands_processed rejected_connections total_net_input_bytes total_net_output_bytes expired_subkeys expired_keys expired_stale_perc " +
		"expired_time_cap_reached_count expire_cycle_cpu_milliseconds evicted_keys evicted_clients evicted_scripts total_eviction_exceeded_time keyspace_hits keyspace_misses pubsub_channels pubsub_patterns " +
		"pubsubshard_channels latest_fork_usec total_forks migrate_cached_sockets slave_expires_tracked_keys active_defrag_hits active_defrag_misses active_defrag_key_hits active_defrag_key_misses " +
		"tracking_total_keys tracking_total_items tracking_total_prefixes unexpected_error_replies total_error_replies dump_payload_sanitizations total_reads_processed total_writes_processed " +
		"io_threaded_reads_processed io_threaded_writes_processed sync_full sync_partial_ok sync_partial_err acl_access_denied_auth acl_access_denied_cmd acl_access_denied_key acl_access_denied_channel",
	"Replication": "connected_slaves repl_backlog_size repl_backlog_active repl_backlog_first_byte_offset repl_backlog_histlen master_repl_offset second_repl_offset",
	"CPU":         "used_cpu_sys used_cpu_user used_cpu_sys_children used_cpu_user_children used_cpu_sys_main_thread used_cpu_user_main_thread",
	"Cluster":     "cluster_enabled",
}

// exporterLabels are fields that it passes on as text.
var exporterLabels = map[string]string{
	"Server": "redis_version redis_mode os tcp_port run_id process_id", "Replication": "role master_replid", "Memory": "maxmemory_policy",
}

// TestExporter: what redis_exporter asks on a scrape, and parses with little patience.
func TestExporter(t *testing.T) {
	s := peer.LimitKV(t, "--enable-debug-command", "yes")
	load(t, s, busy)
	_, info := sections(t, s, "ALL")
	for section, names := range exporterFields {
		for _, name := range strings.Fields(names) {
			value, ok := info[section][name]
			if !ok {
				t.Errorf("%s has no %s", section, name)
			} else if _, err := strconv.ParseFloat(value, 64); err != nil && value != "ok" {
				t.Errorf("%s is %q: neither a number nor ok", name, value)
			}
		}
	}
	for section, names := range exporterLabels {
		for _, name := range strings.Fields(names) {
			if info[section][name] == "" {
				t.Errorf("%s has no %s", section, name)
			}
		}
	}

	c := s.Dial(t)
	ask := func(args ...string) peer.Value {
		t.Helper()
		v, err := c.Do(args...)
		if err != nil || v.IsError() {
			t.Fatalf("%v: %v, %v", args, v, err)
		}
		return v
	}
	config := ask("CONFIG", "GET", "*").Items
	if len(config)%2 != 0 || len(config) < 300 {
		t.Errorf("CONFIG GET * has %d elements", len(config))
	}
	known := map[string]bool{}
	for i := 0; i+1 < len(config); i += 2 {
		known[config[i].Text] = true
		if name := config[i].Text; name == "databases" || name == "maxmemory" || name == "maxclients" {
			if _, err := strconv.Atoi(config[i+1].Text); err != nil {
				t.Errorf("%s is %q", name, config[i+1].Text)
			}
		}
	}
	for _, name := range []string{"databases", "maxmemory", "maxclients", "save", "appendonly", "slowlog-max-len"} {
		if !known[name] {
			t.Errorf("CONFIG GET * has no %s", name)
		}
	}
	for _, step := range []struct{ line, pattern string }{
		{"LATENCY LATEST", `^\[\["command" :\d+ :\d+ :\d+\]`},
		{"LATENCY HISTOGRAM", `"set" \["calls" :\d+ "histogram_usec" \[(:\d+ :\d+)+`},
		{"SLOWLOG LEN", `^:[1-9]`},
		{"SLOWLOG GET 1", `^\[\[:\d+ :\d+ :\d+ \["SLOWLOG" "LEN"\] "127.0.0.1:\d+" ""\]\]$`},
		{"CLIENT SETNAME x", `^\+OK$`},
		{"CLIENT LIST", `^"id=\d+ addr=127.0.0.1:\d+ laddr=\S+ fd=\d+ name=x? age=\d+ idle=\d+ flags=\w+ db=0 .* omem=\d+ .* cmd=\S+ user=default redir=-1 resp=2 `},
		{"XINFO STREAM x", `^\["length" :1 "radix-tree-keys" :\d+ "radix-tree-nodes" :\d+ "last-generated-id"`},
		{"MEMORY USAGE a", `^:[1-9]\d+$`},
		{"MODULE LIST", `^\[\]$`},
	} {
		text := strings.Join(strings.Fields(strings.ReplaceAll(ask(strings.Fields(step.line)...).String(), ",", "")), " ")
		if !regexp.MustCompile(step.pattern).MatchString(strings.ReplaceAll(text, "[ ", "[")) {
			t.Errorf("%s is %s", step.line, text)
		}
	}
}
