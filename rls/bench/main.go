// Command bench compares limitkv-rls with limitkv to envoyproxy/ratelimit with Redis: the same configuration and the same
// requests over gRPC, alternating on one machine. It reports the throughput with many concurrent requests, the latency at half
// of what the slower one can do, and the processor time of gateway and server per request.
//
// envoyproxy/ratelimit is built from its module, at a version whose checksum is public.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

const peerVersion = "v1.4.1-0.20230427142404-e2a87f41d3a7"

const limits = `
domain: bench
descriptors:
  - {key: user, rate_limit: {unit: minute, requests_per_unit: 1000000}}
  - {key: tenant, rate_limit: {unit: hour, requests_per_unit: 1000000000}}
`

// The load: the number of connections, of concurrent requests on each, and of users.
const (
	connections = 4
	workers     = 16
	users       = 1000
)

var (
	bin     = flag.String("bin", "bin", "folder with limitkv and limitkv-rls")
	peer    = flag.String("peer", "", "envoyproxy/ratelimit's binary; built if it is not given")
	rounds  = flag.Int("rounds", 3, "rounds; the medians are told")
	seconds = flag.Float64("seconds", 4, "length of a measurement")
)

func main() {
	log.SetFlags(0)
	flag.Parse()
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

// side is a gateway with its server.
type side struct {
	name  string
	addr  string
	procs []*exec.Cmd

	rates, p50, p99, cpu []float64
}

func run() error {
	dir, err := os.MkdirTemp("", "rls-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ours, theirs, err := start(dir)
	sides := []*side{ours, theirs}
	defer func() {
		for _, s := range sides {
			for _, p := range s.procs {
				p.Process.Kill()
				p.Wait()
			}
		}
	}()
	if err != nil {
		return err
	}
	length := time.Duration(*seconds * float64(time.Second))
	for range *rounds {
		for _, s := range sides {
			r, err := load(s, length, 0)
			if err != nil {
				return err
			}
			s.rates = append(s.rates, r.rate)
		}
	}
	half := min(median(ours.rates), median(theirs.rates)) / 2
	for range *rounds {
		for _, s := range sides {
			r, err := load(s, length, half)
			if err != nil {
				return err
			}
			s.p50, s.p99, s.cpu = append(s.p50, r.p50), append(s.p99, r.p99), append(s.cpu, r.cpu)
		}
	}
	fmt.Printf("two limits a request, %d requests at once; latencies at %.0f requests/s; medians of %d rounds of %v\n\n", connections*workers, half, *rounds, length)
	fmt.Println("| | requests/s | p50 ms | p99 ms | µs of processor time a request |")
	fmt.Println("| --- | ---: | ---: | ---: | ---: |")
	for _, s := range sides {
		fmt.Printf("| %s | %.0f | %.2f | %.2f | %.0f |\n", s.name, median(s.rates), median(s.p50), median(s.p99), median(s.cpu))
	}
	return nil
}

// start starts all four processes.
func start(dir string) (ours, theirs *side, err error) {
	ours = &side{name: "limitkv-rls, limitkv"}
	theirs = &side{name: "envoyproxy/ratelimit, Redis"}
	redis := os.Getenv("REDIS_SERVER")
	if redis == "" {
		redis = "redis-server"
	}
	if *peer == "" {
		*peer = filepath.Join(dir, "ratelimit")
		if err = build(dir, *peer); err != nil {
			return
		}
	}
	config := filepath.Join(dir, "config")
	if err = os.Mkdir(config, 0o700); err != nil {
		return
	}
	if err = os.WriteFile(filepath.Join(config, "limits.yaml"), []byte(limits), 0o600); err != nil {
		return
	}
	p := make([]string, 7)
	for i := range p {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return ours, theirs, err
		}
		defer l.Close()
		_, p[i], _ = net.SplitHostPort(l.Addr().String())
		l.Close()
	}
	ours.addr, theirs.addr = "127.0.0.1:"+p[1], "127.0.0.1:"+p[3]
	steps := []struct {
		s    *side
		port string
		env  []string
		args []string
	}{
		{ours, p[0], nil, []string{filepath.Join(*bin, "limitkv"), "--port", p[0], "--save", "", "--dir", dir}},
		{theirs, p[2], nil, []string{redis, "--port", p[2], "--save", "", "--dir", dir}},
		{ours, p[1], nil, []string{filepath.Join(*bin, "limitkv-rls"), "--config", config, "--limitkv", "127.0.0.1:" + p[0], "--grpc", ours.addr, "--http", "", "--timeout", "1s"}},
		{theirs, p[3], []string{
			"USE_STATSD=false", "LOG_LEVEL=error", "REDIS_SOCKET_TYPE=tcp", "REDIS_URL=127.0.0.1:" + p[2], "RUNTIME_ROOT=" + dir, "RUNTIME_SUBDIRECTORY=",
			"RUNTIME_WATCH_ROOT=false", "GRPC_HOST=127.0.0.1", "GRPC_PORT=" + p[3], "HOST=127.0.0.1", "PORT=" + p[4], "DEBUG_HOST=127.0.0.1", "DEBUG_PORT=" + p[5],
			// Its documentation's advice for high load.
			"REDIS_PIPELINE_WINDOW=150us", "REDIS_PIPELINE_LIMIT=8",
		}, []string{*peer}},
	}
	for _, x := range steps {
		cmd := exec.Command(x.args[0], x.args[1:]...)
		cmd.Env = append(os.Environ(), x.env...)
		if os.Getenv("VERBOSE") != "" {
			cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
		}
		if err = cmd.Start(); err != nil {
			return
		}
		x.s.procs = append(x.s.procs, cmd)
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			c, err := net.Dial("tcp", "127.0.0.1:"+x.port)
			if err == nil {
				c.Close()
				break
			}
			if time.Now().After(end) {
				return ours, theirs, fmt.Errorf("%s does not listen", x.args[0])
			}
		}
	}
	return
}

