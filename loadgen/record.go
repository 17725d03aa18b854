package main

// Recording: a proxy in front of a real server notes the commands that a library sends through it, in the server's order. A
// command counts when it was sent, one that blocks when it was answered, and a transaction at its EXEC. So one connection can
// replay what several have sent.

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// recordedCount is the amount of work of a library while it is recorded.
const recordedCount = 40

// recorder is the proxy with the commands noted so far.
type recorder struct {
	listener net.Listener
	server   string
	mu       sync.Mutex
	next     uint64 // the order of the next command
	noted    []*noted
	conns    []net.Conn
}

// noted is a command that passed the proxy.
type noted struct {
	order    uint64
	args     []string
	inTx     bool
	answered bool
	null     bool
	failure  string // the text of an error
}

// session is a connection through the proxy.
type session struct {
	r       *recorder
	waiting []*noted // without a reply yet
	tx      []*noted // since MULTI
	ignored bool     // it subscribes: replies cannot be distinguished from messages
}

func newRecorder(server string) (*recorder, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &recorder{listener: l, server: server}
	go r.accept()
	return r, nil
}

func (r *recorder) addr() string { return r.listener.Addr().String() }

func (r *recorder) accept() {
	for {
		client, err := r.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", r.server)
		if err != nil {
			client.Close()
			continue
		}
		r.mu.Lock()
		r.conns = append(r.conns, client, server)
		r.mu.Unlock()
		s := &session{r: r}
		go pass(client, server, s.sent)
		go pass(server, client, s.answer)
	}
}

// close ends the proxy. It keeps what was noted.
func (r *recorder) close() {
	r.listener.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.conns {
		c.Close()
	}
}

