// The commands of locks, one after the other and by several clients, with a clock that the test moves. Fences are shown as
// they are: the clock stands at the epoch, so the first fence is its time in microseconds.
package lock_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/commands/livetest"
)

// fence is the nth fence of a server whose clock has not moved.
func fence(n int64) int64 { return livetest.Epoch*1000 + n }

func granted(n, ms int64) string { return fmt.Sprintf("[1 %d %d 0]", fence(n), ms) }

func refused(n, ms int64, ahead int) string { return fmt.Sprintf("[0 %d %d %d]", fence(n), ms, ahead) }

func contains(text string, parts ...string) bool {
	for _, p := range parts {
		if !strings.Contains(text, p) {
			return false
		}
	}
	return true
}

func TestMutex(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	c.Want(granted(0, 5000), "LK.ACQUIRE", "k", "a", 5000)
	c.Want("lock", "TYPE", "k")
	c.Want(refused(0, 5000, 0), "LK.ACQUIRE", "k", "b", 5000)
	s.Advance(1000)
	c.Want(refused(0, 4000, 0), "LK.ACQUIRE", "k", "b", 5000)
	// The same owner again: the same fence, a new lease.
	c.Want(granted(0, 7000), "LK.ACQUIRE", "k", "a", 7000)
	c.Want("0", "LK.RELEASE", "k", "b")
	c.Want("0", "LK.RELEASE", "k", "a", 17)
	c.Want("0", "LK.RELEASE", "k", "a", 0)
	c.Want("1", "LK.RELEASE", "k", "a", fence(0))
	c.Want("0", "LK.RELEASE", "k", "a")
	c.Want("0", "DBSIZE")
	// The lease ends by itself, and callers see that at once.
	c.Want(fmt.Sprintf("[1 %d 100 0]", s.Now()*1000), "LK.ACQUIRE", "k", "b", 100)
	s.Advance(99)
	c.Want("1", "EXISTS", "k")
	s.Advance(1)
	c.Want("0", "EXISTS", "k")
	c.Want("0", "LK.RELEASE", "k", "b")
	c.Want("0", "LK.TOUCH", "b", 100, "k")
}

func TestLine(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	c.Want(granted(0, 5000), "LK.ACQUIRE", "k", "a", 5000)
	var line []*livetest.Client
	for i := range 4 {
		w := s.Client()
		w.Send("LK.ACQUIRE", "k", fmt.Sprint("w", i), 1000, "BLOCK", 0)
		line = append(line, w)
		s.Blocked(int64(i + 1))
	}
	c.Want(refused(0, 5000, 4), "LK.ACQUIRE", "k", "b", 1)
	line[1].Close() // whoever disconnects leaves the line
	s.Blocked(3)
	c.Want("1", "LK.RELEASE", "k", "a")
	if got := line[0].Read(); got != granted(1, 1000) {
		t.Error(got)
	}
	c.Want(refused(1, 1000, 2), "LK.ACQUIRE", "k", "b", 1) // nobody barges
	s.Advance(999)
	line[2].Silent()
	s.Advance(1) // the lease ends
	if got := line[2].Read(); got != fmt.Sprintf("[1 %d 1000 0]", s.Now()*1000) {
		t.Error(got)
	}
	c.Want("1", "DEL", "k")
	if got := line[3].Read(); got != fmt.Sprintf("[1 %d 1000 0]", s.Now()*1000+1) {
		t.Error(got)
	}
	s.Blocked(0)
}

// start starts a server whose journal is replayed at the end: its effects must make the same locks.
func start(t *testing.T) (*livetest.Server, *livetest.Client) {
	s := livetest.Start(t)
	c := s.Client()
	c.Want("OK", "LKV.JOURNAL", "START")
	t.Cleanup(func() {
		if !t.Failed() {
			s.Client().Want("OK", "LKV.JOURNAL", "CHECK")
		}
	})
	return s, c
}

