package follow

// Sentinel, unmodified: three sentinels of Redis watch a primary and two replicas, all limitkv, and make another one the
// primary when it is killed, stopped or cut off. Everybody reaches everybody by links, which is what can be cut.

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
)

// node is a server that is started again and again from its own file.
type node struct {
	t    *testing.T
	bin  string
	args []string
	addr string
	cmd  *exec.Cmd
	link *peer.Link // by which all others reach it
	out  *peer.Tail
}

func newNode(t *testing.T, bin, file, config string, args ...string) *node {
	t.Helper()
	port, err := peer.LastingPort()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), file)
	config = "port " + port + "\nbind 127.0.0.1\ndir " + filepath.Dir(path) + "\n" + config
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	n := &node{t: t, bin: bin, args: append([]string{path}, args...), addr: "127.0.0.1:" + port, out: &peer.Tail{}}
	if n.link, err = peer.NewLink(n.addr); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		n.link.Close()
		n.kill()
		if t.Failed() {
			t.Logf("%s %s:\n%s", file, n.addr, n.out)
		}
	})
	return n
}

func (n *node) set(t *testing.T, line string) {
	t.Helper()
	f, err := os.OpenFile(n.args[0], os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(line + "\n")
		f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (n *node) start() {
	n.t.Helper()
	n.cmd = exec.Command(n.bin, n.args...)
	n.cmd.Stdout, n.cmd.Stderr = n.out, n.out
	if err := n.cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	peer.Eventually(n.t, "the start", func() bool {
		c, err := peer.Dial(n.addr)
		if err != nil {
			return false
		}
		defer c.Close()
		_, err = c.Do("PING")
		return err == nil
	})
}

func (n *node) kill() {
	if n.cmd != nil && n.cmd.Process != nil {
		_ = n.cmd.Process.Kill() // it may have ended
		_ = n.cmd.Wait()
		n.cmd = nil
	}
}

func (n *node) signal(s os.Signal) { _ = n.cmd.Process.Signal(s) }

func (n *node) dial() *peer.Conn {
	n.t.Helper()
	c, err := peer.Dial(n.addr)
	if err != nil {
		n.t.Fatal(err)
	}
	return c
}

// askPatience is how long a reply may take. A server that stands still is asked again.
const askPatience = 3 * time.Second

// ask runs a command on a connection of its own. The reply is empty where there is none.
func (n *node) ask(args ...string) peer.Value {
	c, err := peer.Dial(n.addr)
	if err != nil {
		return peer.Value{}
	}
	defer c.Close()
	_ = c.Send(args...)
	v, err := c.ReceiveWithin(askPatience)
	if err != nil {
		return peer.Value{}
	}
	return v
}

// field is a field of INFO, empty where there is no answer.
func (n *node) field(name string) string { return peer.Field(n.ask("INFO", "everything").Text, name) }

// downAfter is when a sentinel takes a server for down, in milliseconds: not when a busy machine stood still for a second, or
// another server would be made the primary once more.
const downAfter = 3000

type sentinels struct {
	t     *testing.T
	nodes []*node
	all   []*node // the sentinels
}

func watched(t *testing.T) *sentinels {
	t.Helper()
	redis := peer.Tool(t, "redis-server", *required)
	bin, err := peer.Build()
	if err != nil {
		t.Fatal(err)
	}
	s := &sentinels{t: t}
	for i := range 3 {
		n := newNode(t, bin, "limitkv.conf", "save \"\"\nappendonly yes\nenable-debug-command yes\nrepl-diskless-sync-delay 0\nreplica-announce-ip 127.0.0.1\n")
		n.set(t, "replica-announce-port "+n.link.Port())
		if i > 0 {
			n.set(t, "replicaof 127.0.0.1 "+s.nodes[0].link.Port())
		}
		n.start()
		s.nodes = append(s.nodes, n)
	}
	for range 3 {
		n := newNode(t, redis, "sentinel.conf", fmt.Sprintf("sentinel monitor it 127.0.0.1 %s 2\nsentinel down-after-milliseconds it %d\n"+
			"sentinel failover-timeout it 4000\nsentinel parallel-syncs it 2\n", s.nodes[0].link.Port(), downAfter), "--sentinel")
		n.start()
		s.all = append(s.all, n)
	}
	peer.Eventually(t, "the sentinels to know each other and the replicas", func() bool {
		for _, n := range s.all {
			c := n.dial()
			others, replicas := c.Must(t, "SENTINEL", "SENTINELS", "it"), c.Must(t, "SENTINEL", "REPLICAS", "it")
			c.Close()
			if len(others.Items) != 2 || len(replicas.Items) != 2 {
				return false
			}
		}
		return true
	})
	return s
}

// primary is the server that all sentinels take for the primary and that is one, nil while they differ.
func (s *sentinels) primary() *node {
	port := ""
	for _, n := range s.all {
		v := n.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "it")
		if len(v.Items) != 2 || port != "" && v.Items[1].Text != port {
			return nil
		}
		port = v.Items[1].Text
	}
	for _, n := range s.nodes {
		if n.link.Port() == port && n.field("role") == "master" {
			return n
		}
	}
	return nil
}

// failoverPatience is how long is waited for sentinels, who try again after some seconds if they do not agree.
const failoverPatience = 3 * time.Minute

// lead has fn work at the primary until it has nothing to complain of. Which server that is is asked anew each time:
// sentinels take a server of a busy machine for down, too, and make another one the primary.
func (s *sentinels) lead(what string, fn func(at *node) (complaint string)) *node {
	s.t.Helper()
	complaint := ""
	for end := time.Now().Add(failoverPatience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		at := s.primary()
		if at == nil {
			complaint = "the sentinels do not agree"
		} else if complaint = fn(at); complaint == "" {
			return at
		}
	}
	s.t.Fatalf("%s: not within %v: %s", what, failoverPatience, complaint)
	return nil
}

// whole waits until there is a primary, and the others follow it and have all that it has.
func (s *sentinels) whole() *node {
	s.t.Helper()
	return s.lead("replicas that have what the primary has", func(at *node) string {
		of, digest := at.ask("INFO", "replication").Text, at.ask("DEBUG", "DIGEST")
		for _, n := range s.nodes {
			if n == at {
				continue
			}
			text := n.ask("INFO", "replication").Text
			if peer.Field(text, "role") != "slave" || peer.Field(text, "master_port") != at.link.Port() || peer.Field(text, "master_link_status") != "up" ||
				peer.Field(text, "slave_repl_offset") != peer.Field(of, "master_repl_offset") {
				return fmt.Sprintf("%s is not where the primary %s is:\n%s\n%s", n.addr, at.addr, text, of)
			}
			if got := n.ask("DEBUG", "DIGEST"); got.Kind != '+' || got.Text != digest.Text {
				return fmt.Sprintf("the digest of %s is %v, and %v that of the primary %s", n.addr, got, digest, at.addr)
			}
		}
		return ""
	})
}

// told is what clients may rely on: all three servers had it on their disks when it was told, so every one has it that becomes the
// primary. In their memories were not enough: the sentinels may choose a server that was killed and has just come back.
type told struct {
	list  []string // what was appended to a list, each of which is the name of a key as well
	jobs  []string
	fence int
}

// tell has a client write to the primary until that and both replicas have on disk what it wrote.
func (s *sentinels) tell(name string, have *told) *node {
	s.t.Helper()
	try := 0
	return s.lead("a write that all have", func(at *node) string {
		c, err := peer.Dial(at.addr)
		if err != nil {
			return err.Error()
		}
		defer c.Close()
		try++
		var list []string
		job := fmt.Sprint(name, ".", try)
		for j := range 100 {
			list = append(list, fmt.Sprint(job, ".", j))
		}
		commands := [][]string{append([]string{"RPUSH", "list"}, list...), {"DQ.ADD", "queue", "DELAY", "0", job}, {"LK.ACQUIRE", "lock", job, "100"}}
		for _, key := range list {
			commands = append(commands, []string{"SET", key, "v", "PX", "100000000"})
		}
		for _, args := range commands {
			v, err := c.Do(args...)
			if err != nil || v.IsError() {
				return fmt.Sprintf("%.60v: %v %v", args, v, err)
			}
			if args[0] == "LK.ACQUIRE" {
				if len(v.Items) != 4 || v.Items[0].Text != "1" {
					return fmt.Sprintf("%v: %v", args, v) // the try before this one has it
				}
				if fence := number(v); fence <= have.fence {
					s.t.Errorf("%s: the fence is %v, it was %d", job, v, have.fence)
				} else {
					have.fence = fence
				}
			}
		}
		if v, err := c.Do("WAITAOF", "1", "2", "5000"); err != nil || v.String() != "[:1, :2]" {
			return fmt.Sprintf("WAITAOF 1 2: %v %v", v, err)
		}
		have.list, have.jobs = append(have.list, list...), append(have.jobs, job)
		return ""
	})
}

// holds looks whether the primary has all that was told. It may have more, of which nobody was told.
func (s *sentinels) holds(what string, have *told) {
	s.t.Helper()
	var list, queue peer.Value
	s.lead("a reply to reads", func(at *node) string {
		keys := at.ask(append([]string{"EXISTS"}, have.list...)...)
		list, queue = at.ask("LRANGE", "list", "0", "-1"), at.ask("DQ.PEEK", "queue", "COUNT", "1000")
		if keys.Kind != ':' || list.Kind != '*' || queue.Kind != '*' {
			return fmt.Sprintf("%.60v, %.60v, %.60v", keys, list, queue)
		}
		if keys.String() != fmt.Sprint(":", len(have.list)) {
			s.t.Errorf("%s: %v keys are there of %d that were told", what, keys, len(have.list))
		}
		return ""
	})
	next, seen := 0, map[string]bool{}
	for _, item := range list.Items {
		if seen[item.Text] {
			s.t.Errorf("%s: the list has %q twice", what, item.Text)
		}
		if seen[item.Text] = true; next < len(have.list) && item.Text == have.list[next] {
			next++
		}
	}
	if next != len(have.list) {
		s.t.Errorf("%s: the list lacks %q, or has it in another place", what, have.list[next])
	}
	for _, job := range have.jobs {
		if !strings.Contains(queue.String(), strconv.Quote(job)) {
			s.t.Errorf("%s: the queue lacks the job %q: %v", what, job, queue)
		}
	}
}

// TestSentinel takes the primary away in three ways. Each time another server takes its place with all that was told, and the
// former one comes back as a replica with what the others have.
func TestSentinel(t *testing.T) {
	peer.Long(t)
	s := watched(t)
	s.whole()
	have := &told{}
	for _, fault := range []struct {
		name        string
		break_, fix func(n *node)
	}{
		{"kill", func(n *node) { n.kill() }, func(n *node) { n.start() }},
		{"stop", func(n *node) { n.signal(peer.SIGSTOP) }, func(n *node) { n.signal(peer.SIGCONT) }},
		{"cut", func(n *node) { n.link.Set(true) }, func(n *node) { n.link.Set(false) }},
	} {
		was := s.tell(fault.name, have)
		fault.break_(was)
		now := s.lead("another primary", func(at *node) string {
			if at == was {
				return "it is the former one still"
			}
			return ""
		})
		s.holds("after "+fault.name, have)
		fault.fix(was)
		at := s.whole()
		s.holds("when all are back after "+fault.name, have)
		t.Logf("%s: from %s to %s, when all are back %s", fault.name, was.addr, now.addr, at.addr)
	}
	// What CONFIG REWRITE wrote is what a server starts with.
	s.lead("a file that says whom its server follows", func(at *node) string {
		for _, n := range s.nodes {
			text, err := os.ReadFile(n.args[0])
			if err != nil {
				return err.Error()
			}
			want := "replicaof 127.0.0.1 " + at.link.Port()
			if has := strings.Contains(string(text), want); has != (n != at) {
				return fmt.Sprintf("the file of %s has %q: %v\n%s", n.addr, want, has, text)
			}
		}
		return ""
	})
}

// number is the largest integer of a reply.
func number(v peer.Value) (most int) {
	for _, word := range strings.FieldsFunc(v.String(), func(r rune) bool { return r < '0' || r > '9' }) {
		if n, err := strconv.Atoi(word); err == nil {
			most = max(most, n)
		}
	}
	return most
}
