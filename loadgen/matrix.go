package main

// The matrix run compares limitkv, Redis and Valkey in everything that limitkv claims, and has the least results to reach.
// `limitkv-benchmark matrix` starts the servers, measures, and writes docs/BENCHMARKS.md.

import (
	"flag"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// claim is a row of the matrix: a workload against the better of the others, by throughput.
type claim struct {
	workload string
	against  string // the others' workload, if it differs
	pipeline int
	atLeast  float64
	// connections and keys, if not 0, replace the usual numbers.
	connections int
	keys        int
	// cpuAtMost, if not 0, is claimed for the processor time per request.
	cpuAtMost float64
}

func claims() (list []claim) {
	for _, name := range []string{"get", "set", "incr"} {
		list = append(list, claim{workload: name, pipeline: 1, atLeast: 1, cpuAtMost: 0.9})
	}
	for _, name := range []string{"get", "set", "incr", "hset", "hget", "zadd", "zrangebyscore", "zrank", "zpopmin"} {
		atLeast := 1.3
		if name == "zadd" {
			atLeast = 1.8
		}
		list = append(list, claim{workload: name, pipeline: 16, atLeast: atLeast})
	}
	scripts := []string{"filter", "limit2", "consume", "lock", "sliding_window"}
	for _, name := range scripts {
		list = append(list, claim{workload: name, pipeline: 16, atLeast: 2})
	}
	for _, name := range scripts {
		list = append(list, claim{workload: name, pipeline: 1, atLeast: 1})
	}
	for _, name := range []string{"loop", "loop_argument", "undeclared", "undeclared_loop", "fcall"} {
		list = append(list,
			claim{workload: name, pipeline: 1, atLeast: 1, cpuAtMost: 1},
			claim{workload: name, pipeline: 16, atLeast: 1, cpuAtMost: 0.8},
			claim{workload: name, pipeline: 16_000, atLeast: 1, connections: 1}) // as clients that add jobs in bulk
	}
	const acquire = "rate_limiter_acquire"
	list = append(list, claim{workload: acquire, pipeline: 16, atLeast: 2.5}, claim{workload: acquire, pipeline: 1, atLeast: 1.3})
	for _, pipeline := range []int{16, 1} {
		for _, name := range []string{"gcra", "log", "window", "fixed", "redisson"} {
			atLeast := 10.0
			switch {
			case pipeline == 1:
				atLeast = 1.5
			case name == "redisson":
				atLeast = 5 // it uses the three keys of Redisson's script, not limitkv's limiter
			}
			list = append(list, claim{workload: "rl.acquire." + name, against: acquire, pipeline: pipeline, atLeast: atLeast})
		}
	}
	for _, against := range []string{"lock.plain", "lock.redisson", "lock.redisson.fair"} {
		list = append(list, claim{workload: "lk.mutex", against: against, pipeline: 16, atLeast: 2},
			claim{workload: "lk.mutex", against: against, pipeline: 1, atLeast: 1})
	}
	return append(list, claim{workload: "dq.pop", against: "consume", pipeline: 16, atLeast: 3})
}

// recordedClaims returns the claims for the recordings of libraries.
func recordedClaims(recorded []*workload) (list []claim) {
	for _, w := range recorded {
		list = append(list, claim{workload: w.name, pipeline: 1, atLeast: 1, cpuAtMost: 0.6}, claim{workload: w.name, pipeline: 16, atLeast: 1, cpuAtMost: 0.6})
	}
	return list
}

// matrix is the options of the run, and then its results.
type matrix struct {
	limitkv, redis, valkey, out, only string
	// About libraries: the folders of the recordings and of the programs that use them, and the libraries to measure end to
	// end.
	recordings, clients, onlyLibraries string
	outside                            string // valkey-benchmark
	quick                              bool
	rounds, keys                       int
	params                             params

	// recorded are the workloads of libraries; missing are the libraries without a recording.
	recorded []*workload
	missing  []string

	programs   []program
	versions   []string
	rows       []row
	used       []row
	libraries  []row
	latency    []row
	cores      []row
	coreLabels []string // of their cells
	labours    []labour
	few        []row
	memory     []measure
	growth     []growth
	durability *durability
	contests   []contested
	started    time.Time
}

// row is a claim with its results, one cell per server.
type row struct {
	claim
	cells  []*cell
	failed string // why the numbers are invalid
	// outside is valkey-benchmark's result for each server, nil if it cannot send the workload.
	outside []outsideResult
}

// measure is a number for each server. limitkv's may be at most so many times Redis's.
type measure struct {
	name, unit string
	values     []float64
	atMost     float64
}

// growth is the throughput as something grows.
type growth struct {
	name   string
	sizes  []int
	values [][]float64 // by server, by size
}

func runMatrix(args []string) error {
	m := &matrix{params: params{connections: 50, valueBytes: 32, warmup: 300 * time.Millisecond}}
	flags := flag.NewFlagSet("limitkv-benchmark matrix", flag.ExitOnError)
	flags.StringVar(&m.limitkv, "limitkv", "bin/limitkv", "limitkv's binary")
	flags.StringVar(&m.redis, "redis", binary("REDIS", "redis"), "Redis's binary; by default redis-server in PATH")
	flags.StringVar(&m.valkey, "valkey", binary("VALKEY", "valkey"), "Valkey's binary; by default valkey-server in PATH")
	flags.StringVar(&m.out, "out", "", "file to write, empty for none")
	flags.StringVar(&m.recordings, "recordings", recordingsDir(), "where recordings are kept")
	flags.StringVar(&m.only, "only", "", "parts to measure, separated by commas: throughput, used, contended, libraries, end-to-end, few, latency, cores, memory, growth, durability, snapshots (of durability: what grows with the keys); by default all")
	flags.StringVar(&m.clients, "clients", clientsDir, "folder of the programs that use the libraries")
	flags.StringVar(&m.outside, "outside", outsideGenerator(), "valkey-benchmark, which repeats the rows that it can send; by default that beside Valkey's binary or in PATH, empty for none")
	flags.StringVar(&m.onlyLibraries, "libraries", "", "libraries to measure from end to end, separated by commas; by default all")
	flags.BoolVar(&m.quick, "quick", false, "short rounds and small sizes, for a first look")
	flags.IntVar(&m.rounds, "rounds", 0, "rounds of each row, 0 for 5, or 3 with -quick")
	flags.DurationVar(&m.params.duration, "duration", 0, "length of a round, 0 for 2s, or 700ms with -quick")
	flags.IntVar(&m.keys, "keys", 0, "keys of snapshots and of loading, 0 for 10 million, or 1 million with -quick")
	flags.IntVar(&m.params.threads, "threads", max(1, runtime.NumCPU()/2), "threads of the generator")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if m.rounds == 0 {
		m.rounds = 5
		if m.quick {
			m.rounds = 3
		}
	}
	if m.params.duration == 0 {
		m.params.duration = 2 * time.Second
		if m.quick {
			m.params.duration, m.params.warmup = 700*time.Millisecond, 200*time.Millisecond
		}
	}
	var err error
	if m.programs, err = programs(m.limitkv, m.redis, m.valkey); err != nil {
		return err
	}
	if m.recorded, m.missing, err = recordedWorkloads(m.recordings); err != nil {
		return err
	}
	if len(m.missing) > 0 {
		fmt.Fprintln(os.Stderr, m.leftOut())
	}
	m.started = time.Now()
	for _, part := range []struct {
		name string
		run  func() error
	}{{"throughput", m.measureThroughput}, {"used", m.measureUsed}, {"contended", m.measureContended}, {"libraries", m.measureLibraries}, {"end-to-end", m.measureEndToEnd}, {"few", m.measureFew}, {"latency", m.measureLatency}, {"cores", m.measureCores}, {"memory", m.measureMemory}, {"growth", m.measureGrowth}, {"durability", m.measureDurability}, {"snapshots", m.measureSnapshots}} {
		if m.only == "" || slices.Contains(strings.Split(m.only, ","), part.name) {
			if err := part.run(); err != nil {
				return err
			}
		}
	}
	text := m.document()
	if m.out == "" {
		fmt.Print("\n", text)
		return nil
	}
	return os.WriteFile(m.out, []byte(text), 0o644)
}

// with starts all servers and stops them afterwards.
func (m *matrix) with(f func(targets []*target) error) error {
	return run(m.programs, func(targets []*target, versions []string) error {
		m.versions = versions
		return f(targets)
	})
}

// run starts programs and stops them afterwards.
func run(list []program, f func(targets []*target, versions []string) error) error {
	var targets []*target
	var versions []string
	for _, p := range list {
		s, err := p.start()
		if err != nil {
			return err
		}
		defer s.stop()
		targets = append(targets, s.target)
		versions = append(versions, s.name+" "+s.version)
	}
	return f(targets, versions)
}

// leftOut lists the libraries without a row.
func (m *matrix) leftOut() string {
	return "Left out, since there is no recording of them (`limitkv-benchmark record` makes them): " + strings.Join(m.missing, ", ") + "."
}

func find(name string) *workload { return named(workloads(), name) }

func named(list []*workload, name string) *workload {
	return list[slices.IndexFunc(list, func(w *workload) bool { return w.name == name })]
}

// row measures a claim.
func (m *matrix) row(targets []*target, c claim, p params) (row, error) {
	return m.rowOf(find(c.workload), targets, c, p)
}

func (m *matrix) rowOf(w *workload, targets []*target, c claim, p params) (row, error) {
	p.pipeline = c.pipeline
	if c.connections != 0 {
		p.connections = c.connections
	}
	if c.keys != 0 {
		p.keys = c.keys
	}
	var cells []*cell
	var err error
	if c.against == "" {
		cells, err = compare(w, targets, &p, m.rounds)
	} else {
		cells, err = compareDifferent(w, find(c.against), targets, &p, m.rounds)
	}
	if err != nil {
		return row{}, err
	}
	for _, cell := range cells {
		if cell.Median.Errors > 0 {
			err = fmt.Errorf("%s on %s: %d errors: %s", cell.Median.Workload, cell.Median.Server, cell.Median.Errors, cell.Median.FirstError)
		}
	}
	printCells(os.Stderr, cells)
	return row{claim: c, cells: cells}, err
}

func (m *matrix) measureThroughput() error { return m.measureClaims(claims(), &m.rows) }

func (m *matrix) measureUsed() error { return m.measureClaims(usedClaims(), &m.used) }

// measureClaims measures rows, with both generators if the other one can send them.
func (m *matrix) measureClaims(claims []claim, rows *[]row) error {
	return m.with(func(targets []*target) error {
		for _, c := range claims {
			r, err := m.row(targets, c, m.params)
			if err == nil {
				r.outside, err = m.fromOutside(targets, c)
			}
			if err != nil {
				return err
			}
			*rows = append(*rows, r)
		}
		return nil
	})
}

// measureLibraries replays the recordings. If a server's replies differ from those recorded, the run continues, and the row
// says so.
func (m *matrix) measureLibraries() error {
	return m.with(func(targets []*target) error {
		for _, c := range recordedClaims(m.recorded) {
			r, err := m.rowOf(named(m.recorded, c.workload), targets, c, m.params)
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				r.claim, r.failed = c, err.Error()
			}
			m.libraries = append(m.libraries, r)
		}
		return nil
	})
}