// An owner that stands in the line twice, because its first connection hung, gets both calls answered by one grant. The
// others keep their order.
func TestOwnerTwiceInLine(t *testing.T) {
	s, c := start(t)
	if got := c.Do("LK.ACQUIRE", "k", "holder", 60_000); !strings.HasPrefix(got, "[1 ") {
		t.Fatal(got)
	}
	wait := func(owner string, n int64) *livetest.Client {
		w := s.Client()
		w.Send("LK.ACQUIRE", "k", owner, 60_000, "BLOCK", 0)
		s.Blocked(n)
		return w
	}
	first, other, again, once := wait("twice", 1), wait("other", 2), wait("twice", 3), wait("twice", 4)
	last := wait("last", 5)
	c.Want("1", "LK.RELEASE", "k", "holder")
	one := first.Read()
	if two, three := again.Read(), once.Read(); !strings.HasPrefix(one, "[1 ") || two != one || three != one {
		t.Errorf("one grant was answered with %s, %s, %s", one, two, three)
	}
	s.Blocked(2)
	c.Want("1", "LK.RELEASE", "k", "twice")
	if got := other.Read(); !strings.HasPrefix(got, "[1 ") {
		t.Error(got)
	}
	s.Blocked(1)
	// A call in another mode is answered as if it came now. A call that cannot be granted continues to wait.
	reader := s.Client()
	reader.Send("LK.ACQUIRE", "k", "last", 60_000, "SHARED", "BLOCK", 0)
	s.Blocked(2)
	c.Want("1", "LK.RELEASE", "k", "other")
	if got := last.Read(); !strings.HasPrefix(got, "[1 ") {
		t.Error(got)
	}
	if got := reader.Read(); !strings.HasPrefix(got, "[1 ") {
		t.Error(got)
	}
	s.Blocked(0)
}

func TestReadersAndWriters(t *testing.T) {
	s, c := start(t)
	c.Want(granted(0, 5000), "LK.ACQUIRE", "k", "r1", 5000, "SHARED")
	c.Want(granted(1, 9000), "LK.ACQUIRE", "k", "r2", 9000, "SHARED")
	c.Want(refused(1, 9000, 0), "LK.ACQUIRE", "k", "w", 5000) // until the last reader's lease ends
	c.Want(refused(1, 9000, 0), "LK.ACQUIRE", "k", "p", 5000, "OF", 3)
	w, r := s.Client(), s.Client()
	w.Send("LK.ACQUIRE", "k", "w", 100, "BLOCK", 0)
	s.Blocked(1)
	r.Send("LK.ACQUIRE", "k", "r3", 100, "SHARED", "BLOCK", 0)
	s.Blocked(2)
	// A waiting writer stops later readers; a present reader continues.
	c.Want(refused(1, 9000, 2), "LK.ACQUIRE", "k", "r4", 5000, "SHARED")
	c.Want(granted(0, 7000), "LK.ACQUIRE", "k", "r1", 7000, "SHARED")
	c.Want("1", "LK.RELEASE", "k", "r2")
	c.Want("1", "LK.RELEASE", "k", "r1")
	if got := w.Read(); got != granted(2, 100) {
		t.Error(got)
	}
	r.Silent()
	// The writer continues as a reader, with its fence, and others may join it.
	c.Want(granted(2, 300), "LK.ACQUIRE", "k", "w", 300, "SHARED")
	if got := r.Read(); got != granted(3, 100) {
		t.Error(got)
	}
	c.Want("-ERR this owner holds the lock in another way, release it first", "LK.ACQUIRE", "k", "w", 300)
	s.Blocked(0)
	// When a waiter leaves the line, those behind it are served.
	w.Send("LK.ACQUIRE", "k", "w2", 100, "BLOCK", 0)
	s.Blocked(1)
	r.Send("LK.ACQUIRE", "k", "r5", 100, "SHARED", "BLOCK", 0)
	s.Blocked(2)
	w.Close()
	if got := r.Read(); got != granted(4, 100) {
		t.Error(got)
	}
}

