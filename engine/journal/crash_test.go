package journal

// The crash test does random work on the simulated file system, with errors and a crash at a random call. Then the
// machine starts again, and the loaded log is compared with what was acknowledged.

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/limitkv/limitkv/engine/vfs"
	"github.com/limitkv/limitkv/engine/vfs/simfs"
)

var (
	crashRuns = flag.Int("crash.runs", 300, "how many seeds the crash test runs")
	crashSeed = flag.Uint64("crash.seed", 0, "the first seed of the crash test")
	crashLog  = flag.Bool("crash.log", false, "print what happens")
)

// model is what the log should contain: batches numbered from 1, each with the life in which it was written.
type model struct {
	t     *testing.T
	seed  uint64
	rng   *rand.Rand
	disk  *simfs.FS
	clock int64

	lives []int // at i-1: the life in which batch i was written
	lsns  []LSN // at i-1: the place after batch i
	acked int   // batches up to here were acknowledged as durable
	kept  int   // batches up to here survive the end of the process, if the machine stays up
	life  int

	log    *Log
	files  *Files
	writer *writer
	cut    *Cut
	cutAt  int // number of batches before the cut
	round  bool

	seen map[string]int
}

func (m *model) logf(format string, args ...any) {
	if *crashLog {
		fmt.Printf(format+"\n", args...)
	}
}

func (m *model) fatal(format string, args ...any) {
	m.t.Helper()
	m.t.Fatalf("seed %d, life %d: %s", m.seed, m.life, fmt.Sprintf(format, args...))
}

func (m *model) options() Options {
	return Options{FS: m.disk, Dir: "/data", Dirname: "log dir", Filename: "append only.aof", Monotonic: func() int64 { return m.clock },
		Log: func(_ Level, line string) { m.logf("  log: %s", line) }}
}

// batch is the RESP of a batch of so many effects, each with its number.
func (m *model) batch() *Batch {
	id, effects := len(m.lives)+1, 1+m.rng.IntN(3)
	b, db := &Batch{NowMicros: 1_700_000_000_000_000 + m.clock}, m.rng.IntN(3)
	for k := range effects {
		var value []byte
		switch m.rng.IntN(12) {
		case 0:
			value = make([]byte, m.rng.IntN(3000)) // Zeros, like a missing sector.
		case 1:
			value = bytes.Repeat([]byte("#LKV1 g \r\n*1\r\n$4\r\nEXEC\r\n"), m.rng.IntN(40))
		case 2:
			value = bytes.Repeat([]byte{'x'}, m.rng.IntN(600))
		}
		if m.rng.IntN(8) == 0 {
			db = m.rng.IntN(3)
		}
		b.RESP = append(b.RESP, cmd("ADD", strconv.Itoa(db), strconv.Itoa(m.life), strconv.Itoa(id), strconv.Itoa(k), strconv.Itoa(effects), string(value))...)
		b.Effects = append(b.Effects, Effect{DB: db, End: len(b.RESP)})
	}
	return b
}

// start opens the files, loads them, compares, and starts a writer that the test steps.
func (m *model) start() (err error) {
	files, err := Open(m.options())
	if err != nil {
		return err
	}
	m.files = files
	defer func() {
		if err != nil {
			_ = files.Close() // The next one opens them.
		}
	}()
	n := 0
	loaded, err := files.Load(LoadOptions{Truncated: true, Apply: func(u *Unit) error {
		id, err := m.apply(u, n)
		n = id
		return err
	}})
	if err != nil {
		return err
	}
	m.logf("life %d: loaded %d of %d batches (acked %d, kept %d), end %d, cut %d bytes", m.life, n, len(m.lives), m.acked, m.kept, loaded.End, loaded.Cut)
	if n < m.acked || n < m.kept || n > len(m.lives) {
		m.fatal("%d batches are there, %d were durable, %d outlive the process, of %d", n, m.acked, m.kept, len(m.lives))
	}
	if n > 0 && loaded.End < m.lsns[n-1] {
		m.fatal("the log ends at %d, its last batch at %d", loaded.End, m.lsns[n-1])
	}
	if loaded.Cut > 0 {
		m.seen["cut"]++
	}
	if n < len(m.lives) {
		m.seen["lost"]++
	}
	m.lives, m.lsns, m.kept = m.lives[:n], m.lsns[:n], 0
	starting := files.NeedsBase() && m.rng.IntN(3) == 0
	if files.NeedsBase() && !starting && m.rng.IntN(2) == 0 {
		if err := files.CreateBase(false, func(f vfs.File) error { return m.base(f, n, 0) }); err != nil {
			return err
		}
	}
	m.log = NewAt(loaded.End)
	o := WriterOptions{Policy: Policy(m.rng.IntN(3)), Timestamps: m.rng.IntN(3) == 0, Checksums: true}
	if m.rng.IntN(2) == 0 {
		o.Beside = &simfs.Beside{Runs: func() bool { return m.rng.IntN(4) == 0 }}
		o.InRound = func() bool { return m.round }
	}
	m.round = false
	m.writer = newWriter(files, m.log, o)
	m.writer.inline = true
	m.cut = nil
	if starting {
		return nil // The log is turned on by the first cut.
	}
	if err := m.writer.open(); err != nil {
		return err
	}
	m.acknowledge()
	return nil
}

