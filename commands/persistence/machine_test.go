package persistence_test

// The server on a machine that crashes: random commands of all families on the simulated file system, errors at some of its
// calls, and a crash at a random call. Then the machine starts again, and the server must have the state after one of the
// commands, which is not before the last acknowledged one.

import (
	"bufio"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/limitkv/limitkv/commands"
	"github.com/limitkv/limitkv/commands/livetest"
	"github.com/limitkv/limitkv/engine/vfs"
	"github.com/limitkv/limitkv/engine/vfs/simfs"
	"github.com/limitkv/limitkv/server"
	"github.com/limitkv/limitkv/server/params"
)

var (
	machineRuns = flag.Int("machine.runs", 25, "how many seeds the test of the server on a machine that crashes runs")
	machineSeed = flag.Uint64("machine.seed", 0, "its first seed, 0 for one of its own")
)

// served is a server of the test's process, and a connection to it.
type served struct {
	s    *server.Server
	conn net.Conn
	in   *bufio.Reader
}

// serve starts a server on a file system, nil for none, at a time.
func serve(t *testing.T, fs vfs.FS, nowMillis int64, settings ...string) (*served, error) {
	t.Helper()
	o := server.Options{Loops: 1, Test: true, LoadLater: true, Settings: []params.Setting{{Name: "port", Value: "0"}, {Name: "save", Value: ""}}}
	for i := 0; i < len(settings); i += 2 {
		o.Settings = append(o.Settings, params.Setting{Name: settings[i], Value: settings[i+1]})
	}
	s, err := commands.New(o)
	if err != nil {
		t.Fatal(err)
	}
	if fs != nil {
		s.FS = fs
	}
	s.Log = livetest.NoLog{}
	s.Keyspace.Clock.Freeze(nowMillis * 1000)
	addrs, err := s.Listen()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Load(); err != nil {
		_ = s.Close() // there is nothing in it
		return nil, err
	}
	s.Keyspace.Sched.Freeze(nowMillis*1000 - 1)
	s.Keyspace.Sched.Advance(1) // what is due has happened then
	conn, err := net.Dial("tcp", addrs[0])
	if err != nil {
		t.Fatal(err)
	}
	return &served{s, conn, bufio.NewReader(conn)}, nil
}

// do sends a line and returns the reply as it came, in one line, or "" if none came in time.
func (v *served) do(t *testing.T, line string, within time.Duration) string {
	t.Helper()
	var args []any
	for _, w := range strings.Fields(line) {
		args = append(args, strings.NewReplacer("_", " ", "~", "\n").Replace(w))
	}
	if _, err := v.conn.Write(livetest.Append(nil, args...)); err != nil {
		return ""
	}
	_ = v.conn.SetReadDeadline(time.Now().Add(within))
	return v.reply()
}

func (v *served) reply() string {
	line, err := v.in.ReadString('\n')
	if err != nil {
		return ""
	}
	line = strings.TrimSpace(line)
	var n int
	switch line[0] {
	case '$':
		if _, _ = fmt.Sscanf(line[1:], "%d", &n); n < 0 {
			return "nil"
		}
		b := make([]byte, n+2)
		for at := 0; at < len(b); {
			got, err := v.in.Read(b[at:])
			if at += got; err != nil {
				return ""
			}
		}
		return string(b[:n])
	case '*':
		_, _ = fmt.Sscanf(line[1:], "%d", &n)
		all := []string{}
		for range n {
			one := v.reply()
			if one == "" {
				one = "''"
			}
			all = append(all, one)
		}
		return "[" + strings.Join(all, " ") + "]"
	}
	return line
}

// digest is the digest of a server's keys, deadlines included.
func (v *served) digest(t *testing.T) string {
	t.Helper()
	const patience = 10 * time.Second
	text := v.do(t, "DEBUG DIGEST", patience)
	if len(text) != 41 {
		t.Fatalf("DEBUG DIGEST: %q", text)
	}
	for _, key := range []string{"s1", "s2", "l1", "h1", "z1", "t1", "x1", "q1", "dead", "r1", "r2", "k1", "k2"} {
		text += " " + v.do(t, "PEXPIRETIME "+key, patience)
	}
	return text + v.do(t, "LK.INFO k1", patience) + v.do(t, "LK.INFO k2", patience) + v.do(t, "DQ.INFO q1", patience) + v.do(t, "FUNCTION LIST", patience)
}

func (v *served) close() {
	_ = v.conn.Close()
	_ = v.s.Close() // its disk may be down
}