func TestPermits(t *testing.T) {
	s, c := start(t)
	c.Want(granted(0, 5000), "LK.ACQUIRE", "k", "a", 5000, "OF", 3)
	c.Want(granted(1, 1000), "LK.ACQUIRE", "k", "b", 1000, "OF", 3, "TAKE", 2)
	c.Want(refused(1, 1000, 0), "LK.ACQUIRE", "k", "c", 1000, "OF", 3)
	c.Want(refused(0, 5000, 0), "LK.ACQUIRE", "k", "c", 1000, "OF", 3, "TAKE", 3)
	c.Want(refused(0, 5000, 0), "LK.ACQUIRE", "k", "c", 1000)
	changed := "-ERR the lock has another number of permits while some of them are out"
	c.Want(changed, "LK.ACQUIRE", "k", "c", 1000, "OF", 4)
	c.Want(changed, "LK.ACQUIRE", "k", "a", 1000, "OF", 4)
	c.Want("-ERR this owner holds the lock in another way, release it first", "LK.ACQUIRE", "k", "a", 1000, "OF", 3, "TAKE", 2)
	line := []*livetest.Client{s.Client(), s.Client(), s.Client()}
	for i, take := range []int{2, 1, 1} {
		line[i].Send("LK.ACQUIRE", "k", fmt.Sprint("w", i), 100, "OF", 3, "TAKE", take, "BLOCK", 0)
		s.Blocked(int64(i + 1))
	}
	if got := c.Do("LK.INFO", "k"); got != "[mode permits permits 3 taken 3 closed 0 held 2 holders [[a "+
		fmt.Sprint(fence(0))+" 5000 1] [b "+fmt.Sprint(fence(1))+" 1000 2]] waiters 3 line [[w0 permits 0 2] [w1 permits 0 1] [w2 permits 0 1]]]" {
		t.Error(got)
	}
	c.Want("1", "LK.RELEASE", "k", "a")
	line[0].Silent() // one is free, the first wants two, and nobody passes it
	line[1].Silent()
	c.Want("1", "LK.RELEASE", "k", "b")
	for i := range 2 {
		if got := line[i].Read(); got != granted(int64(2+i), 100) {
			t.Error(got)
		}
	}
	line[2].Silent()
	s.Advance(100)
	if got := line[2].Read(); got != fmt.Sprintf("[1 %d 100 0]", s.Now()*1000) {
		t.Error(got)
	}
	// When all permits are back, their number may change.
	c.Want("1", "LK.RELEASE", "k", "w2")
	c.Want("0", "EXISTS", "k")
	c.Want(fmt.Sprintf("[1 %d 100 0]", s.Now()*1000+1), "LK.ACQUIRE", "k", "c", 100, "OF", 7, "TAKE", 7)
}

// Many holders, more than are stored as bytes, and back.
func TestManyHolders(t *testing.T) {
	s, c := start(t)
	const n = 500
	for i := range n {
		c.Want(granted(int64(i), int64(1000+i)), "LK.ACQUIRE", "k", fmt.Sprint("r", i), 1000+i, "SHARED")
	}
	c.Want("btree", "OBJECT", "ENCODING", "k")
	c.Want(refused(n-1, 1000+n-1, 0), "LK.ACQUIRE", "k", "w", 1000)
	c.Want("OK", "LK.GUARD", "k", fence(77))
	s.Advance(1100)
	c.Want("-FENCED the lock was lost", "LK.GUARD", "k", fence(77))
	c.Want("OK", "LK.GUARD", "k", fence(101))
	c.Want("1", "LK.TOUCH", "r101", 90000, "k")
	w := s.Client()
	w.Send("LK.ACQUIRE", "k", "w", 500, "BLOCK", 0)
	s.Blocked(1)
	s.Advance(2000)
	w.Silent()
	c.Want("1", "LK.RELEASE", "k", "r101")
	if got := w.Read(); !strings.HasPrefix(got, "[1 ") {
		t.Error(got)
	}
	c.Want("packed", "OBJECT", "ENCODING", "k")
}

