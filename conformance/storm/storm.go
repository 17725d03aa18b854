// Package storm, internal to the server's tests, sends random commands of all families from several connections at once
// to one server, and sees to it that the server stays as it should be: it answers PING all the while, it does not end,
// it logs no panic and, where it is built so, no data race, and it ends when it is told to. "make fuzz SERVER=1" lets
// it run for as long as one likes.
//
// What is sent is a function of the seed and of the connection's number; how the connections meet is not.
package storm

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
	"github.com/limitkv/limitkv/conformance/sequence"
)

// source makes the commands of one connection.
type source struct {
	r    *rand.Rand
	docs []documented
	todo []sequence.Step
	port string // the server's own, for MIGRATE
}

// scripts are run with a random command in ARGV.
var scripts = []string{
	"return redis.call(unpack(ARGV))",
	"return redis.pcall(unpack(ARGV))",
	"local r = {} for i = 1, 20 do r[i] = redis.pcall(unpack(ARGV)) end return r",
	"local i = 0 while i < 2000 do i = i + 1 end return redis.pcall(unpack(ARGV))",
	"while redis.call('EXISTS', 'never') == 0 do end",
	"redis.setresp(3) return redis.pcall(unpack(ARGV))",
	"local c = coroutine.wrap(function() coroutine.yield(redis.pcall(unpack(ARGV))) error('x') end) c() return pcall(c)",
	"redis.call('SET', 's0', string.rep('x', 1000)) return redis.pcall(unpack(ARGV))",
	"return cjson.encode(cmsgpack.unpack(cmsgpack.pack(redis.pcall(unpack(ARGV)))))",
}

const library = "#!lua name=storm\nredis.register_function('run', function(keys, args) return redis.pcall(unpack(args)) end)"

// next makes the next command.
func (s *source) next() []string {
	for {
		args := s.candidate()
		if harmless(args) {
			return args
		}
	}
}

func (s *source) candidate() []string {
	switch s.r.IntN(20) {
	case 0:
		args := s.plain()
		return append([]string{"EVAL", scripts[s.r.IntN(len(scripts))], "0"}, args...)
	case 1:
		args := s.plain()
		return append([]string{"FCALL", "run", "0"}, args...)
	case 2:
		return [][]string{{"MULTI"}, {"EXEC"}, {"EXEC"}, {"DISCARD"}, {"RESET"}, {"FUNCTION", "LOAD", "REPLACE", library},
			{"HELLO", "3"}, {"HELLO", "2"}, {"CLIENT", "TRACKING", "ON"}, {"SCRIPT", "KILL"}, {"FUNCTION", "KILL"}, {"INFO", "everything"},
			{"DEBUG", "SET-DISABLE-DENY-SCRIPTS", strconv.Itoa(s.r.IntN(2))}}[s.r.IntN(13)]
	case 3:
		return []string{"MIGRATE", "127.0.0.1", s.port, keys[s.r.IntN(len(keys))], strconv.Itoa(s.r.IntN(3)), "200", "COPY"}
	}
	return s.plain()
}

// plain is a command on its own.
func (s *source) plain() []string {
	if s.r.IntN(2) == 0 {
		return s.docs[s.r.IntN(len(s.docs))].command(s.r)
	}
	if len(s.todo) == 0 {
		family := sequence.Families[s.r.IntN(len(sequence.Families))]
		s.todo = family.Round(s.r.Uint64(), 1)
	}
	args := s.todo[0].Args
	s.todo = s.todo[1:]
	return args
}

// longMillis is how long a random command may hold others up on purpose.
const longMillis = 50

// harmless tells whether a command leaves the server able to answer PING, by what the command is for. Commands inside
// scripts are looked at too.
func harmless(args []string) bool {
	for i := range args {
		is := func(words ...string) bool {
			return i+len(words) <= len(args) && slices.EqualFunc(words, args[i:i+len(words)], strings.EqualFold)
		}
		short := func(at int, max float64) bool {
			if at >= len(args) {
				return true
			}
			n, err := strconv.ParseFloat(args[at], 64)
			return err == nil && n <= max
		}
		switch {
		case is("SHUTDOWN"), is("CONFIG", "SET"), is("CONFIG", "REWRITE"), is("ACL", "SETUSER"), is("ACL", "LOAD"), is("ACL", "DELUSER"),
			is("DEBUG", "JMAP"), is("LKV.FAULT"), is("MIGRATE") && i+2 < len(args) && args[i+1] != "127.0.0.1":
			return false
		case is("CLIENT", "PAUSE") && !short(i+2, longMillis), is("DEBUG", "SLEEP") && !short(i+2, longMillis/1000.0):
			return false
		case is("LKV.CLOCK", "ADVANCE") && !short(i+2, 100_000):
			return false
		}
	}
	return true
}

// namesakes are how many commands are sent of each kind whose values are often words of its own options.
const namesakes = 400

// sendNamesakes sends commands whose keys, and whatever else, are often named as their options are, of every kind that has
// options: what is locked must be what the handler takes for keys, and a strict server panics where it is not. It returns how many were sent,
// and of how many kinds all of them ran.
func (s *storm) sendNamesakes() (sent, all int, err error) {
	r := rand.New(rand.NewPCG(s.seed, ^uint64(0)))
	for _, d := range s.docs {
		if d.often = tokensOften; len(d.tokens) == 0 {
			continue
		}
		conn, err := net.DialTimeout("tcp", s.addr, time.Second)
		if err != nil {
			return sent, all, err
		}
		var out []byte
		for range namesakes {
			args := d.command(r)
			for i := range args {
				if strings.EqualFold(args[i], "BLOCK") && i+1 < len(args) {
					args[i+1] = "1" // else nothing behind it would be run
				}
			}
			if harmless(args) {
				out = peer.AppendCommand(out, args...)
				sent++
			}
		}
		out = peer.AppendCommand(out, "ECHO", lastEcho)
		_ = conn.SetDeadline(time.Now().Add(2 * time.Second))
		go func() { _, _ = conn.Write(out) }() // one of them may close the connection, or have it wait
		if ran(conn) {
			all++
		}
		conn.Close()
	}
	return sent, all, nil
}

