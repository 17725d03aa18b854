// Tests of the answers while limitkv is unreachable, slow or wrong, and of many concurrent requests.
package service

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/limitkv/limitkv/limitkvtest"

	"github.com/limitkv/limitkv/rls/internal/cut"
)

const hourly = `
domain: test
descriptors:
  - {key: a, rate_limit: {unit: hour, requests_per_unit: 1000}}
  - {key: free, rate_limit: {unlimited: true}}
  - {key: banned, rate_limit: {unit: hour, requests_per_unit: 0}}
`

func TestFailureModes(t *testing.T) {
	kv := limitkvtest.Start(t)
	kv.FreezeAt(frozen)
	for _, x := range []struct {
		mode FailureMode
		want string // for a descriptor that is counted
	}{
		{FailError, "Unavailable"}, {FailAllow, "OK; OK; OK"}, {FailDeny, "OVER_LIMIT; OVER_LIMIT; OVER_LIMIT"},
	} {
		line := cut.New(t, kv.Addr)
		line.Cut() // the gateway starts without limitkv
		g := startOn(t, line.Addr, hourly, func(o *Options) { o.Failure, o.Timeout = x.mode, 150*time.Millisecond })
		two := list{desc("a", "x"), desc("a", "x")}
		try := func(what string) {
			t.Helper()
			begun := time.Now()
			answer, err := g.ShouldRateLimit(t.Context(), &rls.RateLimitRequest{Domain: "test", Descriptors: two})
			got := status.Code(err).String()
			if err == nil {
				got = show(answer)
			}
			if got != x.want {
				t.Errorf("mode %d, %s: %s, want %s", x.mode, what, got, x.want)
			}
			if took := time.Since(begun); took > 10*time.Second {
				t.Errorf("mode %d, %s: took %v", x.mode, what, took)
			}
		}
		try("not there yet")
		// Requests that need no counting are answered all the same.
		g.want(0, list{desc("free", "x"), desc("other", "x")}, "OK; OK left 4294967295; OK")
		if a := g.ask(0, desc("banned", "x")); a.OverallCode != rls.RateLimitResponse_OVER_LIMIT {
			t.Errorf("banned: %v", a)
		}
		line.Mend()
		g.connected()
		g.service.opts.Timeout = 20 * time.Second
		kv.FlushAll()
		g.want(0, list{desc("a", "x")}, "OK; OK 1000/hour left 999 for 46m40s") // no connection has broken yet
		line.Cut()
		g.service.opts.Timeout = 150 * time.Millisecond
		try("gone")
		line.Mend()
		g.connected()
		line.Silence()
		try("silent")
		try("silent again")
		line.Cut()
		line.Mend()
		g.connected()
		g.service.opts.Timeout = 20 * time.Second
		// The breakage of a connection other than the ping's may not be noticed yet: a call on it counts nothing.
		a, err := g.ShouldRateLimit(t.Context(), &rls.RateLimitRequest{Domain: "test", Descriptors: list{desc("a", "y")}})
		for tries := 0; tries < 20 && (err != nil || a.Statuses[0].CurrentLimit == nil); tries++ {
			a, err = g.ShouldRateLimit(t.Context(), &rls.RateLimitRequest{Domain: "test", Descriptors: list{desc("a", "y")}})
		}
		if err != nil || show(a) != "OK; OK 1000/hour left 999 for 46m40s" {
			t.Errorf("mode %d, back: %v %v", x.mode, a, err)
		}
		kv.Do("SET", "rls:test|a=bad|hour", "no limiter")
		two = list{desc("a", "bad")}
		x.want = map[FailureMode]string{FailError: "Unavailable", FailAllow: "OK; OK", FailDeny: "OVER_LIMIT; OVER_LIMIT"}[x.mode]
		try("a key of another type")
	}
}

// A server that is not limitkv: its replies are errors, and nothing hangs.
func TestStrangeServers(t *testing.T) {
	for _, reply := range []string{"HTTP/1.1 400 Bad Request\r\n\r\n", "-ERR unknown command\r\n", "*1\r\n", "$-1\r\n", "\x00"} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		go func() {
			for {
				c, err := listener.Accept()
				if err != nil {
					return
				}
				go func() {
					defer c.Close()
					buf := make([]byte, 4096)
					for {
						if _, err := c.Read(buf); err != nil {
							return
						}
						c.Write([]byte(reply))
					}
				}()
			}
		}()
		g := startOn(t, listener.Addr().String(), hourly, func(o *Options) { o.Timeout = 100 * time.Millisecond })
		for range 3 {
			_, err := g.ShouldRateLimit(t.Context(), &rls.RateLimitRequest{Domain: "test", Descriptors: list{desc("a", "x")}})
			if status.Code(err) != codes.Unavailable {
				t.Errorf("%q: %v", reply, err)
			}
		}
	}
}