func TestDelay(t *testing.T) {
	s, c := start(t)
	c.Want(granted(0, 100), "LK.ACQUIRE", "k", "a", 100, "DELAY", 500)
	c.Want("1", "LK.RELEASE", "k", "a") // a release delays nobody
	c.Want("0", "EXISTS", "k")
	c.Want(granted(1, 100), "LK.ACQUIRE", "k", "a", 100, "DELAY", 500)
	s.Advance(100)
	c.Want("[0 0 500 0]", "LK.ACQUIRE", "k", "b", 100)
	c.Want("[0 0 500 0]", "LK.ACQUIRE", "k", "a", 100) // not to its owner either
	if got := c.Do("LK.INFO", "k"); !contains(got, "mode closed", "closed 500", "held 0") {
		t.Error(got)
	}
	w := s.Client()
	w.Send("LK.ACQUIRE", "k", "b", 100, "BLOCK", 0)
	s.Blocked(1)
	s.Advance(499)
	w.Silent()
	s.Advance(1)
	if got := w.Read(); !strings.HasPrefix(got, "[1 ") {
		t.Error(got)
	}
	s.Advance(100)
	c.Want("0", "DBSIZE")
	// Nothing is left when the delay is over, and nobody waits.
	c.Want(fmt.Sprintf("[1 %d 100 0]", s.Now()*1000), "LK.ACQUIRE", "k", "a", 100, "DELAY", 500)
	s.Advance(600)
	c.Want("0", "DBSIZE")
	// One reader's delay keeps others out, and lets present readers continue.
	c.Do("LK.ACQUIRE", "k", "a", 100, "SHARED", "DELAY", 300)
	c.Do("LK.ACQUIRE", "k", "b", 1000, "SHARED")
	s.Advance(100)
	if got := c.Do("LK.ACQUIRE", "k", "c", 100, "SHARED"); !strings.HasPrefix(got, "[0 ") {
		t.Error(got)
	}
	if got := c.Do("LK.ACQUIRE", "k", "b", 1000, "SHARED"); !strings.HasPrefix(got, "[1 ") {
		t.Error(got)
	}
	s.Advance(300)
	if got := c.Do("LK.ACQUIRE", "k", "c", 100, "SHARED"); !strings.HasPrefix(got, "[1 ") {
		t.Error(got)
	}
}

// A plain lock, as other lock libraries set it, and a lock exclude each other.
func TestPlainLock(t *testing.T) {
	s, c := start(t)
	c.Want("OK", "SET", "k", "token", "NX", "PX", 1000)
	c.Want("[0 0 1001 0]", "LK.ACQUIRE", "k", "a", 100)
	c.Want("0", "LK.RELEASE", "k", "token")
	c.Want("-FENCED the lock was lost", "LK.GUARD", "k", 0)
	if got := c.Do("LK.INFO", "k"); !contains(got, "mode plain", "held 1 holders [[token 0 1001 1]]") {
		t.Error(got)
	}
	w := s.Client()
	w.Send("LK.ACQUIRE", "k", "a", 100, "BLOCK", 0)
	s.Blocked(1)
	s.Advance(1000)
	w.Silent()
	s.Advance(1)
	if got := w.Read(); !strings.HasPrefix(got, "[1 ") {
		t.Error(got)
	}
	c.Want("nil", "SET", "k", "token", "NX", "PX", 1000)
	c.Want("0", "SETNX", "k", "token")
	w.Send("LK.ACQUIRE", "k", "b", 100, "BLOCK", 0)
	s.Blocked(1)
	s.Advance(100)
	w.Read()
	c.Want("1", "LK.RELEASE", "k", "b")
	c.Want("OK", "SET", "k", "token", "NX")
	c.Want("[0 0 -1 0]", "LK.ACQUIRE", "k", "a", 100)
	w.Send("LK.ACQUIRE", "k", "b", 100, "BLOCK", 0)
	s.Blocked(1)
	c.Want("1", "EVAL", "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end", 1, "k", "token")
	if got := w.Read(); !strings.HasPrefix(got, "[1 ") {
		t.Error(got)
	}
}

