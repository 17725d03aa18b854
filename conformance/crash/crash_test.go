// kill -9 at random moments: under load, at the start, while the log is rewritten, turned on and turned off.
package crash

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
)

var (
	rounds = flag.Int("rounds", 15, "how often the server is killed with appendfsync always, and a third as often with others")
	seedOf = flag.Uint64("seed", 0, "the seed of all rounds, 0 for a new one")
)

func TestMain(m *testing.M) { peer.Main(m) }

func seed(t *testing.T) *rand.Rand {
	n := *seedOf
	if n == 0 {
		n = rand.Uint64()
	}
	t.Logf("-seed %d", n)
	return rand.New(rand.NewPCG(n, 1))
}

// start starts a server on a directory, without telling the test to stop it: it is to be killed.
func start(t *testing.T, dir string, args ...string) *peer.Server {
	t.Helper()
	bin, err := peer.Build()
	if err != nil {
		t.Fatal(err)
	}
	s, err := peer.Start("limitkv", bin, append([]string{"--dir", dir, "--save", "", "--auto-aof-rewrite-min-size", "300kb", "--enable-debug-command", "yes"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	return s
}

// killedAtStart starts servers that are killed before they are ready, somewhere on the way.
func killedAtStart(t *testing.T, r *rand.Rand, dir string, args ...string) {
	t.Helper()
	bin, err := peer.Build()
	if err != nil {
		t.Fatal(err)
	}
	for range 1 + r.IntN(3) {
		cmd := exec.Command(bin, append([]string{"--port", "0", "--dir", dir}, args...)...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(r.IntN(20_000)) * time.Microsecond)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

// disturb has the server write files of all kinds while it is under load, until it is gone.
func disturb(s *peer.Server, r *rand.Rand, commands []string) {
	c, err := peer.Dial(s.Addr)
	if err != nil {
		return
	}
	defer c.Close()
	for {
		time.Sleep(time.Duration(r.IntN(30_000)) * time.Microsecond)
		if _, err := c.Do(strings.Fields(commands[r.IntN(len(commands))])...); err != nil {
			return
		}
	}
}

// TestKill: with appendfsync always all that was acknowledged is there after kill -9, whatever files were being written.
func TestKill(t *testing.T) {
	r, dir, load := seed(t), t.TempDir(), NewLoad(6)
	args := []string{"--appendonly", "yes", "--appendfsync", "always"}
	acknowledged := 0
	for round := range *rounds {
		s := start(t, dir, args...)
		if _, err := load.Check(s.Addr, time.Time{}); err != nil {
			t.Fatalf("round %d: %v\n%s", round, err, s.Output())
		}
		load.Start(s.Addr, r.Uint64())
		go disturb(s, rand.New(rand.NewPCG(r.Uint64(), 2)), []string{"BGREWRITEAOF", "BGSAVE", "BGREWRITEAOF"})
		time.Sleep(time.Duration(20+r.IntN(180)) * time.Millisecond)
		s.Kill()
		load.Wait()
		acknowledged += load.Acknowledged()
		if round%3 == 0 {
			killedAtStart(t, r, dir, args...)
		}
	}
	s := start(t, dir, args...)
	if _, err := load.Check(s.Addr, time.Time{}); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d requests were acknowledged in %d rounds", acknowledged, *rounds)
	if acknowledged < 50**rounds {
		t.Errorf("that is too few for the test to mean something")
	}
}

// lostMax is how old what kill -9 loses may be where replies do not wait for the disk. It is 4 or 5 ms where the
// machine has time.
const lostMax = time.Second

// TestKillBuffered: with everysec and no, kill -9 loses only what had not been given to the system, and that is written
// soon; and what is there is what the log had up to one place.
func TestKillBuffered(t *testing.T) {
	for _, policy := range []string{"everysec", "no"} {
		t.Run(policy, func(t *testing.T) {
			r, dir, load := seed(t), t.TempDir(), NewLoad(4)
			lost, acknowledged := 0, 0
			var killed time.Time
			for round := range 1 + *rounds/6 {
				s := start(t, dir, "--appendonly", "yes", "--appendfsync", policy)
				n, err := load.Check(s.Addr, killed.Add(-lostMax))
				if lost += n; err != nil {
					t.Fatalf("round %d: %v\n%s", round, err, s.Output())
				}
				load.Start(s.Addr, r.Uint64())
				go disturb(s, rand.New(rand.NewPCG(r.Uint64(), 2)), []string{"BGREWRITEAOF", "BGSAVE", "PING", "PING", "PING"})
				for until := time.Now().Add(lostMax + time.Duration(r.IntN(300))*time.Millisecond); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
					load.note()
				}
				killed = time.Now()
				s.Kill()
				load.Wait()
				acknowledged += load.Acknowledged()
			}
			s := start(t, dir, "--appendonly", "yes", "--appendfsync", policy)
			n, err := load.Check(s.Addr, killed.Add(-lostMax))
			if lost += n; err != nil {
				t.Fatal(err)
			}
			t.Logf("%d of %d acknowledged requests are gone", lost, acknowledged)
			if acknowledged < 1000 {
				t.Error("that is too few for the test to mean something")
			}
		})
	}
}

// TestKillTurning: the log is turned on and off under load. Killed while it is on, with always, nothing is lost that was
// acknowledged since it was on.
func TestKillTurning(t *testing.T) {
	r := seed(t)
	for round := range 1 + *rounds/4 {
		dir, load := t.TempDir(), NewLoad(4)
		s := start(t, dir, "--appendonly", "no", "--appendfsync", "always")
		load.Start(s.Addr, r.Uint64())
		c := s.Dial(t)
		for range r.IntN(3) {
			for _, value := range []string{"yes", "no"} {
				turn(t, s, c, value)
				time.Sleep(time.Duration(r.IntN(30)) * time.Millisecond)
			}
		}
		turn(t, s, c, "yes")
		awaitInfo(t, c, "aof_rewrite_scheduled:0", "aof_rewrite_in_progress:0", "aof_last_bgrewrite_status:ok", "aof_enabled:1")
		time.Sleep(time.Duration(r.IntN(100)) * time.Millisecond)
		s.Kill()
		load.Wait()
		s = start(t, dir, "--appendonly", "yes", "--appendfsync", "always")
		if _, err := load.Check(s.Addr, time.Time{}); err != nil {
			t.Fatalf("round %d: %v\n%s", round, err, s.Output())
		}
		if load.Acknowledged(); load.shared == 0 {
			t.Error("nothing was asked for")
		}
		s.Kill()
	}
}

// turn turns the log on or off; it may be busy with the last time for a moment.
func turn(t *testing.T, s *peer.Server, c *peer.Conn, value string) {
	t.Helper()
	var v peer.Value
	for range 500 {
		var err error
		if v, err = c.Do("CONFIG", "SET", "appendonly", value); err != nil {
			t.Fatalf("%v\n%s", err, s.Output())
		}
		if v.Text == "OK" {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("CONFIG SET appendonly %s: %v", value, v)
}

// awaitInfo waits until INFO persistence has all lines.
func awaitInfo(t *testing.T, c *peer.Conn, lines ...string) {
	t.Helper()
	var v peer.Value
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		var err error
		if v, err = c.Do("INFO", "persistence"); err != nil {
			t.Fatal(err)
		}
		missing := false
		for _, line := range lines {
			missing = missing || !strings.Contains(v.Text, line+"\r\n")
		}
		if !missing {
			return
		}
	}
	t.Fatalf("INFO does not come to %q:\n%s", lines, v.Text)
}

// TestKillPopped: what a waiting client was given is gone from the list after kill -9, and what nobody was given is there.
func TestKillPopped(t *testing.T) {
	r, dir := seed(t), t.TempDir()
	args := []string{"--appendonly", "yes", "--appendfsync", "always"}
	total := 0
	for round := range 1 + *rounds/3 {
		s := start(t, dir, args...)
		pushed, popped := make(chan int, 1), make(chan int, 1)
		go func() {
			n := 0
			defer func() { pushed <- n }()
			c, err := peer.Dial(s.Addr)
			for ; err == nil; n++ {
				var v peer.Value
				if v, err = c.Do("RPUSH", "waited", fmt.Sprint(n)); err != nil || v.IsError() {
					return
				}
			}
		}()
		go func() {
			n := 0
			defer func() { popped <- n }()
			c, err := peer.Dial(s.Addr)
			for ; err == nil; n++ {
				var v peer.Value
				if v, err = c.Do("BLPOP", "waited", "0"); err != nil || len(v.Items) != 2 || v.Items[1].Text != fmt.Sprint(n) {
					return
				}
			}
		}()
		time.Sleep(time.Duration(50+r.IntN(100)) * time.Millisecond)
		s.Kill()
		in, out := <-pushed, <-popped
		total += out
		s = start(t, dir, args...)
		c := s.Dial(t)
		v, err := c.Do("LRANGE", "waited", "0", "-1")
		if err != nil {
			t.Fatal(err)
		}
		// One more may have been pushed, and one more popped, whose replies did not leave.
		next := out
		if len(v.Items) > 0 && v.Items[0].Text == fmt.Sprint(out+1) {
			next++
		} else if len(v.Items) == 0 && in > out {
			next++
		}
		for i, item := range v.Items {
			if item.Text != fmt.Sprint(next+i) {
				t.Fatalf("round %d: %d were pushed, %d popped, and there are %v", round, in, out, v)
			}
		}
		if end := next + len(v.Items); end < in || end > in+1 {
			t.Fatalf("round %d: %d were pushed, %d popped, and there are %v", round, in, out, v)
		}
		if v, err := c.Do("DEL", "waited"); err != nil || v.IsError() {
			t.Fatal(v, err)
		}
		s.Kill()
	}
	if total < 20 {
		t.Errorf("only %d were popped", total)
	}
}

// TestKillWhileLoading: a server that is killed while it starts, again and again, changes nothing.
func TestKillWhileLoading(t *testing.T) {
	r, dir, load := seed(t), t.TempDir(), NewLoad(4)
	args := []string{"--appendonly", "yes", "--appendfsync", "always"}
	s := start(t, dir, args...)
	load.Start(s.Addr, r.Uint64())
	time.Sleep(300 * time.Millisecond)
	s.Kill()
	load.Wait()
	// A torn write on top of it: half a command.
	files, err := filepath.Glob(filepath.Join(dir, "appendonlydir", "*.incr.aof"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	f, err := os.OpenFile(files[len(files)-1], os.O_WRONLY|os.O_APPEND, 0)
	if err == nil {
		_, err = f.WriteString("*3\r\n$3\r\nSET\r\n$1\r\nt")
		f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	for range *rounds {
		killedAtStart(t, r, dir, args...)
	}
	s = start(t, dir, args...)
	if _, err := load.Check(s.Addr, time.Time{}); err != nil {
		t.Fatalf("%v\n%s", err, s.Output())
	}
	if v, err := s.Dial(t).Do("EXISTS", "t"); err != nil || v.Text != "0" {
		t.Error(v, err)
	}
}