// wordsOf are the commands, and %d in them small numbers.
var wordsOf = strings.Split(strings.TrimSpace(`
SET s%d v%d
SET s%d v%d PX %d000
INCRBY n%d %d
APPEND s%d x%d
SETBIT b%d %d00 1
PEXPIRE s%d %d000
PERSIST s%d
DEL s%d
RPUSH l%d a%d b
LPOP l%d
LMOVE l%d l%d LEFT RIGHT
HSET h%d f%d v%d
HPEXPIRE h%d %d000 FIELDS 1 f%d
HDEL h%d f%d
SADD t%d m%d
SPOP t%d
ZADD z%d %d m%d
ZPOPMIN z%d
XADD x%d * f v%d
XGROUP CREATE x%d g 0
XREADGROUP GROUP g c%d COUNT 1 STREAMS x%d >
XTRIM x%d MAXLEN %d
PFADD p%d e%d
RL.ACQUIRE r%d %d GCRA 5 9000000
RL.ACQUIRE r%d 1 LOG 5 9000000
RL.SET r%d FIXED 5 9000000
RL.ACQUIRE r%d 1 ID i%d LEASE %d000
RL.SETTLE r%d i%d 1
DQ.ADD q%d DELAY %d00 ID e%d payload_%d
DQ.POP q%d LEASE %d000
DQ.ACK q%d e%d#1
DQ.NACK q%d e%d#1 DELAY %d00
DQ.SET q%d TRIES 2 DEAD dead
LK.ACQUIRE k%d o%d %d000
LK.ACQUIRE k%d o%d %d000 SHARED
LK.ACQUIRE k%d o%d %d000 OF 3 TAKE 1
LK.RELEASE k%d o%d
LK.TOUCH o%d %d000 k%d
LK.GUARD k%d %d
EVAL redis.call('INCR',KEYS[1])redis.call('RPUSH',KEYS[2],ARGV[1])return_1 2 n%d l%d v%d
EVAL redis.call('LK.ACQUIRE',KEYS[1],ARGV[1],5000)return_redis.call('SET',KEYS[2],ARGV[1]) 2 k%d s%d o%d
FUNCTION LOAD REPLACE #!lua_name=lib%d~redis['register'..string.char(95)..'function']('f%d',function()return_1_end)
RENAME s%d s%d
COPY z%d z%d REPLACE
SWAPDB 0 1
`), "\n")