// A guard fails in time: a transaction does nothing, a script stops.
func TestGuard(t *testing.T) {
	s, c := start(t)
	fenced := "-FENCED the lock was lost"
	c.Want(fenced, "LK.GUARD", "never", 1) // was never held
	c.Want(granted(0, 100), "LK.ACQUIRE", "k", "a", 100)
	c.Want("OK", "LK.GUARD", "k", fence(0))
	c.Want(fenced, "LK.GUARD", "k", fence(1))
	exec := func(want string) {
		t.Helper()
		c.Want("OK", "MULTI")
		c.Want("QUEUED", "INCR", "n")
		c.Want("QUEUED", "LK.GUARD", "k", fence(0))
		c.Want("QUEUED", "INCR", "n")
		c.Want(want, "EXEC")
	}
	script := func(want string) {
		t.Helper()
		c.Want(want, "EVAL", "redis.call('LK.GUARD', KEYS[1], ARGV[1]) return redis.call('INCR', KEYS[2])", 2, "k", "n", fence(0))
	}
	exec("[1 OK 2]")
	script("3")
	s.Advance(100)
	exec(fenced)
	if got := c.Do("EVAL", "redis.call('LK.GUARD', KEYS[1], ARGV[1]) return redis.call('INCR', KEYS[2])", 2, "k", "n", fence(0)); !strings.HasPrefix(got, fenced) {
		t.Error(got)
	}
	c.Want("3", "GET", "n")
	c.Want("OK", "MULTI") // the transaction is over
	c.Want("OK", "DISCARD")
	c.Do("LK.ACQUIRE", "k", "b", 100)
	exec(fenced)
	c.Want("OK", "MULTI")
	c.Want("QUEUED", "LK.GUARD", "k", "x")
	c.Want("QUEUED", "INCR", "n")
	c.Want("-ERR value is not an integer or out of range", "EXEC")
	c.Want("3", "GET", "n")
	// A guard that the user may no longer use prevents the whole transaction.
	c.Want("OK", "ACL", "SETUSER", "u", "on", "nopass", "~*", "+@all")
	u := s.Client()
	u.Want("OK", "AUTH", "u", "x")
	u.Want("OK", "MULTI")
	u.Want("QUEUED", "INCR", "n")
	u.Want("QUEUED", "LK.GUARD", "k", fence(0))
	c.Want("OK", "ACL", "SETUSER", "u", "-@lock")
	if got := u.Do("EXEC"); !strings.HasPrefix(got, "-NOPERM") {
		t.Error(got)
	}
	c.Want("3", "GET", "n")
}

// Fences rise, whatever happens to locks, keys and the clock.
func TestFencesRise(t *testing.T) {
	s, c := start(t)
	last := int64(0)
	take := func(key string) {
		t.Helper()
		var f int64
		fmt.Sscanf(c.Do("LK.ACQUIRE", key, "a", 100), "[1 %d", &f)
		if f <= last {
			t.Errorf("fence %d after %d", f, last)
		}
		last = f
	}
	for i := range 5 {
		take(fmt.Sprint("k", i))
	}
	c.Want("1", "DEL", "k1")
	take("k1")
	c.Want("OK", "FLUSHALL")
	take("k1")
	c.Want("OK", "LKV.CLOCK", "FREEZE", livetest.Epoch-100_000) // the clock is set back
	take("k2")
	c.Want("OK", "DEBUG", "RELOAD")
	take("k3")
	// A lock from another server, whose clock is ahead.
	dump := c.Do("DUMP", "k3")
	s.Advance(1_000_000)
	take("k4")
	ahead := c.Do("DUMP", "k4")
	c.Want("OK", "LKV.CLOCK", "FREEZE", livetest.Epoch-100_000)
	c.Want("OK", "RESTORE", "k5", 0, ahead)
	c.Want("OK", "RESTORE", "k6", 0, dump)
	take("k7")
}