// A limitkv that hangs: requests that find no room on its connections are answered in time as well, and all works again once
// it replies.
func TestHangs(t *testing.T) {
	kv := limitkvtest.Start(t)
	line := cut.New(t, kv.Addr)
	g := startOn(t, line.Addr, hourly).connected()
	line.Silence()
	group := []Group{{Takes: []Take{{"k", 1, []string{"FIXED", "10", "1000"}}}}}
	ask := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := g.client.Decide(ctx, group)
		return err
	}
	var all sync.WaitGroup
	for range callsMax {
		all.Go(func() {
			if ask() == nil {
				t.Error("answered by nobody")
			}
		})
	}
	all.Wait()
	for len(g.client.slots) < callsMax { // including those whose caller gave up before there was a slot
		ask()
	}
	if err := ask(); err != context.DeadlineExceeded {
		t.Errorf("without a slot: %v", err)
	}
	line.Cut()
	for len(g.client.slots) > 0 {
		time.Sleep(time.Millisecond)
	}
	line.Mend()
	for end := time.Now().Add(time.Minute); ask() != nil; {
		if time.Now().After(end) {
			t.Fatal("not answered again")
		}
	}
}

// A caller that gives up gets no answer of the failure mode, and no failure of limitkv is counted.
func TestGivesUp(t *testing.T) {
	g := start(t, hourly, func(o *Options) { o.Failure = FailDeny }).connected()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	answer, err := g.service.ShouldRateLimit(ctx, &rls.RateLimitRequest{Domain: "test", Descriptors: list{desc("a", "x")}})
	if status.Code(err) != codes.Canceled {
		t.Error(answer, err)
	}
	g.metric("limitkv_rls_limitkv_errors_total 0")
}

// Two gateways count together, and exactly, with any number of concurrent requests. A caller that gives up does not disturb
// others.
func TestManyAtOnce(t *testing.T) {
	g := start(t, hourly).connected()
	other := startOn(t, g.kv.Addr, hourly).connected()
	const workers, each = 16, 100 // 1600 for 1000
	var granted, refused atomic.Int64
	var all sync.WaitGroup
	for i := range workers {
		all.Add(1)
		go func() {
			defer all.Done()
			at := g
			if i%2 == 1 {
				at = other
			}
			for j := range each {
				if j%10 == 0 {
					ctx, cancel := context.WithCancel(t.Context())
					cancel()
					at.ShouldRateLimit(ctx, &rls.RateLimitRequest{Domain: "test", Descriptors: list{desc("a", "gives up")}})
				}
				answer, err := at.ShouldRateLimit(t.Context(), &rls.RateLimitRequest{Domain: "test", Descriptors: list{desc("a", "x")}})
				switch {
				case err != nil:
					t.Error(err)
				case answer.OverallCode == rls.RateLimitResponse_OK:
					granted.Add(1)
				default:
					refused.Add(1)
				}
			}
		}()
	}
	all.Wait()
	if granted.Load() != 1000 || refused.Load() != workers*each-1000 {
		t.Errorf("%d granted, %d refused", granted.Load(), refused.Load())
	}
	g.want(0, list{desc("a", "x")}, "OVER_LIMIT; OVER_LIMIT 1000/hour left 0 for 46m40s")
}

// The configuration changes while requests are answered.
func TestChangesUnderLoad(t *testing.T) {
	g := start(t, hourly).connected()
	ended := make(chan bool)
	go func() {
		defer close(ended)
		for range 300 {
			g.ask(0, desc("a", "x"), desc("free", "x"))
		}
	}()
	changes := 0
	for more := true; more; changes++ {
		g.configure(hourly)
		select {
		case <-ended:
			more = false
		default:
		}
	}
	g.want(0, list{desc("a", "x")}, "OK; OK 1000/hour left 699 for 46m40s")
	if changes < 2 {
		t.Errorf("%d changes", changes)
	}
}