const lastEcho = "the last of them"

// ran reads until the last command was answered, or nothing comes any more.
func ran(conn net.Conn) bool {
	var got []byte
	for buf := make([]byte, 1<<16); ; {
		n, err := conn.Read(buf)
		got = append(got[max(0, len(got)-len(lastEcho)):], buf[:n]...)
		if bytes.Contains(got, []byte(lastEcho)) {
			return true
		}
		if err != nil {
			return false
		}
	}
}

// storm is one run.
type storm struct {
	addr string
	pid  int // of the server
	docs []documented
	seed uint64
	stop chan struct{}
}

// batchMax is how many commands a client sends at once at most, lastKept how many of the last are kept to be shown.
const (
	batchMax = 40
	lastKept = 60
)

// client sends commands over one connection after the other until the storm stops. It returns how many it sent, and the
// last of them.
func (s *storm) client(number int) (sent int, last []string) {
	r := rand.New(rand.NewPCG(s.seed, uint64(number)))
	_, port, _ := net.SplitHostPort(s.addr)
	src := &source{r: r, docs: s.docs, port: port}
	for {
		select {
		case <-s.stop:
			return sent, last
		default:
		}
		conn, err := net.DialTimeout("tcp", s.addr, time.Second)
		if err != nil {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		go drain(conn, r.IntN(8) == 0)
		for batches := 1 + r.IntN(100); batches > 0; batches-- {
			var out []byte
			for range 1 + r.IntN(batchMax) {
				args := src.next()
				out = peer.AppendCommand(out, args...)
				last = append(last, fmt.Sprintf("%.300q", args))
				sent++
			}
			if len(last) > lastKept {
				last = slices.Clone(last[len(last)-lastKept:])
			}
			if r.IntN(50) == 0 {
				out = out[:r.IntN(len(out))] // hangs up in the middle of a command
				batches = 1
			}
			_ = conn.SetWriteDeadline(time.Now().Add(500 * time.Millisecond))
			if _, err := conn.Write(out); err != nil {
				break
			}
			select {
			case <-s.stop:
				batches = 1
			case <-time.After(time.Duration(r.IntN(4)) * time.Millisecond):
			}
		}
		conn.Close()
	}
}

// drain reads what comes and forgets it; a slow reader takes little at a time.
func drain(conn net.Conn, slow bool) {
	buf := make([]byte, 1<<16)
	for {
		if slow {
			time.Sleep(time.Millisecond)
			buf = buf[:4096]
		}
		if _, err := conn.Read(buf); err != nil {
			return
		}
	}
}

// starved is how much longer a server may take that does not get the processor.
const starved = 20

// hangs tells whether a server that has not answered for a time does not because it hangs, and not because the machine
// has too much else to do: used is the processor time that it had taken when it was asked.
func (s *storm) hangs(waited, used, patience time.Duration) bool {
	if waited < patience {
		return false
	}
	now := processorTime(s.pid)
	return now == 0 || now-used > patience/2 || waited > starved*patience
}

// ticks are what /proc counts processor time in.
const ticks = 100

// processorTime is what a process has taken so far, 0 where nobody tells.
func processorTime(pid int) time.Duration {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(b), ") ") // a name may have blanks
	fields := strings.Fields(after)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * time.Second / ticks
}

// release takes back what random commands may legally have done to keep everybody waiting.
var release = [][]string{{"LKV.CLOCK", "RESUME"}, {"CLIENT", "UNPAUSE"}, {"SCRIPT", "KILL"}, {"FUNCTION", "KILL"}}

// pinger asks for PONG, every interval, on a connection of its own, until the storm stops. It fails if none comes in time. Each
// round it takes back, on another connection, what keeps everybody waiting by its purpose.
func (s *storm) pinger(interval, patience time.Duration) (pings int, longest time.Duration, err error) {
	var conn, free *peer.Conn
	defer func() {
		for _, c := range []*peer.Conn{conn, free} {
			if c != nil {
				c.Close()
			}
		}
	}()
	for {
		select {
		case <-s.stop:
			return pings, longest, nil
		case <-time.After(interval):
		}
		if free == nil {
			if free, err = peer.Dial(s.addr); err != nil {
				return pings, longest, fmt.Errorf("cannot connect: %w", err)
			}
			go drain(free.Conn, false)
		}
		for _, args := range release {
			if free.Send(args...) != nil { // a random CLIENT KILL
				free.Close()
				free = nil
				break
			}
		}
		began, used := time.Now(), processorTime(s.pid)
		for ok, asked := false, false; !ok; {
			if s.hangs(time.Since(began), used, patience) {
				return pings, longest, fmt.Errorf("no answer to PING within %v, in which the server took %v of processor time", time.Since(began), processorTime(s.pid)-used)
			}
			if conn == nil {
				if conn, err = peer.Dial(s.addr); err != nil {
					return pings, longest, fmt.Errorf("cannot connect: %w", err)
				}
			}
			if asked || conn.Send("PING") == nil {
				asked = true
				if _, err := conn.ReceiveWithin(time.Second); err == nil {
					ok = true
					continue
				} else if t, is := err.(net.Error); is && t.Timeout() {
					continue
				}
			}
			conn.Close()
			conn, asked = nil, false
		}
		pings++
		longest = max(longest, time.Since(began))
	}
}
