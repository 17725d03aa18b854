package journal

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// keep is a sink that stores everything, and checks its places.
type keep struct {
	t    *testing.T
	at   LSN
	text []byte
}

func (k *keep) Append(lsn LSN, _ int64, framed []byte) {
	if lsn != k.at+LSN(len(framed)) {
		k.t.Errorf("a batch of %d bytes ends at %d, the one before it at %d", len(framed), lsn, k.at)
	}
	k.at = lsn
	k.text = append(k.text, framed...)
}

func cmd(args ...string) []byte {
	out := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, a := range args {
		out = fmt.Appendf(out, "$%d\r\n%s\r\n", len(a), a)
	}
	return out
}

// batch is a batch of effects on a database.
func batch(db int, effects ...[]byte) *Batch {
	b := &Batch{}
	for _, e := range effects {
		b.RESP = append(b.RESP, e...)
		b.Effects = append(b.Effects, Effect{DB: db, End: len(b.RESP)})
	}
	return b
}

func TestLogFrames(t *testing.T) {
	l := New()
	if l.Active() || l.Append(batch(0, cmd("SET", "a", "1"))) != 0 || l.End() != 0 {
		t.Fatal("a log that nobody reads went on")
	}
	k := &keep{t: t}
	if at := l.Attach(k); at != 0 || !l.Active() {
		t.Fatalf("attached at %d, active %v", at, l.Active())
	}
	var want []string
	step := func(b *Batch, frames ...[]byte) {
		t.Helper()
		lsn := l.Append(b)
		for _, f := range frames {
			want = append(want, string(f))
		}
		if got := strings.Join(want, ""); string(k.text) != got || lsn != LSN(len(got)) || l.End() != lsn {
			t.Fatalf("lsn %d, end %d, text\n%q\nwant\n%q", lsn, l.End(), k.text, got)
		}
	}
	a, b := cmd("SET", "a", "1"), cmd("DEL", "b")
	both := append(append([]byte(nil), a...), b...)
	step(batch(0, a), cmd("SELECT", "0"), a)
	step(batch(0, b), b)
	step(batch(11, a, b), cmd("MULTI"), cmd("SELECT", "11"), both, cmd("EXEC"))
	apart := batch(11, a, b)
	apart.NoMulti = true
	step(apart, both)
	if lsn := l.Append(&Batch{}); lsn != 0 || l.End() != LSN(len(k.text)) {
		t.Errorf("an empty batch ends at %d", lsn)
	}
	between := &Batch{RESP: both, Effects: []Effect{{DB: 3, End: len(a)}, {DB: 11, End: len(both)}}}
	step(between, cmd("MULTI"), cmd("SELECT", "3"), a, cmd("SELECT", "11"), b, cmd("EXEC"))
	l.kept.db = noDB
	step(batch(11, a), cmd("SELECT", "11"), a)
	step(batch(0, a), cmd("SELECT", "0"), a)

	second, third := &keep{t: t}, &keep{t: t, at: 70}
	l.Follow(second)
	l.FollowFrom(third, 70)
	step(batch(0, b), b)
	if want := string(cmd("SELECT", "0")) + string(b); string(second.text) != want || string(third.text) != want {
		t.Errorf("who came later got %q and %q", second.text, third.text)
	}
	l.Detach(k)
	before := len(k.text)
	l.Append(batch(0, a))
	if len(k.text) != before || !l.Active() {
		t.Error("a sink that was detached got more, or the others are forgotten")
	}
}