// apply checks a unit that follows n batches, and returns the number of batches with it.
func (m *model) apply(u *Unit, n int) (int, error) {
	for k, c := range u.Commands {
		var args [6]int
		for i := 1; i < len(c.Args) && i < 6; i++ {
			args[i], _ = strconv.Atoi(string(c.Args[i]))
		}
		switch word := string(c.Args[0]); {
		case word == "BASE" && k == 0 && len(u.Commands) == 1 && n == 0:
			for i := range args[1] {
				if life, _ := strconv.Atoi(string(c.Args[2+i])); life != m.lives[i] {
					m.fatal("batch %d of the BASE is of life %d, not %d", i+1, life, m.lives[i])
				}
			}
			return args[1], nil
		case word != "ADD" || c.DB != args[1] || args[3] != n+1 || args[4] != k || args[5] != len(u.Commands):
			m.fatal("behind %d batches comes %.80q in database %d, as effect %d of %d", n, c.Args, c.DB, k, len(u.Commands))
		case n >= len(m.lives) || args[2] != m.lives[n]:
			m.fatal("batch %d is of life %d, of %v", n+1, args[2], m.lives[min(n, len(m.lives)):])
		}
	}
	return n + 1, nil
}

// base writes a BASE of the first n batches.
func (m *model) base(f vfs.File, n int, at LSN) error {
	w, err := NewCommandWriter(f, at, m.clock, m.rng.IntN(2) == 0, m.rng.IntN(2) == 0)
	if err != nil {
		return err
	}
	args := []string{"BASE", strconv.Itoa(n)}
	for _, life := range m.lives[:n] {
		args = append(args, strconv.Itoa(life))
	}
	if err := w.Append(cmd(args...)); err != nil {
		return err
	}
	return w.Flush()
}

// acknowledge updates what may be acknowledged now.
func (m *model) acknowledge() {
	if m.writer.State() == Starting {
		return
	}
	for m.acked < len(m.lsns) && m.lsns[m.acked] <= m.writer.Durable() {
		m.acked++
	}
	if m.writer.State() == Running {
		for m.kept < len(m.lsns) && m.lsns[m.kept] <= m.writer.Written() {
			m.kept++
		}
	}
}

// step runs a step of the writer's goroutine or of an event loop.
func (m *model) step() {
	switch beside := m.writer.o.Beside != nil; {
	case beside && m.rng.IntN(3) == 0:
		m.round = !m.round
		if !m.round {
			m.seen["round"]++
			m.writer.Round()
		}
	case beside && m.rng.IntN(2) == 0:
		if m.writer.inFlight {
			m.seen["synced beside"]++
		}
		m.writer.Synced()
	default:
		m.goroutine()
	}
	m.acknowledge()
}

// goroutine runs what the writer's goroutine does when it is woken.
func (m *model) goroutine() {
	m.writer.step()
	m.acknowledge()
}

