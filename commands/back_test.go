// Durations while the clock goes back.
package commands_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/commands/livetest"
)

// longMs is longer than the test runs.
const longMs = 10_000_000

// numbers are the integers of a reply.
func numbers(t *testing.T, reply string) (list []int64) {
	t.Helper()
	for _, w := range strings.FieldsFunc(reply, func(r rune) bool { return strings.ContainsRune("[] ", r) }) {
		if n, err := strconv.ParseInt(w, 10, 64); err == nil {
			list = append(list, n)
		}
	}
	if len(list) == 0 {
		t.Fatalf("no integer in %s", reply)
	}
	return list
}

func TestClockBackKeepsLengths(t *testing.T) {
	for _, by := range clockSteps {
		t.Run(by.String(), func(t *testing.T) {
			s := startStepping(t)
			c, popper := s.Client(), s.Client()
			c.Want("OK", "LKV.JOURNAL", "START")
			// refused is when a command's request would be granted, the nth integer of its reply.
			refused := func(nth int, line string) func() int64 {
				return func() int64 { return numbers(t, c.Line(line))[nth] }
			}
			// due is how much later the only entry of a queue falls due, or its lease ends.
			due := func(line string) func() int64 {
				return func() int64 { return numbers(t, c.Line(line))[0] - s.Now() }
			}
			left := map[string]func() int64{
				"a lock":      refused(2, "LK.ACQUIRE lock b 1"),
				"a semaphore": refused(2, "LK.ACQUIRE permits z 1 OF 9"),
				"a grant":     refused(3, "RL.ACQUIRE conc ID y LEASE 1"),
				"a lease":     due("DQ.PEEK leased LEASED"),
				"a back-off":  due("DQ.PEEK failed"),
				"EVERY":       due("DQ.PEEK every"),
				"a due entry": due("DQ.PEEK ready"),
			}
			for _, rule := range []string{"GCRA", "GCRA3", "LOG", "WINDOW", "FIXED"} {
				name, _ := strings.CutSuffix(rule, "3")
				line := fmt.Sprintf("RL.ACQUIRE %s %s 1 %d", rule, name, longMs)
				if rule != name { // a state of one word and a fraction, and two rules
					line = fmt.Sprintf("RL.ACQUIRE %s 3 GCRA 3 %d FIXED 3 %d", rule, longMs, longMs)
				}
				c.Line(line)
				left[rule] = refused(3, line)
			}
			for _, line := range []string{
				fmt.Sprintf("LK.ACQUIRE lock a %d", longMs), fmt.Sprintf("RL.ACQUIRE conc ID x LEASE %d CONC 1", longMs),
				"DQ.ADD leased ID a p", fmt.Sprintf("DQ.POP leased LEASE %d", longMs),
				"DQ.ADD failed ID a p", fmt.Sprintf("DQ.POP failed LEASE %d", longMs), fmt.Sprintf("DQ.NACK failed a DELAY %d", longMs),
				fmt.Sprintf("DQ.ADD every ID a EVERY %d p", longMs),
				"DQ.ADD ready ID a p",
				fmt.Sprintf("DQ.ADD at ID a AT %d p", s.Now()+longMs),
			} {
				if got := c.Line(line); strings.HasPrefix(got, "-") || got == "nil" {
					t.Fatalf("%s: %s", line, got)
				}
			}
			for i := range 9 { // more than are stored as bytes
				c.Line(fmt.Sprintf("LK.ACQUIRE permits %d %d OF 9", i, longMs))
			}
			popper.Send("DQ.POP", "none", "BLOCK", longMs)
			s.Blocked(1)
			type reading struct {
				ms           int64
				began, ended time.Time
			}
			read := func() map[string]reading {
				m := map[string]reading{}
				for name, ask := range left {
					r := reading{began: time.Now()}
					r.ms, r.ended = ask(), time.Now()
					m[name] = r
				}
				return m
			}
			before, at := read(), c.Do("DQ.PEEK", "at")
			s.step(-by)
			after := read()
			for name, was := range before {
				is := after[name]
				const rounded = 3 // ms
				most := was.ms - is.began.Sub(was.ended).Milliseconds() + rounded
				least := was.ms - is.ended.Sub(was.began).Milliseconds() - rounded
				if is.ms < least || is.ms > most {
					t.Errorf("%s: %d ms were left, and %d are: want %d to %d", name, was.ms, is.ms, least, most)
				}
			}
			c.Want(at, "DQ.PEEK", "at")
			c.Want("OK", "LKV.JOURNAL", "CHECK")
		})
	}
}

// backModel is the expected state of a server's keys when its clock goes forward and back. wall is the time that the clock
// shows, elapsed the time that has passed, both in ms.
type backModel struct {
	t             *testing.T
	s             *livetest.Server
	c             *livetest.Client
	rng           *rand.Rand
	wall, elapsed int64
	ends          map[string]int64 // of leases and windows, by elapsed time
	keys          map[string]int64 // deadlines of keys, by wall time
	calUsed       int64
	calDay        int64 // the day in which it was used
	back, ended   int   // how often the clock went back, and how much ended after a step back
	steps         map[string]int
	names         int
}

const dayMs = 86_400_000

func TestClockBackModel(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if given := os.Getenv("LIMITKV_SEED"); given != "" {
		seed, _ = strconv.ParseUint(given, 10, 64)
	}
	t.Logf("LIMITKV_SEED=%d", seed)
	s := livetest.Start(t)
	m := &backModel{t: t, s: s, c: s.Client(), rng: rand.New(rand.NewPCG(seed, 0)), wall: livetest.Epoch,
		ends: map[string]int64{}, keys: map[string]int64{}, steps: map[string]int{}}
	m.c.Want("OK", "LKV.JOURNAL", "START")
	for range 4000 {
		m.step()
		if t.Failed() {
			t.Fatalf("after %d ms, of which the clock shows %d", m.elapsed, m.wall-livetest.Epoch)
		}
	}
	m.c.Want("OK", "LKV.JOURNAL", "CHECK")
	if m.back < 50 || m.ended < 50 {
		t.Errorf("the clock went back %d times, and %d leases and windows ended behind that", m.back, m.ended)
	}
}