// Every error, none of which changes anything.
func TestErrors(t *testing.T) {
	_, c := start(t)
	c.Do("RPUSH", "list", "x")
	c.Do("LK.ACQUIRE", "held", "a", 0, "OF", 5)
	long := strings.Repeat("x", 512)
	before := c.Do("DEBUG", "DIGEST")
	for _, test := range []struct{ want, line string }{
		{"-ERR wrong number of arguments for 'lk.acquire' command", "LK.ACQUIRE k a"},
		{"-ERR value is not an integer or out of range", "LK.ACQUIRE k a soon"},
		{"-ERR lease is out of range, it can be 0 to 3155760000000 ms", "LK.ACQUIRE k a -1"},
		{"-ERR lease is out of range, it can be 0 to 3155760000000 ms", "LK.ACQUIRE k a 3155760000001"},
		{"-ERR an owner has 1 to 512 bytes", "LK.ACQUIRE k " + long + "x 1000"},
		{"-ERR SHARED and OF exclude each other", "LK.ACQUIRE k a 1000 SHARED OF 3"},
		{"-ERR SHARED and OF exclude each other", "LK.ACQUIRE k a 1000 OF 3 SHARED"},
		{"-ERR syntax error", "LK.ACQUIRE k a 1000 SHARED SHARED"},
		{"-ERR syntax error", "LK.ACQUIRE k a 1000 OF 3 OF 3"},
		{"-ERR syntax error", "LK.ACQUIRE k a 1000 OF"},
		{"-ERR syntax error", "LK.ACQUIRE k a 1000 TAKE 2"},
		{"-ERR syntax error", "LK.ACQUIRE k a 1000 OF 3 BLOCK 0 TAKE 2"},
		{"-ERR syntax error", "LK.ACQUIRE k a 1000 BLOCK 1 BLOCK 1"},
		{"-ERR syntax error", "LK.ACQUIRE k a 1000 DELAY 1 DELAY 1"},
		{"-ERR syntax error", "LK.ACQUIRE k a 1000 WAIT"},
		{"-ERR the number of permits is out of range, it can be 1 to 1000000000", "LK.ACQUIRE k a 1000 OF 0"},
		{"-ERR the number of permits is out of range, it can be 1 to 1000000000", "LK.ACQUIRE k a 1000 OF 1000000001"},
		{"-ERR TAKE is out of range, it can be 1 to the number of permits", "LK.ACQUIRE k a 1000 OF 3 TAKE 4"},
		{"-ERR TAKE is out of range, it can be 1 to the number of permits", "LK.ACQUIRE k a 1000 OF 3 TAKE 0"},
		{"-ERR timeout is negative", "LK.ACQUIRE k a 1000 BLOCK -1"},
		{"-ERR timeout is out of range", "LK.ACQUIRE k a 1000 BLOCK 9007199254740992"},
		{"-ERR value is not an integer or out of range", "LK.ACQUIRE k a 1000 BLOCK 1.5"},
		{"-ERR delay is out of range, it can be 0 to 3155760000000 ms", "LK.ACQUIRE k a 1000 DELAY -1"},
		{"-ERR delay is out of range, it can be 0 to 3155760000000 ms", "LK.ACQUIRE k a 1000 DELAY 3155760000001"},
		{"-ERR the lock has another number of permits while some of them are out", "LK.ACQUIRE held b 1000 OF 6"},
		{"-ERR this owner holds the lock in another way, release it first", "LK.ACQUIRE held a 1000"},
		{"-ERR this owner holds the lock in another way, release it first", "LK.ACQUIRE held a 1000 SHARED"},
		{"-WRONGTYPE Operation against a key holding the wrong kind of value", "LK.ACQUIRE list a 1000"},
		{"-WRONGTYPE Operation against a key holding the wrong kind of value", "LK.ACQUIRE list a 1000 BLOCK 0"},
		{"-WRONGTYPE Operation against a key holding the wrong kind of value", "LK.RELEASE list a"},
		{"-WRONGTYPE Operation against a key holding the wrong kind of value", "LK.GUARD list 1"},
		{"-WRONGTYPE Operation against a key holding the wrong kind of value", "LK.INFO list"},
		{"-WRONGTYPE Operation against a key holding the wrong kind of value", "GET held"},
		{"-ERR syntax error", "LK.RELEASE held a 1 2"},
		{"-ERR value is not an integer or out of range", "LK.RELEASE held a x"},
		{"-ERR value is not an integer or out of range", "LK.GUARD held x"},
		{"-ERR an owner has 1 to 512 bytes", "LK.TOUCH " + long + "x 1000 held"},
		{"-ERR lease is out of range, it can be 0 to 3155760000000 ms", "LK.TOUCH a -1 held"},
		{"-ERR unknown command 'LK.APPLY', with args beginning with: 'held' '1' 'LOST' ", "LK.APPLY held 1 LOST"},
		{"-ERR unknown command 'LK.FENCE', with args beginning with: '1' ", "LK.FENCE 1"},
	} {
		if got := c.Line(test.line); got != test.want {
			t.Errorf("%.60s\n got %s\nwant %s", test.line, got, test.want)
		}
		if got := c.Do("DEBUG", "DIGEST"); got != before {
			t.Fatalf("%.60s changed something", test.line)
		}
	}
	c.Want("-ERR an owner has 1 to 512 bytes", "LK.ACQUIRE", "k", "", 1000)
	// Just within the limits.
	c.Want(granted(1, 3155760000000), "LK.ACQUIRE", "k", long, "3155760000000", "DELAY", "3155760000000")
	c.Want(granted(2, 1), "LK.ACQUIRE", "k2", "a", 1, "OF", 1000000000, "TAKE", 1000000000)
}

