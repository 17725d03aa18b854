package files

// How a server ends that is told to by a signal, and what it finds when it comes back.

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
	"github.com/limitkv/limitkv/engine/journal"
)

// TestSignals ends servers by signals, as they are told to be ended, and compares with Redis: whether they end, and
// whether there is a snapshot.
func TestSignals(t *testing.T) {
	servers := map[string]func(args ...string) *peer.Server{
		"limitkv": func(args ...string) *peer.Server { return peer.LimitKV(t, args...) },
		"redis":   func(args ...string) *peer.Server { return peer.Redis(t, required, args...) },
	}
	for _, how := range []string{"default", "save", "nosave", "now", "force", "save now", "nosave force", "save now force"} {
		for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
			for _, points := range []string{"", "3600 1"} {
				for _, fails := range []bool{false, true} {
					if signal == syscall.SIGINT && (fails || points == "") {
						continue // it goes the same way; a few are enough
					}
					outcome := map[string]string{}
					for name, start := range servers {
						parameter, dir := "shutdown-on-sigterm", t.TempDir()
						if signal == syscall.SIGINT {
							parameter = "shutdown-on-sigint"
						}
						s := start("--dir", dir)
						c := s.Dial(t)
						for _, set := range [][]string{{parameter, how}, {"save", points}} {
							if v, err := c.Do("CONFIG", "SET", set[0], set[1]); err != nil || v.IsError() {
								t.Fatal(set, v, err)
							}
						}
						if fails {
							takeName(t, filepath.Join(dir, "dump.rdb"))
						}
						do(t, c, "SET a 1")
						if err := s.Signal(signal); err != nil {
							t.Fatal(err)
						}
						const refuses = "Errors trying to shut down the server"
						for end := time.Now().Add(20 * time.Second); s.Alive() && !strings.Contains(s.Output(), refuses) && time.Now().Before(end); {
							time.Sleep(2 * time.Millisecond)
						}
						ended := !s.Alive()
						info, err := os.Stat(filepath.Join(dir, "dump.rdb"))
						outcome[name] = fmt.Sprint("ended ", ended, ", saved ", err == nil && !info.IsDir())
						if !ended {
							if got := do(t, s.Dial(t), "GET a"); got != `"1"` {
								t.Errorf("%s goes on, and has %s", name, got)
							}
							s.Kill()
						}
					}
					if outcome["limitkv"] != outcome["redis"] {
						t.Errorf("%v, %s, save %q, fails %v: %s, Redis %s", signal, how, points, fails, outcome["limitkv"], outcome["redis"])
					}
				}
			}
		}
	}
}

// TestShutdownTimeout: a server that is told to end does so within shutdown-timeout though clients wait or read nothing.
func TestShutdownTimeout(t *testing.T) {
	s := peer.LimitKV(t, "--dir", t.TempDir(), "--appendonly", "yes", "--appendfsync", "always")
	c := s.Dial(t)
	if got := do(t, c, "CONFIG SET shutdown-timeout 1"); got != "+OK" {
		t.Fatal(got)
	}
	waiting, deaf := s.Dial(t), s.Dial(t)
	if err := waiting.Send("BLPOP", "nothing", "0"); err != nil {
		t.Fatal(err)
	}
	do(t, c, "SET large "+strings.Repeat("x", 1<<20))
	for range 50 {
		_ = deaf.Send("GET", "large")
	}
	if err := s.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if began := time.Now(); !s.Ends(60 * time.Second) {
		t.Errorf("it runs on for %v", time.Since(began))
	}
}

// TestDownTime: what fell due while the server was down is served at the start in the order of time, and though the
// machine's clock is behind the log's last time, the server's is not.
func TestDownTime(t *testing.T) {
	for _, logs := range []string{"yes", "no"} {
		t.Run("appendonly "+logs, func(t *testing.T) {
			dir := t.TempDir()
			args := []string{"--dir", dir, "--appendonly", logs, "--appendfsync", "always", "--save", "3600 1"}
			s := peer.LimitKV(t, args...)
			c := s.Dial(t)
			do(t, c, "SET keeps 1 PX 100000000")
			do(t, c, "SET expires 1 PX 300")
			do(t, c, "HSET hash a 1 b 2")
			do(t, c, "HPEXPIRE hash 300 FIELDS 1 a")
			for _, id := range []string{"first", "second", "third"} {
				do(t, c, "DQ.ADD queue ID "+id+" p")
			}
			do(t, c, "DQ.POP queue LEASE 250") // first, whose lease ends behind second's
			do(t, c, "DQ.POP queue LEASE 200")
			do(t, c, "DQ.ADD queue DELAY 230 ID between p")
			if logs == "no" {
				do(t, c, "SAVE")
			}
			s.Kill()
			time.Sleep(400 * time.Millisecond)

			s = peer.LimitKV(t, args...)
			c = s.Dial(t)
			for _, q := range [][2]string{{"EXISTS keeps", ":1"}, {"EXISTS expires", ":0"}, {"HLEN hash", ":1"}} {
				if got := do(t, c, q[0]); got != q[1] {
					t.Errorf("%s: %s, not %s", q[0], got, q[1])
				}
			}
			// The order is that of the times that the replies tell: on a machine that stood still meanwhile it is another
			// one than that of the leases and the delay.
			var last int64
			served := map[string]bool{}
			for range 4 {
				v, err := c.Do("DQ.POP", "queue", "LEASE", "100000")
				if err != nil || len(v.Items) != 1 || len(v.Items[0].Items) != 4 {
					t.Fatalf("%v %v", v, err)
				}
				entry := v.Items[0].Items
				due, err := strconv.ParseInt(entry[2].Text, 10, 64)
				if err != nil || due < last {
					t.Errorf("%v comes behind %d: %v", v, last, err)
				}
				id, _, _ := strings.Cut(entry[0].Text, "#")
				last, served[id] = due, true
			}
			if len(served) != 4 {
				t.Errorf("there are %v", served)
			}
			s.Kill()
		})
	}
}