// latencyRows returns the rows for one connection and for 50, 1,000 and 10,000.
func latencyRows() (list []claim) {
	for _, name := range []string{"get", "set", "incr"} {
		for _, n := range []int{1, 50, 1000, 10_000} {
			list = append(list, claim{workload: name, pipeline: 1, connections: n, atLeast: 1})
		}
	}
	for _, name := range []string{"filter", "rate_limiter_acquire"} {
		list = append(list, claim{workload: name, pipeline: 1, connections: 50, atLeast: 1})
	}
	return list
}

// latencyTimes is how many times longer a round for latency is. In one second, the slowest thousandth of the requests may be
// those that one hiccup of the machine delayed, or there may be no hiccup.
const latencyTimes = 5

// measureLatency loads all servers at half of the rate that the slowest one can reach.
func (m *matrix) measureLatency() error {
	return m.with(func(targets []*target) error {
		for _, c := range latencyRows() {
			r, err := m.row(targets, c, m.params)
			if err != nil {
				return err
			}
			p := m.params
			lowest := r.cells[0].Median.PerSecond
			for _, cell := range r.cells {
				lowest = min(lowest, cell.Median.PerSecond)
			}
			p.rate = lowest / 2
			p.duration *= latencyTimes
			if r, err = m.row(targets, c, p); err != nil {
				return err
			}
			m.latency = append(m.latency, r)
		}
		return nil
	})
}

