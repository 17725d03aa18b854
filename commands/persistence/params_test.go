package persistence_test

// Tests of the family's parameters.

import (
	"strings"
	"testing"

	"github.com/limitkv/limitkv/commands/livetest"
	"github.com/limitkv/limitkv/server"
)

// TestSavePoints: CONFIG SET save accepts the same values as in Redis 8.0.
func TestSavePoints(t *testing.T) {
	t.Chdir(t.TempDir())
	s := livetest.StartWith(t, func(s *server.Server) { s.FS, s.Log = newDisk(), livetest.NoLog{} })
	c := s.Client()
	for _, x := range [][2]string{
		{"1 ", "1 0"}, {"1 2 3 4", "1 2 3 4"}, {"\t1 2", "1 2"}, {"+1 2", "1 2"}, {"99999999999 1", "99999999999 1"}, {"", ""},
		{" 1 2", "-"}, {"1  2", "-"}, {" ", "-"}, {"1 2 ", "-"}, {"1\t2", "-"}, {"1 2 3", "-"}, {"0 5", "-"}, {"1 -1", "-"}, {"1 0x1", "-"},
	} {
		if x[1] == "-" {
			c.Want("-ERR CONFIG SET failed (possibly related to argument 'save') - Invalid save parameters", "CONFIG", "SET", "save", x[0])
			continue
		}
		c.Want("OK", "CONFIG", "SET", "save", x[0])
		c.Want("[save "+x[1]+"]", "CONFIG", "GET", "save")
	}
}

// TestOwnFiles: files that the server writes by itself do not count as a client's command, as in Redis.
func TestOwnFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	s := livetest.StartWith(t, func(s *server.Server) { s.FS, s.Log = newDisk(), livetest.NoLog{} })
	c := s.Client()
	wait(t, c, "aof_rewrites:0")
	c.Want("OK", "CONFIG", "SET", "appendonly", "yes")
	wait(t, c, "aof_rewrites:1")
	wait(t, c, "aof_rewrite_in_progress:0")
	if stats := c.Do("INFO", "commandstats"); strings.Contains(stats, "cmdstat_bgrewriteaof") {
		t.Error(stats)
	}
	c.Want("Background append only file rewriting started", "BGREWRITEAOF")
	if stats := c.Do("INFO", "commandstats"); !strings.Contains(stats, "cmdstat_bgrewriteaof:calls=1,") {
		t.Error(stats)
	}
}