// Effects that are ReplicasOnly are in the replicas' stream, with a frame where necessary, and do not move the places of
// the files.
func TestLogOfReplicas(t *testing.T) {
	l := NewAt(1000)
	files, replica := &keep{t: t, at: 1000}, &keep{t: t, at: 7}
	place := l.FollowFrom(replica, 7)
	if !l.Active() || !l.Followed() {
		t.Fatal("nobody knows of the replica")
	}
	set, del, tell := cmd("SET", "a", "1"), cmd("DEL", "b"), cmd("PUBLISH", "c", "m")
	only := func(b *Batch, which ...int) *Batch {
		for _, i := range which {
			b.Effects[i].ReplicasOnly = true
		}
		return b
	}
	var want, wantFiles string
	step := func(b *Batch, forReplica, forFiles [][]byte) {
		t.Helper()
		end := l.End()
		lsn := l.Append(b)
		if b.Followed != replica.at {
			t.Errorf("the batch ends at %d of the replica's stream, it is told %d", replica.at, b.Followed)
		}
		for _, f := range forReplica {
			want += string(f)
		}
		for _, f := range forFiles {
			wantFiles += string(f)
		}
		if string(replica.text) != want || string(files.text) != wantFiles {
			t.Errorf("the replica got\n%q\nnot\n%q\nthe files\n%q\nnot\n%q", replica.text, want, files.text, wantFiles)
		}
		if n := l.End() - end; len(forFiles) == 0 && (lsn != 0 || n != 0) || len(forFiles) != 0 && lsn != l.End() {
			t.Errorf("the batch ends at %d, the files went on by %d to %d", lsn, n, l.End())
		}
	}
	text := func(parts ...[]byte) [][]byte { return parts }
	multi, exec, zero, two := cmd("MULTI"), cmd("EXEC"), cmd("SELECT", "0"), cmd("SELECT", "2")

	step(batch(0, set), text(zero, set), nil)
	if at := l.Attach(files); at != 1000 {
		t.Errorf("the files begin at %d", at)
	}
	step(only(batch(0, tell), 0), text(tell), nil)
	step(batch(0, set), text(set), text(zero, set))
	step(only(batch(2, tell), 0), text(two, tell), nil)
	step(batch(0, set), text(zero, set), text(set))
	step(only(batch(0, tell, tell), 0, 1), text(multi, tell, tell, exec), nil)
	step(only(batch(0, set, tell), 1), text(multi, set, tell, exec), text(set))
	step(only(batch(2, set, tell, del), 1), text(multi, two, set, tell, del, exec), text(multi, two, set, del, exec))
	place.Leave()
	want = string(replica.text)
	replica.at = 0
	step(only(batch(0, tell), 0), nil, nil)
	step(only(batch(0, tell, set), 0), nil, text(zero, set))
	if l.Followed() || !l.Active() {
		t.Error("who reads is not known")
	}
}

func TestLogSkip(t *testing.T) {
	l := New()
	l.Skip(100)
	l.Skip(50)
	k := &keep{t: t, at: 100}
	if at := l.Attach(k); at != 100 {
		t.Fatalf("begins at %d", at)
	}
	if got := l.Append(batch(0, cmd("PING"))); got != LSN(100+len(k.text)) {
		t.Errorf("ended at %d", got)
	}
}

func TestLogOrder(t *testing.T) {
	l := New()
	k := &keep{t: t}
	l.Attach(k)
	const each = 2000
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range each {
				l.Append(batch(g%2, cmd("SET", fmt.Sprint(g), fmt.Sprint(i))))
			}
		})
	}
	wg.Wait()
	next, db, n := [4]int{}, -1, 0
	for rest := string(k.text); rest != ""; n++ {
		var argc int
		var head string
		head, rest, _ = strings.Cut(rest, "\r\n")
		fmt.Sscanf(head, "*%d", &argc)
		var args []string
		for range argc {
			var arg string
			_, rest, _ = strings.Cut(rest, "\r\n")
			arg, rest, _ = strings.Cut(rest, "\r\n")
			args = append(args, arg)
		}
		var a, b int
		fmt.Sscan(args[1], &a)
		if args[0] == "SELECT" {
			db = a
			continue
		}
		fmt.Sscan(args[2], &b)
		if next[a] != b || db != a%2 {
			t.Fatalf("goroutine %d: batch %d in database %d came where %d was due", a, b, db, next[a])
		}
		next[a]++
	}
	if next != [4]int{each, each, each, each} {
		t.Errorf("batches that arrived: %v", next)
	}
}
