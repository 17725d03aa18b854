package main

// Single requests: the server's processor time for one, compared with a program that only waits with epoll, reads, and always
// sends the same reply. The latter is the system's share, which no such server can avoid, and its rate is the most that the
// generator can send. The same is measured in pipelines.

import (
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

func runSingle(args []string) error {
	flags := flag.NewFlagSet("single", flag.ExitOnError)
	limitkv := flags.String("limitkv", "bin/limitkv", "limitkv's binary")
	redis := flags.String("redis", binary("REDIS", "redis"), "redis-server to compare with")
	valkey := flags.String("valkey", binary("VALKEY", "valkey"), "valkey-server to compare with")
	generator := flags.String("outside", outsideGenerator(), "valkey-benchmark, which sends the requests")
	connections := flags.String("connections", "1,50,1000", "how many connections, separated by commas")
	pipeline := flags.Int("pipeline", 1, "how many requests are sent at once")
	rounds := flags.Int("rounds", 5, "how often to repeat; the servers take turns, and medians are told")
	duration := flags.Duration("duration", 2*time.Second, "how long a round is, in whole seconds")
	_ = flags.Parse(args) // it exits on errors
	list, err := programs(*limitkv, *redis, *valkey)
	if err != nil {
		return err
	}
	least, err := startLeast()
	if err != nil {
		return err
	}
	servers := []*single{{target: &target{name: "the least", addr: least.addr, pid: least.cmd.Process.Pid}, own: true}}
	defer least.stop()
	for _, p := range list {
		s, err := p.start()
		if err != nil {
			return err
		}
		defer s.stop()
		servers = append(servers, &single{target: s.target, own: len(servers) == 1})
	}
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(out, "connections\trequest\tserver\trequests a second\tp50 ms\tp99 ms\tCPU µs\t")
	for n := range strings.SplitSeq(*connections, ",") {
		count, err := strconv.Atoi(n)
		if err != nil {
			return err
		}
		for _, r := range singleRequests() {
			for _, s := range servers {
				s.rounds = nil
			}
			for round := range *rounds {
				for i := range servers {
					if err := servers[(i+round)%len(servers)].round(*generator, count, *pipeline, *duration, r); err != nil {
						return err
					}
				}
			}
			for _, s := range servers {
				m := middles(s.rounds)
				fmt.Fprintf(out, "%s\t%s\t%s\t%.0f\t%.3f\t%.3f\t%.2f\t\n", n, r.name, s.name, m.PerSecond, m.P50, m.P99, m.CPU)
			}
		}
	}
	return out.Flush()
}

// singleKeys is the number of keys in requests.
const singleKeys = 100_000

// singleRequest is the request to servers: limitkv's own command, or for the others an equivalent script.
type singleRequest struct {
	name        string
	own, theirs []string
}

func singleRequests() (list []singleRequest) {
	plain := func(request ...string) { list = append(list, singleRequest{request[0], request, request}) }
	plain("GET", outsideKey)
	plain("SET", outsideKey, strings.Repeat("x", 32))
	plain("INCR", "counter:__rand_int__")
	script := []string{"EVAL", "local n = redis.call('INCR', KEYS[1]) if n == 1 then redis.call('EXPIRE', KEYS[1], 1) end return n", "1", "script:__rand_int__"}
	list = append(list, singleRequest{"a limiter by script", script, script})
	return append(list, singleRequest{"RL.ACQUIRE, or that script", []string{"RL.ACQUIRE", "limiter:__rand_int__", "1", "GCRA", "10", "1000"}, script})
}

// single is a server to measure.
type single struct {
	*target
	own    bool // it gets limitkv's own command
	rounds []outsideResult
}

func (s *single) round(generator string, connections, pipeline int, length time.Duration, asked singleRequest) error {
	request := asked.theirs
	if s.own {
		request = asked.own
	}
	r, err := s.outside(generator, connections, pipeline, length, outsideLoad{commands: [][]string{request}, keys: singleKeys})
	s.rounds = append(s.rounds, r)
	return err
}

// leastServer is the program that always sends the same reply. It is a separate process, so that its processor time can be
// measured.
type leastServer struct {
	addr string
	cmd  *exec.Cmd
}

// leastCommand is the argument that makes this program be that server.
const leastCommand = "answer-the-same"

func startLeast() (*leastServer, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	s := &leastServer{addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), cmd: exec.Command(self, leastCommand, strconv.Itoa(port))}
	s.cmd.Stderr = os.Stderr
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	for end := time.Now().Add(startMax); ; time.Sleep(time.Millisecond) {
		c, err := net.Dial("tcp", s.addr)
		if err == nil {
			_ = c.Close()
			return s, nil
		}
		if time.Now().After(end) {
			s.stop()
			return nil, err
		}
	}
}

func (s *leastServer) stop() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}
