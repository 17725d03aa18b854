package main

// The servers and sentinels, and what happens to them. Everybody reaches the servers through links, which are what is cut.

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
)

const (
	sentinels = 3
	quorum    = 2
	downAfter = 1000 // ms without a reply after which a sentinel takes a server for down
	patience  = 90 * time.Second
)

// node is a server or a sentinel, started from a file of its own that it rewrites.
type node struct {
	bin, file, addr string
	more            []string
	cmd             *exec.Cmd
	out             peer.Tail
	link            *peer.Link // of a server
}

func (n *node) start() error {
	n.cmd = exec.Command(n.bin, append([]string{n.file}, n.more...)...)
	n.cmd.Stdout, n.cmd.Stderr = &n.out, &n.out
	if err := n.cmd.Start(); err != nil {
		return err
	}
	return eventually("the start of "+filepath.Base(n.bin), func() bool { return n.ask("PING").Text == "PONG" })
}

func (n *node) kill() {
	if n.cmd != nil && n.cmd.Process != nil {
		_ = n.cmd.Process.Kill() // it may have ended
		_ = n.cmd.Wait()
		n.cmd = nil
	}
}

// ask runs a command; the reply is empty where there is none.
func (n *node) ask(args ...string) peer.Value {
	c, err := peer.Dial(n.addr)
	if err != nil {
		return peer.Value{}
	}
	defer c.Close()
	if c.Send(args...) != nil {
		return peer.Value{}
	}
	v, err := c.ReceiveWithin(5 * time.Second)
	if err != nil {
		return peer.Value{}
	}
	return v
}

func (n *node) field(name string) string { return peer.Field(n.ask("INFO", "replication").Text, name) }

func eventually(what string, so func() bool) error {
	for end := time.Now().Add(patience); !so(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			return fmt.Errorf("%s: not within %v", what, patience)
		}
	}
	return nil
}

// servers are those that fail over, and who watches them.
type servers struct {
	dir      string
	all      []*node
	watchers []*node
}

// watch starts them all. redis is run as the sentinels.
func watch(server, redis string) (s *servers, err error) {
	s = &servers{}
	if s.dir, err = os.MkdirTemp("", "limitkv-failover-"); err != nil {
		return s, err
	}
	add := func(bin, config string, more ...string) (*node, error) {
		port, err := peer.LastingPort()
		if err != nil {
			return nil, err
		}
		dir := filepath.Join(s.dir, port)
		if err := os.Mkdir(dir, 0o700); err != nil {
			return nil, err
		}
		n := &node{bin: bin, file: filepath.Join(dir, "it.conf"), addr: "127.0.0.1:" + port, more: more}
		return n, os.WriteFile(n.file, []byte("port "+port+"\nbind 127.0.0.1\ndir "+dir+"\n"+config), 0o600)
	}
	for i := range 3 {
		n, err := add(server, "save \"\"\nrepl-diskless-sync-delay 0\nreplica-announce-ip 127.0.0.1\n")
		if err != nil {
			return s, err
		}
		if n.link, err = peer.NewLink(n.addr); err != nil {
			return s, err
		}
		if n.more = []string{"--replica-announce-port", n.link.Port()}; i > 0 {
			n.more = append(n.more, "--replicaof", "127.0.0.1 "+s.all[0].link.Port())
		}
		s.all = append(s.all, n)
		if err := n.start(); err != nil {
			return s, err
		}
		n.more = nil
		if v := n.ask("CONFIG", "REWRITE"); v.Text != "OK" { // from here on the file says whom it follows
			return s, fmt.Errorf("CONFIG REWRITE: %v", v)
		}
	}
	for range sentinels {
		n, err := add(redis, fmt.Sprintf("sentinel monitor it 127.0.0.1 %s %d\nsentinel down-after-milliseconds it %d\n"+
			"sentinel failover-timeout it 6000\nsentinel parallel-syncs it 2\n", s.all[0].link.Port(), quorum, downAfter), "--sentinel")
		if err != nil {
			return s, err
		}
		s.watchers = append(s.watchers, n)
		if err := n.start(); err != nil {
			return s, err
		}
	}
	return s, eventually("the sentinels to know everybody", func() bool {
		for _, w := range s.watchers {
			if !strings.Contains(w.ask("INFO", "sentinel").Text, "status=ok,address=127.0.0.1:"+s.all[0].link.Port()+",slaves=2,sentinels=3") {
				return false
			}
		}
		return s.whole()
	})
}

func (s *servers) end() {
	for _, n := range append(s.all, s.watchers...) {
		n.kill()
	}
	for _, n := range s.all {
		if n.link != nil {
			n.link.Close()
		}
	}
	if s.dir != "" {
		os.RemoveAll(s.dir)
	}
}

// addrs are the sentinels' addresses.
func (s *servers) addrs() string {
	var list []string
	for _, w := range s.watchers {
		list = append(list, w.addr)
	}
	return strings.Join(list, ",")
}

// primary is the server that all sentinels take for the primary and that is one, nil while there is none.
func (s *servers) primary() *node {
	port := ""
	for _, w := range s.watchers {
		v := w.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "it")
		if len(v.Items) != 2 || port != "" && v.Items[1].Text != port {
			return nil
		}
		port = v.Items[1].Text
	}
	for _, n := range s.all {
		if n.link.Port() == port && n.field("role") == "master" {
			return n
		}
	}
	return nil
}

// whole tells whether the others follow the primary.
func (s *servers) whole() bool {
	now := s.primary()
	if now == nil {
		return false
	}
	for _, n := range s.all {
		if n != now && (n.field("master_port") != now.link.Port() || n.field("master_link_status") != "up") {
			return false
		}
	}
	return true
}

// fault takes the primary away, waits for another one, and lets the former one come back as a replica.
func (s *servers) fault(what string, r *record) error {
	was := s.primary()
	if was == nil {
		return fmt.Errorf("there is no primary")
	}
	// What was told before this is with both replicas, and so with who is chosen.
	safe := time.Now()
	c, err := peer.Dial(was.addr)
	if err != nil {
		return err
	}
	_, err = c.Do("INCR", "faults")
	var acknowledged peer.Value
	if err == nil {
		acknowledged, err = c.Do("WAIT", "2", fmt.Sprint(patience.Milliseconds()))
	}
	c.Close()
	if err != nil || acknowledged.String() != ":2" {
		return fmt.Errorf("WAIT 2: %v %v", acknowledged, err)
	}
	var mend func() error
	switch what {
	case "kill":
		was.kill()
		mend = was.start
	case "stop":
		_ = was.cmd.Process.Signal(peer.SIGSTOP)
		mend = func() error { return was.cmd.Process.Signal(peer.SIGCONT) }
	case "cut":
		was.link.Set(true)
		mend = func() error { was.link.Set(false); return nil }
	default:
		return fmt.Errorf("there is no such fault")
	}
	err = eventually("another primary", func() bool { now := s.primary(); return now != nil && now != was })
	if mended := mend(); err == nil {
		err = mended
	}
	if err == nil {
		err = eventually("the former primary as a replica", s.whole)
	}
	r.lossy = append(r.lossy, [2]time.Time{safe, time.Now()})
	return err
}