// build builds envoyproxy/ratelimit in its own module.
func build(dir, to string) error {
	src := filepath.Join(dir, "peer")
	if err := os.Mkdir(src, 0o700); err != nil {
		return err
	}
	const module = "github.com/envoyproxy/ratelimit"
	text := "module peer\n\ngo 1.20\n\nrequire " + module + " " + peerVersion + "\n"
	if err := os.WriteFile(filepath.Join(src, "go.mod"), []byte(text), 0o600); err != nil {
		return err
	}
	cmd := exec.Command("go", "build", "-mod=mod", "-o", to, module+"/src/service_cmd")
	cmd.Dir, cmd.Stderr = src, os.Stderr
	return cmd.Run()
}

// result is a measurement: requests per second, latencies in ms, processor time in µs per request.
type result struct{ rate, p50, p99, cpu float64 }

// load sends requests: as many as possible, or a fixed number per second, each at its due time.
func load(s *side, length time.Duration, perSecond float64) (result, error) {
	ctx, cancel := context.WithTimeout(context.Background(), length+30*time.Second)
	defer cancel()
	var clients []rls.RateLimitServiceClient
	for range connections {
		c, err := grpc.NewClient(s.addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return result{}, err
		}
		defer c.Close()
		clients = append(clients, rls.NewRateLimitServiceClient(c))
	}
	requests := make([]*rls.RateLimitRequest, users)
	for i := range requests {
		requests[i] = &rls.RateLimitRequest{Domain: "bench", Descriptors: []*ratelimit.RateLimitDescriptor{
			{Entries: []*ratelimit.RateLimitDescriptor_Entry{{Key: "user", Value: strconv.Itoa(i)}}},
			{Entries: []*ratelimit.RateLimitDescriptor_Entry{{Key: "tenant", Value: strconv.Itoa(i % 10)}}},
		}}
	}
	var next, failed atomic.Int64
	var first atomic.Value
	all := make([][]time.Duration, connections*workers)
	measure := func(length time.Duration) {
		var group sync.WaitGroup
		next.Store(0)
		begun := time.Now()
		for w := range all {
			all[w] = nil
			group.Add(1)
			go func() {
				defer group.Done()
				for {
					n := next.Add(1)
					due := time.Now()
					if perSecond > 0 {
						due = begun.Add(time.Duration(float64(n) / perSecond * float64(time.Second)))
						time.Sleep(time.Until(due))
					}
					if due.Sub(begun) > length {
						return
					}
					answer, err := clients[w%connections].ShouldRateLimit(ctx, requests[n%users])
					if err != nil || answer.OverallCode != rls.RateLimitResponse_OK || answer.Statuses[1].CurrentLimit == nil {
						failed.Add(1)
						first.CompareAndSwap(nil, fmt.Sprint(answer, err))
						return
					}
					all[w] = append(all[w], time.Since(due))
				}
			}()
		}
		group.Wait()
	}
	measure(length / 4) // warm
	before := s.used()
	measure(length)
	after := s.used()
	if failed.Load() > 0 {
		return result{}, fmt.Errorf("%s: %d workers failed, the first with %v", s.name, failed.Load(), first.Load())
	}
	times := slices.Concat(all...)
	slices.Sort(times)
	at := func(q float64) float64 { return times[int(q*float64(len(times)-1))].Seconds() * 1000 }
	return result{float64(len(times)) / length.Seconds(), at(.5), at(.99), (after - before) * 1e6 / float64(len(times))}, nil
}

// used returns the processor time of the side's processes, in seconds.
func (s *side) used() (sum float64) {
	for _, p := range s.procs {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Process.Pid))
		if err != nil {
			return math.NaN()
		}
		_, rest, _ := strings.Cut(string(text), ") ")
		f := strings.Fields(rest)
		user, _ := strconv.ParseFloat(f[11], 64)
		system, _ := strconv.ParseFloat(f[12], 64)
		sum += (user + system) / 100
	}
	return sum
}

func median(x []float64) float64 {
	x = slices.Sorted(slices.Values(x))
	return x[len(x)/2]
}