// measureFew sends so few requests that the servers sleep between two: most of the cost is falling asleep and waking up.
func (m *matrix) measureFew() error {
	return m.with(func(targets []*target) error {
		for _, rate := range []float64{300, 1000, 10_000} {
			p := m.params
			p.rate, p.connections = rate, 8
			r, err := m.row(targets, claim{workload: "get", pipeline: 1, cpuAtMost: 1}, p)
			if err != nil {
				return err
			}
			m.few = append(m.few, r)
		}
		return nil
	})
}

// settle is how long a server gets to release unused memory.
const settle = 3 * time.Second

func (m *matrix) measureMemory() error {
	million, hundredThousand, connections := 1_000_000, 100_000, 10_000
	if m.quick {
		connections = 2000
	}
	filled := func(w *workload, keys int) func(s *instance) (float64, error) {
		return func(s *instance) (float64, error) {
			p := m.params
			p.keys = keys
			if err := s.prepare(w, &p); err != nil {
				return 0, err
			}
			time.Sleep(settle)
			return float64(residentBytes(s.pid)) / (1 << 20), nil
		}
	}
	for _, x := range []struct {
		name, unit string
		atMost     float64
		measure    func(s *instance) (float64, error)
	}{
		{"1,000,000 strings (keys of 16 bytes, values of 32)", "MB", 1, filled(find("get"), million)},
		{"a sorted set of 1,000,000 members", "MB", 1.2, filled(find("zadd"), million)},
		{"100,000 hashes of 10 fields", "MB", 1.2, filled(find("hset"), hundredThousand)},
		{"100,000 sorted sets of 10 members", "MB", 1.2, filled(windows(true), hundredThousand)},
		{"the same, where the members come one after the other", "MB", 1.2, filled(windows(false), hundredThousand)},
		{"1,000,000 limiters that were asked once (theirs: counters, by limiter.lua)", "MB", 1, filled(limitersOnce(), million)},
		{"what is left of 1,000,000 strings after FLUSHALL", "MB", 1.3, func(s *instance) (float64, error) { return emptied(s, m.params, million) }},
		{"the same after they have come and expired ten times, to the first time", "times", 0, func(s *instance) (float64, error) { return cycled(s, m.params, million) }},
		{"an idle connection", "bytes", 1, func(s *instance) (float64, error) { return idle(s, connections) }},
		{"nothing (just started)", "MB", 0, func(s *instance) (float64, error) { return float64(residentBytes(s.pid)) / (1 << 20), nil }},
		{"start to first reply", "ms", 1, func(s *instance) (float64, error) { return s.firstReply.Seconds() * 1000, nil }},
	} {
		row := measure{name: x.name, unit: x.unit, atMost: x.atMost}
		rounds := 1
		if x.unit == "ms" {
			rounds = 5
		}
		versions := []string(nil)
		for _, program := range m.programs {
			var values []float64
			for range rounds {
				s, err := program.start()
				if err != nil {
					return err
				}
				v, err := x.measure(s)
				s.stop()
				if err != nil {
					return err
				}
				values = append(values, v)
				if len(values) == 1 {
					versions = append(versions, s.name+" "+s.version)
				}
			}
			slices.Sort(values)
			row.values = append(row.values, values[len(values)/2])
		}
		m.versions = versions
		fmt.Fprintln(os.Stderr, row.name, row.values, row.unit)
		m.memory = append(m.memory, row)
	}
	return nil
}