// pass forwards bytes. It first calls look, which processes the complete messages among them and returns their size.
func pass(from, to net.Conn, look func(b []byte) int) {
	defer from.Close()
	defer to.Close()
	b := make([]byte, 64<<10)
	var rest []byte
	for {
		n, err := from.Read(b)
		rest = append(rest, b[:n]...)
		rest = append(rest[:0], rest[look(rest):]...)
		if n > 0 {
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// sent notes the commands at the start of b.
func (s *session) sent(b []byte) (size int) {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	for {
		args, n := request(b[size:])
		if n == 0 {
			return size
		}
		size += n
		if len(args) == 0 || s.ignored {
			continue
		}
		s.r.next++
		c := &noted{order: s.r.next, args: args}
		s.waiting = append(s.waiting, c)
		s.r.noted = append(s.r.noted, c)
		s.ignored = subscribes(args)
		switch name := strings.ToUpper(args[0]); {
		case name == "MULTI":
			c.inTx = true
			s.tx = []*noted{c}
		case s.tx != nil:
			c.inTx = true
			s.tx = append(s.tx, c)
			if name == "EXEC" || name == "DISCARD" {
				for _, t := range s.tx {
					t.order = c.order
				}
				s.tx = nil
			}
		}
	}
}

// answer notes the replies at the start of b.
func (s *session) answer(b []byte) (size int) {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	for {
		var a reply
		n := scan(b[size:], &a)
		if n <= 0 {
			return size
		}
		size += n
		if a.kind == '>' || len(s.waiting) == 0 {
			continue
		}
		c := s.waiting[0]
		s.waiting = s.waiting[1:]
		c.answered, c.null = true, a.null
		if a.kind == '-' {
			c.failure = string(a.text)
		}
		if blocking(c.args) {
			s.r.next++
			c.order = s.r.next
		}
	}
}

// request parses the command at the start of b and returns its size, 0 if it is not complete. Anything that is not an array is
// skipped as a line.
func request(b []byte) (args []string, size int) {
	end := bytes.Index(b, []byte("\r\n"))
	if end < 0 {
		return nil, 0
	}
	if b[0] != '*' {
		return nil, end + 2
	}
	count, _ := strconv.Atoi(string(b[1:end]))
	at := end + 2
	for range count {
		end := bytes.Index(b[at:], []byte("\r\n"))
		if end < 0 {
			return nil, 0
		}
		n, err := strconv.Atoi(string(b[at+1 : at+end]))
		at += end + 2
		if err != nil || n < 0 || at+n+2 > len(b) {
			return nil, 0
		}
		args = append(args, string(b[at:at+n]))
		at += n + 2
	}
	return args, at
}

// recording makes a recording of the commands noted. Its last command deletes left, the keys that remained.
func (r *recorder) recording(left []string) (*recording, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.SortStableFunc(r.noted, func(a, b *noted) int { return int(int64(a.order) - int64(b.order)) })
	sources, asked := map[string]string{}, map[string]bool{}
	for _, c := range r.noted {
		switch name := strings.ToUpper(c.args[0]); {
		case name == "EVAL" && len(c.args) > 1:
			sources[shaOf(c.args[1])] = c.args[1]
		case name == "SCRIPT" && len(c.args) == 3:
			sources[shaOf(c.args[2])] = c.args[2]
		case name == "EVALSHA" && len(c.args) > 1:
			asked[c.args[1]] = true
		}
	}
	out := &recording{}
	loaded := map[string]bool{}
	for _, c := range r.noted {
		name := strings.ToUpper(c.args[0])
		switch {
		case !c.answered || slices.Contains(handshakes, name) || subscribes(c.args), blocking(c.args) && c.null:
			continue
		case strings.HasPrefix(c.failure, "NOSCRIPT"):
			continue // the library sends the script next, and uses its hash from then on
		case !c.inTx && !strings.Contains(strings.Join(c.args, " "), mark):
			continue // it is about the program, not its work: connections would disturb each other
		case c.failure != "":
			return nil, fmt.Errorf("%s was answered with the error %s", c.args[0], c.failure)
		}
		args := c.args
		if name == "EVAL" && asked[shaOf(args[1])] {
			args = slices.Clone(args)
			args[0], args[1] = "EVALSHA", shaOf(args[1])
		}
		if strings.EqualFold(args[0], "EVALSHA") && !loaded[args[1]] {
			source, ok := sources[args[1]]
			if !ok {
				return nil, fmt.Errorf("the script %s was never sent", args[1])
			}
			loaded[args[1]] = true
			out.scripts = append(out.scripts, source)
		}
		out.calls = append(out.calls, recorded{args, c.null})
	}
	if len(left) > 0 {
		out.calls = append(out.calls, recorded{args: append([]string{"UNLINK"}, left...)})
	}
	if !strings.Contains(fmt.Sprint(out.calls), mark) {
		return nil, errors.New("it did nothing with names of its own")
	}
	return out, nil
}

// runRecord is the command record: it records the available libraries.
func runRecord(args []string) error {
	flags := flag.NewFlagSet("limitkv-benchmark record", flag.ExitOnError)
	redis := flags.String("redis", binary("REDIS", "redis"), "Redis's binary; by default redis-server in PATH")
	clients := flags.String("clients", clientsDir, "folder of the programs that use the libraries")
	dir := flags.String("dir", recordingsDir(), "where recordings are kept")
	only := flags.String("only", "", "libraries to record, separated by commas; by default all")
	if err := flags.Parse(args); err != nil {
		return err
	}
	peers, err := programs("", *redis, "none")
	if err != nil {
		return err
	}
	for _, l := range chosenLibraries(*only) {
		began := time.Now()
		r, err := record(l, peers[1], *clients)
		if err != nil {
			// An older recording would be another conversation than the library's.
			_ = os.Remove(recordingFile(*dir, l.name))
			fmt.Printf("%s: not recorded: %v\n", l.name, err)
			continue
		}
		if err := r.write(recordingFile(*dir, l.name)); err != nil {
			return err
		}
		fmt.Printf("%s: recorded %d commands with %d scripts in %.0f s\n", l.name, len(r.calls), len(r.scripts), time.Since(began).Seconds())
	}
	return nil
}

// record lets a library work through the proxy, and checks that the recording can be replayed.
func record(l library, peer program, clients string) (*recording, error) {
	s, err := peer.start()
	if err != nil {
		return nil, err
	}
	defer s.stop()
	p, err := newRecorder(s.addr)
	if err != nil {
		return nil, err
	}
	defer p.close()
	if err := l.drive(clients, p.addr(), recordedCount, 1, func(string, string, uint64) {}); err != nil {
		return nil, err
	}
	p.close()
	left, err := markedKeys(s.addr)
	if err != nil {
		return nil, err
	}
	r, err := p.recording(left)
	if err != nil {
		return nil, err
	}
	again := params{connections: 2, pipeline: 4, threads: 1, requests: uint64(8 * len(r.calls)), duration: time.Minute}
	w := r.workload(l)
	if err := s.prepare(w, &again); err != nil {
		return nil, err
	}
	result, err := s.run(w, &again)
	if err == nil && result.Errors > 0 {
		err = fmt.Errorf("played again, %d of %d answers differ: %s", result.Errors, again.requests, result.FirstError)
	}
	return r, err
}

// markedKeys returns a server's keys whose names contain the mark.
func markedKeys(addr string) (keys []string, err error) {
	w, err := dial(addr, "")
	if err != nil {
		return nil, err
	}
	defer w.close()
	t, err := w.tree("KEYS", "*"+mark+"*")
	for _, key := range t.items {
		keys = append(keys, key.text)
	}
	return keys, err
}
