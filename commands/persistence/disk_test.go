package persistence_test

// What clients are told while the disk is slow or fails: a server on a disk that the test controls.

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/limitkv/limitkv/commands/livetest"
	"github.com/limitkv/limitkv/engine/journal"
	"github.com/limitkv/limitkv/engine/vfs"
	"github.com/limitkv/limitkv/server"
)

// disk is a file system whose syncs and writes of log files a test stops or fails.
type disk struct {
	vfs.FS
	fails  atomic.Pointer[error] // every sync, if there is one
	full   atomic.Pointer[error] // every write and new file
	syncs  atomic.Int64
	asking atomic.Int64 // syncs under way
	waited bool         // no sync runs concurrently
	beside atomic.Int64 // that did

	mu      sync.Mutex
	changed *sync.Cond
	stopped bool // no sync ends
}

// stop stops syncs, let lets them end.
func (d *disk) stop() { d.mu.Lock(); d.stopped = true; d.mu.Unlock() }

func (d *disk) let() { d.mu.Lock(); d.stopped = false; d.changed.Broadcast(); d.mu.Unlock() }

func newDisk() *disk {
	d := &disk{FS: vfs.OS}
	d.changed = sync.NewCond(&d.mu)
	return d
}

type diskFile struct {
	vfs.File
	d *disk
}

func (d *disk) open(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return diskFile{f, d}, nil
}

func (d *disk) Create(path string) (vfs.File, error) {
	if err := d.full.Load(); err != nil {
		return nil, *err
	}
	return d.open(d.FS.Create(path))
}

func (d *disk) Append(path string) (vfs.File, error) { return d.open(d.FS.Append(path)) }

func (f diskFile) Write(b []byte) (int, error) {
	if err := f.d.full.Load(); err != nil {
		return 0, *err
	}
	return f.File.Write(b)
}

func (f diskFile) Sync() error {
	f.d.asking.Add(1)
	defer f.d.asking.Add(-1)
	f.d.mu.Lock()
	for f.d.stopped {
		f.d.changed.Wait()
	}
	f.d.mu.Unlock()
	f.d.syncs.Add(1)
	if err := f.d.fails.Load(); err != nil {
		return *err
	}
	return f.File.Sync()
}

func failing(err error) *error { return &err }

// onDisk starts a server with an append-only file.
func onDisk(t *testing.T, appendfsync string) (*livetest.Server, *disk) {
	t.Helper()
	d := newDisk()
	return start(t, d, appendfsync), d
}

func start(t *testing.T, d *disk, appendfsync string) *livetest.Server {
	t.Helper()
	t.Chdir(t.TempDir())
	s := livetest.StartWith(t, func(s *server.Server) {
		s.FS, s.Log = d, livetest.NoLog{}
	})
	t.Cleanup(d.let)
	c := s.Client()
	c.Want("OK", "CONFIG", "SET", "appendfsync", appendfsync, "appendonly", "yes")
	wait(t, c, "aof_rewrite_in_progress:0", "aof_rewrite_scheduled:0", "aof_last_bgrewrite_status:ok")
	return s
}

// wait waits until INFO has all lines.
func wait(t *testing.T, c *livetest.Client, lines ...string) {
	t.Helper()
	var info string
	for end := time.Now().Add(60 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		info = c.Do("INFO", "persistence")
		missing := false
		for _, line := range lines {
			missing = missing || !strings.Contains(info, line+"\r\n")
		}
		if !missing {
			return
		}
	}
	t.Fatalf("INFO does not come to %q:\n%s", lines, info)
}

const (
	refused = "-MISCONF Errors writing to the AOF file: Input/output error"
	unsafe  = refused + ". What this command did or saw is in memory, but may not be on the disk"
)

// TestRepliesWhenSyncFails: with always, clients that wait for a sync that fails get the error at once, and their changes are
// neither lost nor acknowledged. Reads of other keys continue, writes are refused. When the disk works again, everything
// continues by itself, with the data in memory.
func TestRepliesWhenSyncFails(t *testing.T) {
	for name, waited := range map[string]bool{"beside": false, "waited for": true} {
		t.Run(name, func(t *testing.T) { repliesWhenSyncFails(t, waited) })
	}
}

