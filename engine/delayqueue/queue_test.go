package delayqueue

// The promises of a delay queue, each as a scenario: order, fencing of stale workers, replacing, backoff, names.

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

const start int64 = 1_700_000_000_000_000

func popped(q *Queue, now, lease int64, max int) string {
	var names []string
	q.Pop(now, lease, max, func(e Entry) { names = append(names, string(e.AppendName(nil))) })
	return strings.Join(names, " ")
}

func add(q *Queue, due int64, ids ...string) {
	for _, id := range ids {
		q.Add(due, []byte(id), []byte("payload of "+id), due, nil, Put)
	}
}

// Entries come in order of their due times, equal ones in order of adding.
func TestOrder(t *testing.T) {
	q := New()
	add(q, start+5, "c", "a")
	add(q, start+3, "z", "b")
	if got := popped(q, start+2, 0, 9); got != "" {
		t.Errorf("not due yet: %s", got)
	}
	if got := popped(q, start+4, 0, 1); got != "z" {
		t.Errorf("first due: %s", got)
	}
	if got := popped(q, start+9, 0, 9); got != "b c a" {
		t.Errorf("all due: %s", got)
	}
	if !q.Empty() {
		t.Error("not empty")
	}
}

// With the attempt in its name, a worker whose lease ran out cannot touch the
// next worker's lease.
func TestFencing(t *testing.T) {
	q := New()
	add(q, start, "job")
	if got := popped(q, start, 100, 1); got != "job#1" {
		t.Fatal(got)
	}
	if n, _ := q.Settle(start+100, 9, nil); n != 1 {
		t.Fatal("lease did not end")
	}
	if got := popped(q, start+100, 100, 1); got != "job#2" {
		t.Fatal(got)
	}
	job := []byte("job")
	now := start + 150
	if q.Ack(job, 1, now) || q.Nack(job, 1, now, 0, false, nil) || q.Touch(job, 1, now, now+50) || q.Remove(job, 1, now) {
		t.Error("the stale worker did something")
	}
	if q.Ack(job, 2, start+200) {
		t.Error("acked although the lease has run out")
	}
	if !q.Ack(job, 2, start+199) {
		t.Error("not acked by who holds it")
	}
}

// A leased entry is replaced when the lease is over, and its tries start anew.
func TestReplace(t *testing.T) {
	q := New()
	q.Configure(Settings{Tries: 2, Dead: "dead"})
	add(q, start, "job")
	popped(q, start, 100, 1)
	add(q, start+10, "job")
	if got := popped(q, start+20, 100, 1); got != "" {
		t.Errorf("%s is with two workers", got)
	}
	if !q.Ack([]byte("job"), 1, start+20) {
		t.Error("not acked by who holds it")
	}
	if got := popped(q, start+20, 100, 1); got != "job#2" {
		t.Errorf("%s: the name of a replaced entry must be new", got)
	}
	if q.Nack([]byte("job"), 2, start+30, 0, false, nil); q.Dying() != 0 {
		t.Error("dead after one try")
	}
	popped(q, start+30, 100, 1)
	if q.Nack([]byte("job"), 3, start+40, 0, false, nil); q.Dying() != 1 {
		t.Error("not dead after two tries")
	}
}

func TestBackoff(t *testing.T) {
	for _, test := range []struct{ base, most, failures, want int64 }{
		{0, 0, 1, 0}, {100, 10_000, 1, 100}, {100, 10_000, 2, 200}, {100, 10_000, 5, 1600},
		{100, 1000, 5, 1000}, {100, 50, 1, 50}, {1, 1 << 60, 1 << 40, 1 << 60},
	} {
		s := Settings{BackoffMicros: test.base, BackoffMaxMicros: test.most}
		if got := s.backoff(test.failures); got != test.want {
			t.Errorf("%+v: %d", test, got)
		}
	}
}

func TestNames(t *testing.T) {
	for _, test := range []struct {
		name, id string
		attempt  int64
	}{
		{"job", "job", 0}, {"job#1", "job", 1}, {"job#4294967295", "job", 4294967295}, {"a#b#7", "a#b", 7},
		{"job#", "job#", 0}, {"job#0", "job#0", 0}, {"job#01", "job#01", 0}, {"job#x", "job#x", 0},
		{"job#-1", "job#-1", 0}, {"job#99999999999", "job#99999999999", 0}, {"#1", "", 1}, {"", "", 0},
	} {
		if id, attempt := ParseName([]byte(test.name)); string(id) != test.id || attempt != test.attempt {
			t.Errorf("%s: %s %d", test.name, id, attempt)
		}
	}
	for id, ok := range map[string]bool{"job": true, "": false, "a#1": false, "#": false,
		strings.Repeat("x", IDBytesMax): true, strings.Repeat("x", IDBytesMax+1): false} {
		if err := CheckID([]byte(id)); ok != (err == nil) || !ok && !errors.Is(err, ErrID) {
			t.Errorf("%.20q: %v", id, err)
		}
	}
}

// Ids grow, whatever the clock does.
func TestSerial(t *testing.T) {
	var s Serial
	var all []string
	for _, now := range []int64{1_000_000, 1_000_999, 1_001_000, 500_000, 1_002_000} {
		s = s.Next(now)
		all = append(all, string(s.Append(nil)))
	}
	if got := strings.Join(all, " "); got != "1000-0 1000-1 1001-0 1001-1 1002-0" {
		t.Error(got)
	}
}