// TestBusy asks for files while others are being written, and ends the server then, beside Redis.
func TestBusy(t *testing.T) {
	// What is answered depends on what is under way still. Where the machine stood still for longer than that took, the
	// replies differ, and it is tried again with files that take longer.
	for _, micros := range []int{10_000, 30_000, 100_000} {
		replies := busyReplies(t, micros)
		if len(replies[0]) != len(replies[1]) || len(replies[0]) < 20 {
			t.Fatal(len(replies[0]), len(replies[1]))
		}
		differs := 0
		for i, want := range replies[0] {
			if got := replies[1][i]; got != want {
				differs++
				if t.Logf("%d µs a key: %s\nof Redis %s", micros, got, want); micros == 100_000 {
					t.Fail()
				}
			}
		}
		if differs == 0 {
			return
		}
	}
}

// busyReplies are the replies of Redis and of limitkv where each of 100 keys takes so many microseconds to be written.
func busyReplies(t *testing.T, micros int) (replies [2][]string) {
	slow := fmt.Sprint("CONFIG SET rdb-key-save-delay ", micros)
	for i, start := range []func(args ...string) *peer.Server{
		func(args ...string) *peer.Server { return peer.Redis(t, required, args...) },
		func(args ...string) *peer.Server { return peer.LimitKV(t, args...) },
	} {
		dir := t.TempDir()
		s := start("--dir", dir)
		c := s.Dial(t)
		ask := func(lines ...string) {
			for _, line := range lines {
				replies[i] = append(replies[i], line+" -> "+do(t, c, line))
			}
		}
		for n := range 100 {
			do(t, c, fmt.Sprintf("SET key:%d 1", n))
		}
		do(t, c, slow)
		ask("BGSAVE", "BGSAVE", "SAVE", "BGSAVE SCHEDULE", "BGREWRITEAOF", "BGREWRITEAOF", "SHUTDOWN ABORT")
		do(t, c, "CONFIG SET rdb-key-save-delay 0")
		until(t, c, "rdb_bgsave_in_progress:0")
		until(t, c, "aof_rewrite_scheduled:0")
		until(t, c, "aof_rewrite_in_progress:0")
		do(t, c, slow)
		ask("BGREWRITEAOF", "BGREWRITEAOF", "BGSAVE", "BGSAVE SCHEDULE", "BGSAVE SCHEDULE", "SHUTDOWN ABORT")
		do(t, c, "CONFIG SET rdb-key-save-delay 0")
		until(t, c, "aof_rewrite_in_progress:0")
		until(t, c, "rdb_bgsave_in_progress:0")
		ask("MULTI", "BGSAVE", "SAVE", "EXEC", "MULTI", "BGSAVE", "BGREWRITEAOF", "EXEC")
		time.Sleep(300 * time.Millisecond)
		until(t, c, "rdb_bgsave_in_progress:0")
		until(t, c, "aof_rewrite_in_progress:0")
		do(t, c, "CONFIG SET rdb-key-save-delay 2000000")
		do(t, c, "SET last 1")
		ask("BGSAVE")
		if err := c.Send("SHUTDOWN", "NOSAVE"); err != nil {
			t.Fatal(err)
		}
		if !s.Ends(60 * time.Second) {
			t.Error("SHUTDOWN waits for a snapshot that nobody wants")
		}
		if temps, _ := filepath.Glob(filepath.Join(dir, "temp-*")); len(temps) > 0 && i == 1 {
			t.Errorf("there is %v", temps)
		}
	}
	return replies
}

// TestClockBehind: the machine's clock is an hour behind the last time that the log tells. The server's shows the same, so what
// is to expire by then is there, and what is numbered by time has no number twice.
func TestClockBehind(t *testing.T) {
	dir := t.TempDir()
	o := open(t, dir, journal.WriterOptions{Policy: journal.Always, Checksums: true})
	ahead := time.Now().Add(time.Hour)
	text := peer.AppendCommand(nil, "SET", "soon", "1", "PXAT", fmt.Sprint(ahead.UnixMilli()-1000))
	text = peer.AppendCommand(text, "SET", "there", "1", "PXAT", fmt.Sprint(ahead.UnixMilli()+100_000))
	text = peer.AppendCommand(text, "XADD", "stream", fmt.Sprintf("%d-0", ahead.UnixMilli()), "a", "b")
	o.log.Append(&journal.Batch{NowMicros: ahead.UnixMicro(), RESP: text, Effects: []journal.Effect{{DB: 0, End: len(text)}}, NoMulti: true})
	o.close()
	s := peer.LimitKV(t, "--dir", dir, "--appendonly", "yes")
	c := s.Dial(t)
	v, err := c.Do("TIME")
	if err != nil || len(v.Items) != 2 || v.Items[0].Text > fmt.Sprint(time.Now().Unix()) {
		t.Errorf("TIME is %v, %v, and the system's %d", v, err, time.Now().Unix())
	}
	for _, q := range [][2]string{{"EXISTS soon", ":1"}, {"EXISTS there", ":1"}} {
		if got := do(t, c, q[0]); got != q[1] {
			t.Errorf("%s: %s, not %s", q[0], got, q[1])
		}
	}
	id := do(t, c, "XADD stream * a b")
	if strings.Trim(id, `"`) <= fmt.Sprintf("%d-0", ahead.UnixMilli()) {
		t.Errorf("the next id is %s", id)
	}
}