// Locks can do what keys in general can do.
func TestAsKeys(t *testing.T) {
	s, c := start(t)
	c.Want(granted(0, 5000), "LK.ACQUIRE", "k", "a", 5000)
	c.Want("1", "PEXPIRE", "k", 1000)
	c.Want("1000", "PTTL", "k")
	c.Want(granted(0, 9000), "LK.ACQUIRE", "k", "a", 9000)
	c.Want("1000", "PTTL", "k") // a renewal does not change it
	c.Want("1", "COPY", "k", "j")
	s.Advance(1001)
	c.Want("0", "EXISTS", "k", "j")
	c.Want(granted(1001000, 5000), "LK.ACQUIRE", "k", "a", 5000)
	c.Want("OK", "RENAME", "k", "j")
	c.Want("OK", "LK.GUARD", "j", fence(1001000))
	c.Want("1", "MOVE", "j", 1)
	c.Want("OK", "SELECT", 1)
	c.Want("1", "LK.RELEASE", "j", "a", fence(1001000))
	c.Want("0", "DBSIZE")
	// In MULTI and scripts BLOCK does not wait.
	c.Want("OK", "MULTI")
	c.Want("QUEUED", "LK.ACQUIRE", "k", "a", 1000, "BLOCK", 0)
	c.Want("QUEUED", "LK.ACQUIRE", "k", "b", 1000, "BLOCK", 0)
	c.Want("["+granted(1001001, 1000)+" "+refused(1001001, 1000, 0)+"]", "EXEC")
	c.Want(refused(1001001, 1000, 0), "EVAL", "return redis.call('LK.ACQUIRE', KEYS[1], 'b', 1000, 'BLOCK', 0)", 1, "k")
	// A wait that ends without the lock replies the lock's state.
	w := s.Client()
	w.Want("OK", "SELECT", 1)
	w.Send("LK.ACQUIRE", "k", "b", 1000, "BLOCK", 300)
	s.Blocked(1)
	s.Advance(300)
	if got := w.Read(); got != refused(1001001, 700, 0) {
		t.Error(got)
	}
	if got := c.Do("INFO", "limitkv"); !contains(got, "locks:1", "lock_calls_granted:", "lock_waiters:0", "lock_leases_lost:") {
		t.Error(got)
	}
}

// A client that waits for another type under the key does not stand in the lock's line.
func TestOthersWait(t *testing.T) {
	s, c := start(t)
	pop, other := s.Client(), s.Client()
	pop.Send("BLPOP", "k", 0)
	s.Blocked(1)
	c.Want(granted(0, 100), "LK.ACQUIRE", "k", "a", 100)
	other.Send("LK.ACQUIRE", "k", "b", 100, "BLOCK", 0)
	s.Blocked(2)
	c.Want("1", "LK.RELEASE", "k", "a")
	if got := other.Read(); got != granted(1, 100) {
		t.Error(got)
	}
	c.Want("1", "LK.RELEASE", "k", "b")
	c.Want("1", "RPUSH", "k", "x")
	if got := pop.Read(); got != "[k x]" {
		t.Error(got)
	}
	// A key that becomes something else ends the wait.
	c.Do("LK.ACQUIRE", "k", "a", 100)
	other.Send("LK.ACQUIRE", "k", "b", 100, "BLOCK", 0)
	s.Blocked(1)
	c.Want("OK", "MULTI")
	c.Want("QUEUED", "DEL", "k")
	c.Want("QUEUED", "RPUSH", "k", "x")
	c.Do("EXEC")
	if got := other.Read(); !strings.HasPrefix(got, "-WRONGTYPE") {
		t.Error(got)
	}
}
