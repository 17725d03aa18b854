package persistence_test

// Snapshots and rewrites that fail: what is refused, what is tried again, and when.

import (
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/limitkv/limitkv/commands/livetest"
	"github.com/limitkv/limitkv/server"
	"github.com/limitkv/limitkv/server/persistence"
)

// lines is a log in memory.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Printf(_ byte, format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(&l.text, format+"\n", args...)
}

func (l *lines) count(part string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), part)
}

func TestStopSaving(t *testing.T) {
	t.Chdir(t.TempDir())
	log := &lines{}
	c := livetest.StartWith(t, func(s *server.Server) { s.Log = log }).Client()
	c.Want("-ERR nothing is being saved in the background", "DEBUG", "STOP-SAVING")
	c.Want("OK", "CONFIG", "SET", "save", "900 1", "rdb-key-save-delay", "10000000")
	c.Want("OK", "SET", "k", 1)
	c.Want("Background saving started", "BGSAVE")
	wait(t, c, "rdb_bgsave_in_progress:1")
	c.Want("OK", "DEBUG", "STOP-SAVING")
	wait(t, c, "rdb_bgsave_in_progress:0", "rdb_last_bgsave_status:err")
	if got := c.Do("SET", "k", 2); !strings.HasPrefix(got, "-MISCONF Redis is configured to save RDB snapshots") {
		t.Errorf("a write after a snapshot that failed: %s", got)
	}
	c.Want("1", "GET", "k")
	c.Want("OK", "CONFIG", "SET", "rdb-key-save-delay", "0")
	c.Want("Background saving started", "BGSAVE")
	wait(t, c, "rdb_bgsave_in_progress:0", "rdb_last_bgsave_status:ok")
	c.Want("OK", "SET", "k", 3)
	if stats := c.Do("INFO", "stats"); !strings.Contains(stats, "total_forks:2\r\n") {
		t.Errorf("INFO stats: %s", stats)
	}
}

// TestSnapshotTriedAgain: while writes are refused no save point can be reached, so the snapshot is tried again until it
// succeeds.
func TestSnapshotTriedAgain(t *testing.T) {
	t.Chdir(t.TempDir())
	d := newDisk()
	s := livetest.StartWith(t, func(s *server.Server) { s.FS, s.Log = d, livetest.NoLog{} })
	c := s.Client()
	c.Want("OK", "CONFIG", "SET", "save", "900 100")
	c.Want("OK", "SET", "k", 1)
	d.full.Store(failing(syscall.ENOSPC))
	c.Want("Background saving started", "BGSAVE")
	wait(t, c, "rdb_bgsave_in_progress:0", "rdb_last_bgsave_status:err")
	if got := c.Do("SET", "k", 2); !strings.HasPrefix(got, "-MISCONF Redis is configured to save RDB snapshots") {
		t.Errorf("a write after a snapshot that failed: %s", got)
	}
	d.full.Store(nil)
	s.Advance(6000)
	wait(t, c, "rdb_bgsave_in_progress:0", "rdb_last_bgsave_status:ok")
	c.Want("OK", "SET", "k", 3)
}

// TestRewritesPutOff: a failed rewrite because of the log's growth is not tried again and again, as in Redis; one that a
// client requests is.
func TestRewritesPutOff(t *testing.T) {
	t.Chdir(t.TempDir())
	log := &lines{}
	c := livetest.StartWith(t, func(s *server.Server) { s.Log = log }).Client()
	c.Want("OK", "CONFIG", "SET", "auto-aof-rewrite-percentage", "0", "auto-aof-rewrite-min-size", "1", "appendonly", "yes")
	wait(t, c, "aof_rewrite_in_progress:0", "aof_rewrite_scheduled:0", "aof_last_bgrewrite_status:ok")
	c.Want("OK", "CONFIG", "SET", "rdb-key-save-delay", "10000000")
	c.Want("OK", "SET", "k", 1)
	for n := 1; n <= 3; n++ {
		c.Want("Background append only file rewriting started", "BGREWRITEAOF")
		c.Want("OK", "DEBUG", "STOP-SAVING")
		wait(t, c, "aof_rewrite_in_progress:0", "aof_last_bgrewrite_status:err", fmt.Sprint("aof_rewrites_consecutive_failures:", n))
	}
	c.Want("OK", "CONFIG", "SET", "auto-aof-rewrite-percentage", "1")
	c.Want("OK", "SET", "k", strings.Repeat("x", 10_000))
	const limited = "repeatedly failed and triggered the limit, will retry in 1 minutes"
	until(t, "no rewrite was put off", func() bool { return log.count(limited) > 0 })
	time.Sleep(3 * 100 * time.Millisecond) // some looks
	wait(t, c, "aof_rewrite_in_progress:0")
	if n := log.count(limited); n != 1 {
		t.Errorf("the log says %d times that rewrites are put off", n)
	}
	c.Want("OK", "CONFIG", "SET", "rdb-key-save-delay", "0")
	c.Want("Background append only file rewriting started", "BGREWRITEAOF")
	wait(t, c, "aof_rewrite_in_progress:0", "aof_last_bgrewrite_status:ok", "aof_rewrites_consecutive_failures:0")
}

// TestReloadBesideSnapshot: the log is read back while a snapshot of the keys from before is made.
func TestReloadBesideSnapshot(t *testing.T) {
	t.Chdir(t.TempDir())
	c := livetest.StartWith(t, func(s *server.Server) { s.Log = livetest.NoLog{} }).Client()
	c.Want("OK", "CONFIG", "SET", "appendonly", "yes")
	wait(t, c, "aof_rewrite_in_progress:0", "aof_rewrite_scheduled:0", "aof_last_bgrewrite_status:ok")
	for i := range 200 {
		c.Want("OK", "SET", fmt.Sprint("logged:", i), i)
	}
	c.Want("OK", "CONFIG", "SET", "appendonly", "no", "rdb-key-save-delay", "1000")
	for i := range 200 {
		c.Want("OK", "SET", fmt.Sprint("not:", i), i)
	}
	c.Want("Background saving started", "BGSAVE")
	c.Want("OK", "DEBUG", "LOADAOF")
	wait(t, c, "rdb_bgsave_in_progress:1", "rdb_changes_since_last_save:0")
	c.Want("200", "DBSIZE")
	// Turned on now, the log waits for the snapshot, and is read back as it is.
	c.Want("OK", "CONFIG", "SET", "appendonly", "yes")
	wait(t, c, "rdb_bgsave_in_progress:1", "aof_rewrite_scheduled:1", "aof_rewrite_in_progress:0")
	c.Want("OK", "SET", "lost", 1)
	c.Want("OK", "DEBUG", "LOADAOF")
	c.Want("200", "DBSIZE")
	c.Want("OK", "CONFIG", "SET", "rdb-key-save-delay", "0")
	wait(t, c, "rdb_bgsave_in_progress:0", "aof_rewrite_in_progress:0", "aof_rewrite_scheduled:0", "rdb_last_bgsave_status:ok")
	c.Want("OK", "SET", "kept", 1)
	c.Want("OK", "DEBUG", "LOADAOF")
	c.Want("201", "DBSIZE")
	// The snapshot has the keys from its beginning.
	var said []string
	if err := persistence.Check("dump.rdb", persistence.Mending{}, func(line string) { said = append(said, line) }); err != nil {
		t.Error(err)
	}
	if text := strings.Join(said, "\n"); !strings.Contains(text, "RDB: 400 keys") {
		t.Errorf("the snapshot: %s", text)
	}
}