func (m *backModel) step() {
	switch n := m.rng.IntN(20); {
	case n == 0:
		m.setBack([]int64{1, 1000, 3_600_000, 30 * dayMs, m.rng.Int64N(100_000)}[m.rng.IntN(5)])
	case n == 1 && m.rng.IntN(10) == 0:
		m.advance([]int64{3_600_000, dayMs, 30 * dayMs}[m.rng.IntN(3)])
	case n < 8:
		m.advance(m.rng.Int64N(3000))
	case n < 11:
		m.lock(fmt.Sprint("lock", m.rng.IntN(3)))
	case n < 16:
		m.limiter([]string{"GCRA", "LOG", "WINDOW", "FIXED", "CONC"}[m.rng.IntN(5)])
	case n == 16:
		m.calendar()
	case n == 17:
		m.queue()
	default:
		m.key(fmt.Sprint("key", m.rng.IntN(3)))
	}
}

func (m *backModel) advance(ms int64) {
	m.s.Advance(ms)
	m.elapsed += ms
	m.wall += ms
	if m.wall/dayMs > m.calDay {
		m.calUsed = 0 // it is idle, and is removed
	}
	for name, at := range m.keys {
		if at < m.wall {
			delete(m.keys, name)
		}
	}
}

func (m *backModel) setBack(ms int64) {
	m.s.Keyspace.Sched.SetBack(ms * 1000)
	m.wall -= ms
	m.back++
	m.calDay = min(m.calDay, m.wall/dayMs)
	if got := m.s.Now(); got != m.wall {
		m.t.Errorf("the clock shows %d, want %d", got, m.wall)
	}
	m.steps = map[string]int{}
	for name := range m.ends {
		m.steps[name] = m.back
	}
}

// left is how long something still lasts, 0 if it is over.
func (m *backModel) left(name string) int64 {
	end, ok := m.ends[name]
	if ok && end <= m.elapsed {
		delete(m.ends, name)
		if m.steps[name] > 0 {
			m.ended++
		}
		delete(m.steps, name)
		return 0
	}
	return max(end-m.elapsed, 0)
}

// name is a new name.
func (m *backModel) name() string {
	m.names++
	return strconv.Itoa(m.names)
}

func (m *backModel) lock(name string) {
	ms := 1 + m.rng.Int64N(5000)
	left := m.left(name)
	got := numbers(m.t, m.c.Do("LK.ACQUIRE", name, m.name(), ms))
	if (got[0] == 0) != (left > 0) || left > 0 && got[2] != left {
		m.t.Errorf("%s: %v, with %d ms left", name, got, left)
	}
	if left == 0 {
		m.ends[name] = m.elapsed + ms
	}
}

func (m *backModel) limiter(rule string) {
	const period = 2000
	line := fmt.Sprintf("RL.ACQUIRE %s %s 1 %d", rule, rule, period)
	if rule == "CONC" {
		line = fmt.Sprintf("RL.ACQUIRE CONC ID %s LEASE %d CONC 1", m.name(), period)
	}
	left := m.left(rule)
	got := numbers(m.t, m.c.Line(line))
	if rule == "WINDOW" { // a part of it comes back sooner
		if got[0] == 1 && left == 0 || got[0] == 1 && got[3] > left {
			m.t.Errorf("WINDOW: %v, with %d ms left", got, left)
		}
		if got[0] == 0 {
			m.ends[rule] = m.elapsed + 2*period
		}
		return
	}
	if (got[0] == 1) != (left > 0) || left > 0 && got[3] != left {
		m.t.Errorf("%s: %v, with %d ms left", rule, got, left)
	}
	if left == 0 {
		m.ends[rule] = m.elapsed + period
	}
}

func (m *backModel) calendar() {
	if day := m.wall / dayMs; day > m.calDay || m.calUsed == 0 {
		m.calDay, m.calUsed = day, 0
	}
	const most = 5
	got := numbers(m.t, m.c.Line("RL.ACQUIRE CAL CAL 5 DAY"))
	if (got[0] == 1) != (m.calUsed == most) || got[0] == 1 && got[3] != (m.calDay+1)*dayMs-m.wall {
		m.t.Errorf("CAL: %v, of which %d were used on day %d, at %d", got, m.calUsed, m.calDay, m.wall)
	}
	m.calUsed = min(m.calUsed+1, most)
}

func (m *backModel) queue() {
	const lease = 1500
	left := m.left("queue")
	if m.c.Do("DQ.LEN", "queue") == "0" {
		m.c.Want("job", "DQ.ADD", "queue", "ID", "job", "AT", m.wall, "p")
	}
	got := m.c.Do("DQ.POP", "queue", "LEASE", lease)
	if (got == "nil") != (left > 0) {
		m.t.Errorf("queue: %s, with %d ms left", got, left)
	}
	if left == 0 {
		m.ends["queue"] = m.elapsed + lease
	}
}

func (m *backModel) key(name string) {
	if _, ok := m.keys[name]; !ok {
		m.c.Want("nil", "GET", name)
		m.keys[name] = m.wall + 1 + m.rng.Int64N(5000)
		m.c.Want("OK", "SET", name, "v", "PXAT", m.keys[name])
		return
	}
	m.c.Want(strconv.FormatInt(m.keys[name], 10), "PEXPIRETIME", name)
}