// work does one thing at random.
func (m *model) work() {
	w := m.writer
	switch r := m.rng.IntN(100); {
	case r < 50:
		b := m.batch()
		m.lives = append(m.lives, m.life)
		m.lsns = append(m.lsns, m.log.Append(b))
	case r < 75:
		m.step()
	case r < 82:
		m.clock += int64(m.rng.IntN(1_200_000))
		m.step()
	case r < 85:
		w.force = m.log.End()
		m.step()
	case r < 88:
		w.SetPolicy(Policy(m.rng.IntN(3)))
	case r < 90:
		w.SetTimestamps(m.rng.IntN(2) == 0)
	case r < 91:
		w.Suspend(m.rng.IntN(3) == 0)
	case m.cut == nil:
		if cut, err := w.Rotate(); err == nil {
			m.cut, m.cutAt = cut, len(m.lives)
			m.seen["rotate"]++
		}
	default:
		m.rewrite()
	}
}

// rewrite continues with a cut.
func (m *model) rewrite() {
	select {
	case <-m.cut.ready:
	default:
		if m.rng.IntN(4) > 0 {
			m.step()
			return
		}
		m.cut.Abort()
		m.cut = nil
		return
	}
	fresh := m.cut.fresh
	f, err := m.cut.Create()
	if err == nil {
		if err = m.base(f, m.cutAt, m.cut.LSN); err == nil && m.rng.IntN(8) > 0 {
			err = m.cut.Commit(f, false)
			m.logf("  commit of %d batches: %v", m.cutAt, err)
			if err == nil {
				m.seen["commit"]++
				if fresh {
					m.seen["healed by a BASE"]++
				}
			}
		} else {
			_ = f.Close()
		}
	}
	m.cut.Abort()
	m.cut = nil
	m.acknowledge()
}

// plan crashes at one call and fails others at random.
func (m *model) plan(crashAt int, failures float64) func(simfs.Call) simfs.Accident {
	full := 0
	return func(c simfs.Call) simfs.Accident {
		switch {
		case c.N == crashAt:
			m.logf("  crash at call %d, %d of %s", c.N, c.Kind, c.Path)
			return simfs.Accident{Crash: true}
		case full > 0 && (c.Kind == simfs.Write || c.Kind == simfs.Create):
			full--
			return simfs.Accident{Err: syscall.ENOSPC, Bytes: m.rng.IntN(200)}
		case m.rng.Float64() >= failures:
			return simfs.Accident{}
		}
		errs := []error{syscall.EIO, syscall.ENOSPC, syscall.EROFS, syscall.EACCES, syscall.ENOENT}
		if c.Kind == simfs.Stat {
			errs = errs[:4] // The caller would believe that the file does not exist.
		}
		a := simfs.Accident{Err: errs[m.rng.IntN(len(errs))], Bytes: m.rng.IntN(200)}
		if a.Err == syscall.ENOSPC {
			full = m.rng.IntN(6)
		}
		m.seen["errors"]++
		m.logf("  call %d, %d of %s: %v", c.N, c.Kind, c.Path, a.Err)
		return a
	}
}

// live is one life of the server, which ends with a crash or properly.
func (m *model) live() {
	m.life++
	crashAt, failures := 0, 0.0
	if m.rng.IntN(5) > 0 {
		crashAt = m.disk.Calls() + 1 + m.rng.IntN(1<<(3+m.rng.IntN(6)))
	}
	if m.rng.IntN(2) == 0 {
		failures = 0.03
	}
	m.disk.Plan(m.plan(crashAt, failures))
	err := m.start()
	var damage *Damage
	if errors.As(err, &damage) {
		m.fatal("refused: %v", err)
	}
	if err != nil {
		m.logf("life %d: start: %v", m.life, err)
		m.seen["did not start"]++
	}
	for n := 20 + m.rng.IntN(100); n > 0 && err == nil && !m.disk.Down(); n-- {
		m.work()
		m.seen[fmt.Sprint("state ", m.writer.State())]++
	}
	if m.disk.Down() {
		m.seen["crash"]++
	} else if err == nil && m.rng.IntN(2) == 0 {
		m.disk.Plan(nil)
		if state := m.writer.State(); state == Running && m.cut == nil {
			m.writer.end()
			if err := m.writer.Failure().Err; err != nil {
				m.fatal("closing: %v", err)
			}
			m.acked = len(m.lives)
			m.seen["closed"]++
		}
	}
	power := m.rng.IntN(3) > 0
	if power {
		m.kept = 0
	}
	m.disk.Crash()
	m.disk.Restart(power)
	m.disk.Plan(nil)
}