func FuzzName(f *testing.F) {
	for _, s := range []string{"job", "job#1", "#", "a#b#7", "job#99999999999"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, name []byte) {
		id, attempt := ParseName(name)
		if attempt < 0 || len(id) > len(name) {
			t.Fatalf("%q: %q %d", name, id, attempt)
		}
		if attempt > 0 {
			e := Entry{ID: id, Attempt: attempt, State: Leased}
			if got := e.AppendName(nil); string(got) != string(name) {
				t.Fatalf("%q is %q again", name, got)
			}
		}
	})
}

// A hundred thousand entries (a million in the long run): how much memory they take, and that none of the steps that
// drain them takes long.
func TestMany(t *testing.T) {
	n := 100_000
	if os.Getenv("LIMITKV_MODEL_STEPS") != "" {
		n = 1_000_000
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	q := New()
	payload := []byte("0123456789abcdef")
	var serial Serial
	id := make([]byte, 0, 32)
	for i := range n {
		serial = serial.Next(start + int64(i))
		id = serial.Append(id[:0])
		q.Add(start, id, payload, start+int64(i%1000), nil, Put)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	each := float64(after.HeapAlloc-before.HeapAlloc) / float64(n)
	counted := float64(q.MemoryUsage()) / float64(n)
	t.Logf("%.0f bytes an entry, %.0f counted", each, counted)
	if each > 160 || counted < each*0.75 || counted > each*1.25 {
		t.Errorf("%.0f bytes an entry, %.0f counted", each, counted)
	}
	if got := q.Count(Ready, start+499); got != n/2 {
		t.Errorf("%d ready of %d", got, n/2)
	}
	last, got := Entry{}, 0
	for q.Pop(start+1000, 1000, 100, func(e Entry) {
		if e.DueMicros < last.DueMicros {
			t.Fatalf("%d after %d", e.DueMicros, last.DueMicros)
		}
		last = e
		got++
	}) > 0 {
	}
	for {
		served, empty := q.Settle(start+2000, 256, nil)
		if served == 0 {
			break
		}
		if empty {
			t.Fatal("empty while entries are due again")
		}
	}
	for q.Pop(start+2000, 0, 100, func(Entry) { got++ }) > 0 {
	}
	if got != 2*n || !q.Empty() {
		t.Errorf("%d delivered of %d, empty %v", got, 2*n, q.Empty())
	}
}

func BenchmarkAddPop(b *testing.B) {
	for _, waiting := range []int{0, 1000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(waiting), func(b *testing.B) {
			q := New()
			payload := []byte("0123456789abcdef")
			var serial Serial
			id := make([]byte, 0, 32)
			for i := range waiting {
				serial = serial.Next(start)
				q.Add(start, serial.Append(id[:0]), payload, start+1000+int64(i), nil, Put)
			}
			b.ReportAllocs()
			for b.Loop() {
				serial = serial.Next(start)
				q.Add(start, serial.Append(id[:0]), payload, start, nil, Put)
				q.Pop(start, 0, 1, func(Entry) {})
			}
		})
	}
}

func BenchmarkLeaseAck(b *testing.B) {
	q := New()
	for i := range 100_000 {
		add(q, start+1000+int64(i), fmt.Sprint("other", i))
	}
	id := []byte("job")
	b.ReportAllocs()
	for b.Loop() {
		q.Add(start, id, id, start, nil, Put)
		q.Pop(start, 100, 1, func(Entry) {})
		q.Ack(id, 0, start)
	}
}

func BenchmarkLen(b *testing.B) {
	q := New()
	for i := range 1_000_000 {
		add(q, start+int64(i), fmt.Sprint(i))
	}
	for b.Loop() {
		q.Count(Ready, start+777_777)
	}
}

// A million groups that fall due together: each is served in the first round, and no delivery takes long.
func TestManyGroups(t *testing.T) {
	if testing.Short() {
		t.Skip("it is about size")
	}
	groups := 100_000
	if os.Getenv("LIMITKV_MODEL_STEPS") != "" {
		groups = 1_000_000
	}
	q := New()
	for i := range groups {
		for j := range 2 {
			q.Add(start, fmt.Appendf(nil, "%d-%d", i, j), []byte("payload"), start+1000, &Extra{Group: fmt.Appendf(nil, "%d", i)}, Put)
		}
	}
	worst, seen := time.Duration(0), map[string]int{}
	for n := range 2 * groups {
		began := time.Now()
		if q.Pop(start+1000, 0, 1, func(e Entry) {
			x := e.Extra()
			seen[string(x.Group)]++
		}) != 1 {
			t.Fatal("nothing is due")
		}
		worst = max(worst, time.Since(began))
		if k := q.rank; k != nil && k.ready.Len() > promotedMax*(n+1) {
			t.Fatalf("%d groups were looked at for %d deliveries", k.ready.Len(), n+1)
		}
		if n == groups-1 && len(seen) < groups {
			t.Fatalf("after a round %d groups of %d were served", len(seen), groups)
		}
	}
	t.Logf("the longest of %d deliveries took %v", 2*groups, worst)
	if !q.Empty() || q.Ranked() {
		t.Errorf("empty %v, ranked %v", q.Empty(), q.Ranked())
	}
}

// The cost of a delivery does not depend on the number of groups.
func BenchmarkGroups(b *testing.B) {
	for _, groups := range []int{10, 1000, 1_000_000} {
		b.Run(fmt.Sprint(groups), func(b *testing.B) {
			q := New()
			add := func(i int) {
				name := fmt.Appendf(nil, "%d", i)
				q.Add(start, name, name, start, &Extra{Group: name}, Put)
			}
			for i := range groups {
				add(i)
			}
			q.Configure(Settings{GroupConc: 1})
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if q.Pop(start, 0, 1, func(e Entry) {}) != 1 {
					b.Fatal("nothing is due")
				}
				b.StopTimer()
				add(groups + i)
				b.StartTimer()
			}
		})
	}
}
