// redis-benchmark: its whole default run, and its options, end without an error. How fast is measured elsewhere.
package tools

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/conformance/peer"
)

// complaints are what it prints where a server does not do as it wants.
var complaints = regexp.MustCompile(`(?i)error|warning: (could|can|fail)|could not|-?ERR |failed|denied`)

// requests is how many of each test are made.
const requests = "400"

func TestBenchmark(t *testing.T) {
	benchmark := find(t, "redis-benchmark")
	socket := filepath.Join(t.TempDir(), "s")
	single := peer.LimitKV(t, "--unixsocket", socket)
	secret := peer.LimitKV(t, "--requirepass", "secret")
	for _, c := range []struct {
		name   string
		server *peer.Server
		line   string
		tests  int // lines of results there are at least
	}{
		{"the default run", single, "-q", 20},
		{"pipelines and random keys", single, "-q -P 16 -r 1000", 20},
		{"without -q", single, "-t set,lrange_100 --precision 3", 1},
		{"threads", single, "-q --threads 2 -t set,get,lpush,mset", 4},
		{"RESP3", single, "-q -3 -t ping,set,hset,zadd", 5},
		{"a connection for each request", single, "-q -k 0 -c 4 -n 50 -t ping_mbulk", 1},
		{"large values", single, "-q -d 100000 -n 100 -c 10 -t set,get", 2},
		{"tracking", single, "-q --enable-tracking -t set,get", 2},
		{"a database", single, "-q --dbnum 3 -t set", 1},
		{"a command", single, "-q -r 100 EVAL return(redis.call('incr',KEYS[1])) 1 n:__rand_int__", 1},
		{"a socket", single, "-q -s " + socket + " -t get", 1},
		{"one client", single, "-q -c 1 -t ping_inline", 1},
		{"a password", secret, "-q -a secret -t set", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			line := append([]string{"-h", "{host}", "-p", "{port}"}, strings.Fields(c.line)...)
			if !slices.Contains(line, "-n") {
				line = append(line[:4:4], append([]string{"-n", requests}, line[4:]...)...)
			}
			got := run(t, benchmark, c.server, call{args: line})
			results := strings.Count(got.output, " requests per second, p50=") + strings.Count(got.output, "throughput summary:")
			if got.code != 0 || results < c.tests || complaints.MatchString(got.output) {
				t.Errorf("exit code %d, %d results: %s", got.code, results, strings.ReplaceAll(got.output, "\r", "\n"))
			}
		})
	}
}

// TestBenchmarkCluster: a cluster of one node is none to it, of Redis neither.
func TestBenchmarkCluster(t *testing.T) {
	benchmark := find(t, "redis-benchmark")
	got := run(t, benchmark, peer.LimitKV(t, "--cluster-enabled", "yes"), call{args: []string{"-p", "{port}", "--cluster"}})
	if got.code != 1 || got.output != "Invalid cluster: 1 node(s).\n" {
		t.Errorf("exit code %d: %s", got.code, got.output)
	}
}

// TestBenchmarkCSV: the same tests are run and reported as of Redis.
func TestBenchmarkCSV(t *testing.T) {
	benchmark := find(t, "redis-benchmark")
	p := start(t)
	var names [2][]string
	for i, s := range p.each() {
		got := run(t, benchmark, s, call{args: []string{"-p", "{port}", "-n", requests, "--csv"}})
		for _, line := range strings.Split(strings.TrimSpace(got.output), "\n") {
			fields := strings.Split(line, ",")
			if len(fields) != 8 && !strings.HasPrefix(line, `"MSET`) {
				t.Errorf("%s: %q has %d fields", s.Name, line, len(fields))
			}
			names[i] = append(names[i], fields[0])
		}
	}
	if !slices.Equal(names[0], names[1]) || len(names[0]) < 20 {
		t.Errorf("the tests are\n%v, of Redis\n%v", names[1], names[0])
	}
}