// idle returns the resident memory of an idle connection that has sent one command.
func idle(s *instance, connections int) (float64, error) {
	time.Sleep(settle) // what only the start needs is released
	before := residentBytes(s.pid)
	var open []net.Conn
	defer func() {
		for _, c := range open {
			c.Close()
		}
	}()
	answer := make([]byte, len("+PONG\r\n"))
	for range connections {
		c, err := net.DialTimeout("tcp", s.addr, dialTimeout)
		if err != nil {
			return 0, err
		}
		open = append(open, c)
		if _, err := c.Write([]byte("*1\r\n$4\r\nPING\r\n")); err != nil {
			return 0, err
		}
		if _, err := c.Read(answer); err != nil {
			return 0, err
		}
	}
	time.Sleep(settle)
	return float64(residentBytes(s.pid)-before) / float64(connections), nil
}

func (m *matrix) measureGrowth() error {
	connections, keys := []int{50, 500, 2000, 10_000}, []int{10_000, 100_000, 1_000_000, 10_000_000}
	if m.quick {
		connections, keys = connections[:3], keys[:3]
	}
	return m.with(func(targets []*target) error {
		g := growth{name: "GET, pipeline 1, by connections", sizes: connections}
		for _, n := range connections {
			p := m.params
			p.connections = n
			if err := m.grow(&g, targets, "get", 1, p); err != nil {
				return err
			}
		}
		m.growth = append(m.growth, g)
		g = growth{name: "GET, pipeline 16, by keys", sizes: keys}
		for _, n := range keys {
			p := m.params
			p.keys = n
			if err := m.grow(&g, targets, "get", 16, p); err != nil {
				return err
			}
		}
		m.growth = append(m.growth, g)
		return nil
	})
}

func (m *matrix) grow(g *growth, targets []*target, workload string, pipeline int, p params) error {
	r, err := m.row(targets, claim{workload: workload, pipeline: pipeline}, p)
	if err != nil {
		return err
	}
	var values []float64
	for _, cell := range r.cells {
		values = append(values, cell.Median.PerSecond)
	}
	g.values = append(g.values, values)
	return nil
}