func TestCrash(t *testing.T) {
	seen := map[string]int{}
	for seed := *crashSeed; seed < *crashSeed+uint64(*crashRuns); seed++ {
		crashRun(t, seed, seen)
	}
	var short []string
	for _, what := range []string{"round", "synced beside", "cut", "lost", "rotate", "commit", "healed by a BASE", "errors", "crash", "closed", "did not start", "state 0", "state 2", "state 3"} {
		if seen[what] < max(1, *crashRuns/100) {
			short = append(short, what)
		}
	}
	t.Logf("%d seeds from %d: %v", *crashRuns, *crashSeed, seen)
	if len(short) > 0 && *crashRuns >= 100 {
		t.Errorf("too seldom: %s", strings.Join(short, ", "))
	}
}

// TestErrorsInTurn fails each call of a run in turn, once and for a while, with each error. When the disk works again,
// the log recovers, and nothing is lost.
func TestErrorsInTurn(t *testing.T) {
	seen := map[string]int{}
	faults := 0
	for _, errno := range []error{syscall.ENOSPC, syscall.EIO, syscall.EROFS, syscall.EACCES, syscall.EDQUOT} {
		for _, calls := range []int{1, 25} {
			for seed := range uint64(3) {
				for at := 1; errorRun(t, seed, at, calls, errno, seen); at++ {
					faults++
				}
			}
		}
	}
	t.Logf("%d faults: %v", faults, seen)
	if faults < 1000 {
		t.Errorf("only %d faults", faults)
	}
}

// errorRun fails so many calls from a given one on, and reports whether there was such a call.
func errorRun(t *testing.T, seed uint64, at, calls int, errno error, seen map[string]int) (failed bool) {
	m := newModel(t, seed, seen)
	m.disk.Plan(func(c simfs.Call) simfs.Accident {
		if c.N < at || c.N >= at+calls {
			return simfs.Accident{}
		}
		failed = true
		return simfs.Accident{Err: errno, Bytes: 10}
	})
	m.life++
	err := m.start()
	for range 5 {
		if err == nil {
			break
		}
		m.disk.Plan(nil)
		err = m.start()
	}
	if err != nil {
		m.fatal("call %d, %v: start: %v", at, errno, err)
	}
	for range 60 {
		m.work()
	}
	m.disk.Plan(nil)
	for n := 0; m.writer.State() != Running || m.cut != nil; n++ {
		m.clock += retryMicros
		m.goroutine()
		if m.cut != nil {
			m.rewrite()
		} else if cut, err := m.writer.Rotate(); err == nil {
			m.cut, m.cutAt = cut, len(m.lives)
		}
		if n > 200 {
			m.fatal("call %d, %v: does not heal: state %d, %v", at, errno, m.writer.State(), m.writer.Failure().Err)
		}
	}
	m.writer.Suspend(false)
	m.writer.force = m.log.End()
	if m.goroutine(); m.acked != len(m.lives) {
		m.fatal("call %d, %v: %d of %d are durable on a disk that is well", at, errno, m.acked, len(m.lives))
	}
	m.disk.Crash()
	m.disk.Restart(true)
	m.life++
	if err := m.start(); err != nil || len(m.lives) != m.acked {
		m.fatal("call %d, %v: the next start: %v", at, errno, err)
	}
	return failed
}

func newModel(t *testing.T, seed uint64, seen map[string]int) *model {
	m := &model{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 11)), disk: simfs.New(seed), seen: seen}
	if err := errors.Join(m.disk.Mkdir("/data"), m.disk.SyncDir("/")); err != nil {
		t.Fatal(err)
	}
	return m
}

func crashRun(t *testing.T, seed uint64, seen map[string]int) {
	m := newModel(t, seed, seen)
	for range 6 {
		m.live()
	}
	m.life++
	if err := m.start(); err != nil {
		m.fatal("the last start: %v", err)
	}
}