func repliesWhenSyncFails(t *testing.T, waited bool) {
	d := newDisk()
	d.waited = waited
	s := start(t, d, "always")
	c, watcher := s.Client(), s.Client()
	for i := range 10 {
		c.Want("OK", "SET", fmt.Sprint("away:", i), 1)
	}
	c.Want("OK", "CONFIG", "SET", "notify-keyspace-events", "KEA")
	watcher.Want("[psubscribe __keyevent* 1]", "PSUBSCRIBE", "__keyevent*")
	popper := s.Client()
	popper.Send("BLPOP", "list", 0)
	s.Blocked(1)

	d.stop()
	pusher, seer, script := s.Client(), s.Client(), s.Client()
	pusher.Send("RPUSH", "list", "a", "b")
	for end := time.Now().Add(60 * time.Second); d.asking.Load() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("nothing is synced")
		}
	}
	seer.Send("LLEN", "list")
	script.Send("EVAL", "redis.call('SET', KEYS[1], 1) redis.call('PUBLISH', 'ch', 'x') return redis.call('INCR', KEYS[1])", 1, "k")
	// A reply that shows nothing unsafe does not wait for the sync, nor do replies behind it in the same turn. On a loaded
	// machine a turn may end earlier: then another client tries.
	var pipe *livetest.Client
	served := false
	for try := 0; try < 20 && !served; try++ {
		pipe = s.Client()
		if err := pipe.Write(append(append(livetest.Append(nil, "ECHO", "before"),
			livetest.Append(nil, "SET", "p", 1)...), append(livetest.Append(nil, "MULTI"), livetest.Append(nil, "INCR", "p")...)...)); err != nil {
			t.Fatal(err)
		}
		if got := pipe.Read(); got != "before" {
			t.Errorf("got %s", got)
		}
		for end := time.Now().Add(2 * time.Second); !served && time.Now().Before(end); time.Sleep(time.Millisecond) {
			served = strings.Contains(c.Do("CLIENT", "LIST"), " multi=1 ")
		}
	}
	if !served {
		t.Fatal("what stands behind is not served")
	}
	for name, x := range map[string]*livetest.Client{"push": pusher, "pop": popper, "read": seer, "script": script, "pipeline": pipe, "events": watcher} {
		if text, ok := x.Poll(20 * time.Millisecond); ok {
			t.Errorf("%s: %s comes before the sync has ended", name, text)
		}
	}
	d.fails.Store(failing(syscall.EIO))
	d.let()

	for name, x := range map[string]*livetest.Client{"push": pusher, "pop": popper, "read": seer, "script": script, "pipeline": pipe} {
		if got := x.Read(); got != unsafe {
			t.Errorf("%s: %s", name, got)
		}
	}
	for _, want := range []string{"OK", "QUEUED"} { // MULTI shows no data
		if got := pipe.Read(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	pipe.Want("-EXECABORT Transaction discarded because of: "+refused[1:], "EXEC")
	c.Want(refused, "SET", "away:7", 2)
	for range 3 { // at first a script takes all locks, later those of its keys
		got := c.Do("EVAL", "redis.call('GET', KEYS[1]) return redis.call('SET', KEYS[1], 2)", 1, "k")
		if !strings.HasPrefix(got, refused) || strings.Contains(got, unsafe[len(refused):]) {
			t.Errorf("a script that changed nothing: %s", got)
		}
	}
	read := 0
	for i := range 10 { // one may share a shard with a changed key
		if c.Do("GET", fmt.Sprint("away:", i)) == "1" {
			read++
		}
	}
	if read < 6 {
		t.Errorf("of 10 keys that are safe %d can be read", read)
	}
	c.Want(unsafe, "GET", "k")
	script.Send("WAITAOF", 1, 0, 0)
	script.Silent()
	watcher.Silent()
	syncs := d.syncs.Load()
	d.fails.Store(nil)

	wait(t, c, "aof_last_write_status:ok", "aof_rewrite_in_progress:0", "aof_last_bgrewrite_status:ok")
	c.Want("2", "GET", "k")
	c.Want("[b]", "LRANGE", "list", 0, -1)
	c.Want("OK", "SET", "away:7", 2)
	if got := script.Read(); got != "[1 0]" {
		t.Errorf("WAITAOF: %s", got)
	}
	if d.syncs.Load() == syncs {
		t.Error("nothing was synced")
	}
	// Messages waited for the sync.
	seen := map[string]bool{}
	for _, event := range []string{"rpush list", "lpop list", "set k", "incrby k", "set p", "set away:7"} {
		name, key, _ := strings.Cut(event, " ")
		for want := fmt.Sprintf("[pmessage __keyevent* __keyevent@0__:%s %s]", name, key); !seen[want]; {
			got := watcher.Read()
			if seen[got] = true; !strings.HasPrefix(got, "[pmessage") {
				t.Fatalf("no event %s in %v", event, seen)
			}
		}
	}
	c.Want("OK", "DEBUG", "LOADAOF")
	c.Want("2", "GET", "k")
	c.Want("[b]", "LRANGE", "list", 0, -1)
}

// until waits for something.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

// TestSlowSync: with everysec, writes wait when a sync takes so long that more than two seconds of acknowledged writes could
// be lost. Reads do not wait, and with the policy no, writes do not either.
func TestSlowSync(t *testing.T) {
	s, d := onDisk(t, "everysec")
	c, w := s.Client(), s.Client()
	w.Want("OK", "SET", "k", 0)
	w.Want("[1 0]", "WAITAOF", 1, 0, 0) // the file's first write has a sync of its own
	wait(t, c, "aof_pending_bio_fsync:0")
	d.stop()
	began := time.Now()
	w.Want("OK", "SET", "k", 0)
	n := 0
	for {
		n++
		w.Send("SET", "k", n)
		text, ok := w.Poll(300 * time.Millisecond)
		if !ok && strings.Contains(c.Do("INFO", "persistence"), "aof_delayed_fsync:1\r\n") {
			break
		}
		if !ok { // the machine stood still
			text = w.Read()
		}
		if text != "OK" {
			t.Fatal(text)
		}
		if time.Since(began) > 60*time.Second {
			t.Fatal("writes go on while nothing is synced")
		}
		time.Sleep(10 * time.Millisecond)
	}
	if took := time.Since(began) - 300*time.Millisecond; took < time.Second {
		t.Errorf("writes wait after %v", took)
	}
	wait(t, c, "aof_delayed_fsync:1", "aof_last_write_status:ok")
	c.Want("nil", "GET", "another")
	reader := s.Client()
	reader.Send("GET", "k")
	if text, ok := reader.Poll(50 * time.Millisecond); ok {
		t.Errorf("a read tells of what its writer does not know yet: %s", text)
	}
	d.let()
	if got := w.Read(); got != "OK" {
		t.Error(got)
	}
	if got := reader.Read(); got != fmt.Sprint(n) {
		t.Errorf("got %s, want %d", got, n)
	}
	w.Want("OK", "SET", "k", "on")
	wait(t, c, "aof_delayed_fsync:1")

	c.Want("OK", "CONFIG", "SET", "appendfsync", "no")
	d.stop()
	for began := time.Now(); time.Since(began) < 2300*time.Millisecond; time.Sleep(50 * time.Millisecond) {
		w.Want("OK", "SET", "k", 1)
	}
	d.let()
}

// TestFullDisk: a failed write is also answered at once, and is repaired without a new base, because the file is whole.
func TestFullDisk(t *testing.T) {
	s, d := onDisk(t, "always")
	c, w := s.Client(), s.Client()
	w.Want("OK", "SET", "k", 1)
	for i, why := range []syscall.Errno{syscall.ENOSPC, syscall.EROFS, syscall.EDQUOT, syscall.EIO} {
		d.full.Store(failing(why))
		full := "-MISCONF Errors writing to the AOF file: " + journal.Reason(why)
		if got := w.Do("SET", "k", i); !strings.HasPrefix(got, full+". What") {
			t.Errorf("got %s", got)
		}
		w.Want(full, "SET", "k", "refused")
		w.Want(full, "PING")
		if got := c.Do("GET", "k"); !strings.HasPrefix(got, full+". What") {
			t.Errorf("a read of what is not on the disk: %s", got)
		}
		d.full.Store(nil)
		wait(t, c, "aof_last_write_status:ok")
		c.Want(fmt.Sprint(i), "GET", "k")
		w.Want("PONG", "PING")
		w.Want("OK", "SET", "k", "more")
	}
	wait(t, c, "aof_rewrites:1", "aof_rewrite_in_progress:0")
}

// TestRepliesBeforeLong: if the last command of a batch takes long, the earlier replies do not leave early.
func TestRepliesBeforeLong(t *testing.T) {
	s, d := onDisk(t, "always")
	w := s.Client()
	d.stop()
	const long = "local i = 0 while i < 1000000 do i = i + 1 end return i"
	if err := w.Write(append(append(livetest.Append(nil, "ECHO", "first"), livetest.Append(nil, "SET", "k", 1)...),
		append(livetest.Append(nil, "EVAL", long, 0), livetest.Append(nil, "ECHO", "last")...)...)); err != nil {
		t.Fatal(err)
	}
	if got := w.Read(); got != "first" {
		t.Error(got)
	}
	until(t, "nothing is synced", func() bool { return d.asking.Load() > 0 })
	if text, ok := w.Poll(50 * time.Millisecond); ok {
		t.Errorf("%s comes before the sync has ended", text)
	}
	d.let()
	for _, want := range []string{"OK", "1000000", "last"} {
		if got := w.Read(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestInvalidationAfterReply: a client that caches what it read learns of a change after the reply that it has to forget,
// though the reply waits for the disk.
func TestInvalidationAfterReply(t *testing.T) {
	s, d := onDisk(t, "always")
	w, r := s.Client(), s.Client()
	r.Do("HELLO", 3)
	r.Want("OK", "CLIENT", "TRACKING", "ON")
	d.stop()
	w.Send("SET", "k", 1)
	until(t, "nothing is synced", func() bool { return d.asking.Load() > 0 })
	r.Send("GET", "k")
	until(t, "GET has not run", func() bool { return strings.Contains(s.Client().Do("INFO", "commandstats"), "cmdstat_get:calls=1,") })
	s.Client().Send("SET", "k", 2)
	until(t, "SET has not run", func() bool { return strings.Contains(s.Client().Do("INFO", "commandstats"), "cmdstat_set:calls=2,") })
	if text, ok := r.Poll(50 * time.Millisecond); ok {
		t.Errorf("%s comes first", text)
	}
	d.let()
	for _, want := range []string{"1", "[invalidate [k]]"} {
		if got := r.Read(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestMessagesWait: a message that is published after a change leaves when the change is safe.
func TestMessagesWait(t *testing.T) {
	s, d := onDisk(t, "always")
	listener := s.Client()
	listener.Want("[subscribe ch 1]", "SUBSCRIBE", "ch")
	s.Client().Want("1", "PUBLISH", "ch", "free") // it follows no change
	if got := listener.Read(); got != "[message ch free]" {
		t.Error(got)
	}
	d.stop()
	pipe, script, exec, free := s.Client(), s.Client(), s.Client(), s.Client()
	if err := pipe.Write(append(livetest.Append(nil, "SET", "k", 1), livetest.Append(nil, "PUBLISH", "ch", "pipe")...)); err != nil {
		t.Fatal(err)
	}
	until(t, "nothing is synced", func() bool { return d.asking.Load() > 0 })
	script.Send("EVAL", "redis.call('PUBLISH', 'ch', 'script') return redis.call('SET', KEYS[1], 1)", 1, "s")
	for _, args := range [][]any{{"MULTI"}, {"PUBLISH", "ch", "exec"}, {"SET", "e", 1}, {"EXEC"}} {
		exec.Send(args...)
	}
	for _, want := range []string{"OK", "QUEUED", "QUEUED"} {
		if got := exec.Read(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	free.Want("1", "PUBLISH", "ch", "meanwhile")
	if got := listener.Read(); got != "[message ch meanwhile]" {
		t.Error(got)
	}
	if text, ok := listener.Poll(50 * time.Millisecond); ok {
		t.Errorf("%s comes before the sync has ended", text)
	}
	d.let()
	got := map[string]bool{}
	for range 3 {
		got[listener.Read()] = true
	}
	for _, from := range []string{"pipe", "script", "exec"} {
		if !got["[message ch "+from+"]"] {
			t.Errorf("no message of %s in %v", from, got)
		}
	}
}

// turnedOn is a file system that reports renames, and knows which files are not fully synced.
type turnedOn struct {
	vfs.FS
	renamed  atomic.Pointer[func(from string)]
	unsynced sync.Map
}

type turnedOnFile struct {
	vfs.File
	fs   *turnedOn
	path string
}

func (d *turnedOn) Rename(from, to string) error {
	if renamed := d.renamed.Load(); renamed != nil {
		(*renamed)(from)
	}
	return d.FS.Rename(from, to)
}

func (d *turnedOn) Create(path string) (vfs.File, error) {
	f, err := d.FS.Create(path)
	if err != nil {
		return nil, err
	}
	return turnedOnFile{f, d, path}, nil
}

func (f turnedOnFile) Write(b []byte) (int, error) {
	f.fs.unsynced.Store(f.path, true)
	return f.File.Write(b)
}

func (f turnedOnFile) Sync() error {
	f.fs.unsynced.Delete(f.path)
	return f.File.Sync()
}

// TestTurnedOnIsSafe: a log that is turned on counts as on once everything acknowledged until then is synced, whatever the
// policy. That includes writes after the new files were safe and before they were renamed.
func TestTurnedOnIsSafe(t *testing.T) {
	t.Chdir(t.TempDir())
	d := &turnedOn{FS: vfs.OS}
	s := livetest.StartWith(t, func(s *server.Server) { s.FS, s.Log = d, livetest.NoLog{} })
	c, late := s.Client(), s.Client()
	var wrote atomic.Int64
	renamed := func(from string) {
		if strings.Contains(from, ".base") {
			late.Want("OK", "SET", "late", wrote.Add(1))
		}
	}
	d.renamed.Store(&renamed)
	c.Want("OK", "CONFIG", "SET", "appendfsync", "no", "appendonly", "yes")
	wait(t, c, "aof_rewrite_in_progress:0", "aof_rewrite_scheduled:0", "aof_last_bgrewrite_status:ok")
	d.unsynced.Range(func(path, _ any) bool {
		t.Errorf("not all of %s is synced", path)
		return true
	})
	if text, err := os.ReadFile("appendonlydir/appendonly.aof.1.incr.aof"); err != nil || wrote.Load() == 0 || !strings.Contains(string(text), "late") {
		t.Errorf("the log has not what was written last (%d times): %v, %q", wrote.Load(), err, text)
	}
}
