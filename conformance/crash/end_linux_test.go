// Ends that the disk is not ready for, and disks that are read-only for a while.
package crash

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
)

// gone waits until a server has ended.
func gone(s *peer.Server, within time.Duration) bool {
	for end := time.Now().Add(within); s.Alive(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

func term(t *testing.T, s *peer.Server) {
	t.Helper()
	if err := syscall.Kill(s.Pid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
}

// TestTermWhileLogFails: a server whose log cannot be written ends by SIGTERM all the same, as Redis does. Where a snapshot is
// to be made at the end, and there is no room for that either, it ends by force, or when there is room again. What it
// acknowledged, and said to be synced, is there in any case.
func TestTermWhileLogFails(t *testing.T) {
	for _, policy := range []string{"always", "everysec", "no"} {
		for how, more := range map[string][]string{"plain": nil, "force": {"--save", "3600 1", "--shutdown-on-sigterm", "force"}, "room": {"--save", "3600 1"}} {
			t.Run(policy+" "+how, func(t *testing.T) {
				dir := smallDisk(t, "4m")
				args := append([]string{"--appendonly", "yes", "--appendfsync", policy}, more...)
				s := start(t, dir, args...)
				c := s.Dial(t)
				acked := 0
				for ; acked < 50; acked++ {
					c.Must(t, "SET", "key:"+strconv.Itoa(acked), "v")
				}
				c.Must(t, "WAITAOF", "1", "0", "5000")
				ballast := fill(t, dir)
				for end := time.Now().Add(60 * time.Second); !c.Must(t, "SET", "other", strings.Repeat("x", 5000)).IsError(); {
					if time.Now().After(end) {
						t.Fatal("writes are not refused on a full disk")
					}
				}
				term(t, s)
				if how == "room" {
					if gone(s, 300*time.Millisecond) {
						t.Fatalf("it ends without its snapshot\n%s", s.Output())
					}
					if v := s.Dial(t).Must(t, "GET", "key:7"); v.Text != "v" {
						t.Errorf("a server that did not end: %v", v)
					}
				} else if !gone(s, 60*time.Second) || !strings.Contains(s.Output(), "now ready to exit") {
					t.Fatalf("it does not end\n%s", s.Output())
				}
				if err := os.Remove(ballast); err != nil {
					t.Fatal(err)
				}
				if how == "room" {
					reader := s.Dial(t)
					awaitInfo(t, reader, "aof_last_write_status:ok")
					// A write that began on the full disk may fail once more.
					for end := time.Now().Add(60 * time.Second); ; time.Sleep(10 * time.Millisecond) {
						if v := reader.Must(t, "SET", "after", "v"); !v.IsError() {
							break
						} else if time.Now().After(end) {
							t.Fatal(v)
						}
					}
					term(t, s)
					if !gone(s, 60*time.Second) {
						t.Fatalf("it does not end\n%s", s.Output())
					}
				}
				c = start(t, dir, args...).Dial(t)
				for i := range acked {
					if v := c.Must(t, "GET", "key:"+strconv.Itoa(i)); v.Text != "v" {
						t.Fatalf("key:%d was acknowledged, and is %.20v", i, v)
					}
				}
				if how == "room" {
					if v := c.Must(t, "GET", "after"); v.Text != "v" {
						t.Errorf("after: %v", v)
					}
				}
			})
		}
	}
}

// TestReadOnlyDisk: a disk that becomes read-only, for real, fails snapshots, the turning on of the log, and nothing
// else; all goes on when it can be written again.
func TestReadOnlyDisk(t *testing.T) {
	dir := smallDisk(t, "8m")
	remount := func(flags uintptr) {
		t.Helper()
		if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT|flags, "size=8m"); err != nil {
			t.Fatal(err)
		}
	}
	s := start(t, dir, "--save", "3600 1")
	c := s.Dial(t)
	c.Must(t, "SET", "k", "1")
	if v := c.Must(t, "SAVE"); v.IsError() {
		t.Fatal(v)
	}
	remount(syscall.MS_RDONLY)
	c.Must(t, "BGSAVE")
	awaitInfo(t, c, "rdb_last_bgsave_status:err")
	if v := c.Must(t, "SET", "k", "2"); !strings.HasPrefix(v.Text, "MISCONF Redis is configured to save RDB snapshots") {
		t.Errorf("SET: %v", v)
	}
	if v := c.Must(t, "SAVE"); !v.IsError() {
		t.Errorf("SAVE: %v", v)
	}
	if v := c.Must(t, "GET", "k"); v.Text != "1" {
		t.Errorf("GET: %v", v)
	}
	c.Must(t, "CONFIG", "SET", "appendonly", "yes")
	awaitInfo(t, c, "aof_last_bgrewrite_status:err")
	remount(0)
	awaitInfo(t, c, "aof_last_bgrewrite_status:ok")
	c.Must(t, "BGSAVE")
	awaitInfo(t, c, "rdb_last_bgsave_status:ok")
	if v := c.Must(t, "SET", "k", "3"); v.Text != "OK" {
		t.Errorf("SET: %v", v)
	}
	c.Must(t, "WAITAOF", "1", "0", "5000")
	s.Kill()
	if v := start(t, dir, "--appendonly", "yes").Dial(t).Must(t, "GET", "k"); v.Text != "3" {
		t.Errorf("after the start: %v", v)
	}
}