func TestMachine(t *testing.T) {
	first := *machineSeed
	if first == 0 {
		first = rand.Uint64N(1 << 40)
	}
	seen := map[string]int{}
	for seed := first; seed < first+uint64(*machineRuns); seed++ {
		machineRun(t, seed, seen)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Logf("from seed %d on: %v", first, seen)
	for what, runs := range map[string]int{"crashes": 25, "power": 25, "acknowledged": 25, "refused": 100, "in memory alone": 400} {
		if seen[what] == 0 && *machineRuns >= runs { // some are rare
			t.Errorf("there were no %s", what)
		}
	}
}

// machineRun is one life of a server, its crash, and a check of its successor.
func machineRun(t *testing.T, seed uint64, seen map[string]int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 0x3a11))
	disk := simfs.New(seed)
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for at := "/"; at != dir; {
		rest, _ := filepath.Rel(at, dir)
		at = filepath.Join(at, strings.Split(rest, "/")[0])
		if err := disk.Mkdir(at); err != nil {
			t.Fatal(err)
		}
		if err := disk.SyncDir(filepath.Dir(at)); err != nil {
			t.Fatal(err)
		}
	}
	policy := []string{"always", "always", "everysec", "no"}[rng.IntN(4)]
	preamble := []string{"yes", "no"}[rng.IntN(2)]
	settings := []string{"appendonly", "yes", "appendfsync", policy, "aof-use-rdb-preamble", preamble, "aof-timestamp-enabled", preamble, "dir", dir}
	now := livetest.Epoch
	model, err := serve(t, nil, now)
	if err != nil {
		t.Fatal(err)
	}
	defer model.close()
	crashAt, wrong := 20+rng.IntN(250), rng.IntN(3) == 0
	accidents := rand.New(rand.NewPCG(seed, 0xd15c)) // only for the disk, whose writers call one after the other
	disk.Plan(func(c simfs.Call) simfs.Accident {
		switch {
		case c.N == crashAt:
			return simfs.Accident{Crash: true}
		case wrong && c.N > 40 && accidents.IntN(12) == 0 && c.Kind != simfs.Stat && c.Kind != simfs.ReadDir:
			return simfs.Accident{Err: []error{syscall.EIO, syscall.ENOSPC}[accidents.IntN(2)], Bytes: accidents.IntN(50)}
		}
		return simfs.Accident{}
	})
	live, err := serve(t, disk, now, settings...)
	if err != nil && !disk.Down() && !wrong {
		t.Fatalf("seed %d: %v", seed, err)
	}
	// A reply that waits for a disk that is down need not come.
	const within = 10 * time.Second
	ended := make(chan struct{})
	defer close(ended)
	go func(v *served) {
		for v != nil && !disk.Down() {
			select {
			case <-ended:
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
		if v != nil {
			time.Sleep(50 * time.Millisecond)
			_ = v.conn.Close()
		}
	}(live)
	states := []string{model.digest(t)}
	acked := 0
	var said []string
	over := false
	for range 20 + rng.IntN(100) {
		if over || live == nil || disk.Down() {
			break
		}
		line := wordsOf[rng.IntN(len(wordsOf))]
		for strings.Contains(line, "%d") {
			line = strings.Replace(line, "%d", fmt.Sprint(1+rng.IntN(2+rng.IntN(3))), 1)
		}
		// Both do the same, times and ids included: nothing here is random.
		advance := int64(0)
		switch rng.IntN(14) {
		case 0:
			line = "BGREWRITEAOF"
		case 1:
			if policy == "always" && acked == len(states)-1 { // what is loaded later is of this time, or none of it is
				advance = int64(rng.IntN(2000))
				line = fmt.Sprint("LKV.CLOCK ADVANCE ", advance)
			}
		case 2:
			line = "BGSAVE"
		}
		if strings.HasPrefix(line, "SPOP") {
			continue // which members it takes is random
		}
		dirty := live.s.Keyspace.Dirty.Load()
		got := live.do(t, line, within)
		said = append(said, line+" "+got)
		if strings.HasPrefix(line, "BG") {
			continue
		}
		switch alone := strings.Contains(got, "What this command did or saw"); {
		case strings.HasPrefix(got, "-MISCONF") && !alone:
			seen["refused"]++
			continue // it did nothing
		case alone:
			seen["in memory alone"]++
			if live.s.Keyspace.Dirty.Load() == dirty {
				continue // a script that was refused in its middle, or something that only looked
			}
		}
		now += advance
		model.do(t, line, 10*time.Second)
		states = append(states, model.digest(t))
		if got == "" {
			if !disk.Down() {
				t.Fatalf("seed %d: no reply to %s", seed, line)
			}
			break
		}
		switch {
		case policy == "always" && !strings.HasPrefix(got, "-MISCONF") && advance == 0 && !disk.Down():
			// A read of unsafe data would wait, and so would an error.
			if probe := live.do(t, "INCR probe", within); strings.HasPrefix(probe, ":") {
				model.do(t, "INCR probe", 10*time.Second)
				states = append(states, model.digest(t))
				acked = len(states) - 1
				seen["acknowledged"]++
			} else if !strings.HasPrefix(probe, "-MISCONF") || strings.Contains(probe, "What this command did") {
				model.do(t, "INCR probe", 10*time.Second)
				states = append(states, model.digest(t))
			}
		case policy != "always" && rng.IntN(5) == 0:
			switch live.do(t, "WAITAOF 1 0 2000", 3*time.Second) {
			case "[:1 :0]":
				acked = len(states) - 1
				seen["acknowledged"]++
			case "": // its clock stands, and its reply would be taken for the next one's
				over = true
			}
		}
	}
	if disk.Down() {
		seen["crashes"]++
	}
	disk.Crash()
	if live != nil {
		live.close()
	}
	disk.Plan(nil)
	power := rng.IntN(3) > 0
	if power {
		seen["power"]++
	}
	disk.Restart(power)
	for range 2 { // what is loaded once is loaded again
		after, err := serve(t, disk, now, settings...)
		if err != nil {
			t.Fatalf("seed %d, %s: the start after the crash: %v", seed, policy, err)
		}
		got := after.digest(t)
		after.close()
		at := -1
		for i := len(states) - 1; i >= 0; i-- {
			if states[i] == got {
				at = i
				break
			}
		}
		if at < acked {
			t.Fatalf("seed %d, %s, power %v: after the crash it holds state %d of %d, and %d was acknowledged\n%s\n got  %s\nacked %s\nlast  %s",
				seed, policy, power, at, len(states)-1, acked, strings.Join(said, "\n"), got, states[acked], states[len(states)-1])
		}
	}
}
