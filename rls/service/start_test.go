// What the tests of the service share: a limitkv in this process with a frozen clock, a gateway, and a gRPC client.
package service

import (
	"context"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/limitkv/limitkv/limitkvtest"

	"github.com/limitkv/limitkv/rls/config"
)

// frozen is a time in the middle of an hour: 2023-11-14 22:13:20 UTC.
var frozen = time.UnixMilli(1700000000000)

// gate is a gateway.
type gate struct {
	*testing.T
	kv       *limitkvtest.Server
	service  *Service
	client   *Client
	registry *prometheus.Registry
	rls.RateLimitServiceClient
}

// start starts a gateway with a configuration.
func start(t *testing.T, yaml string, change ...func(*Options)) *gate {
	t.Helper()
	kv := limitkvtest.Start(t)
	kv.FreezeAt(frozen)
	g := startOn(t, kv.Addr, yaml, change...)
	g.kv = kv
	return g
}

// startOn starts a gateway for a limitkv at an address, which need not exist.
func startOn(t *testing.T, addr, yaml string, change ...func(*Options)) *gate {
	t.Helper()
	opts := Options{Prefix: "rls:", Timeout: 10 * time.Second, NearRatio: 0.8}
	for _, fn := range change {
		fn(&opts)
	}
	g := &gate{T: t, registry: prometheus.NewRegistry()}
	g.client = NewClient(Server{Addr: addr, Timeout: time.Second}, t.Logf)
	t.Cleanup(g.client.Close)
	g.service = New(opts, g.client, NewMetrics(g.registry), t.Logf)
	g.configure(yaml)
	server := grpc.NewServer()
	rls.RegisterRateLimitServiceServer(server, g.service)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	g.RateLimitServiceClient = rls.NewRateLimitServiceClient(conn)
	return g
}

// connected waits until the gateway has connected.
func (g *gate) connected() *gate {
	g.Helper()
	for end := time.Now().Add(10 * time.Second); g.client.Ping(g.Context()) != nil; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			g.Fatal("limitkv is not reached")
		}
	}
	return g
}

func (g *gate) configure(yaml string) {
	g.Helper()
	c, err := config.Parse([]config.Text{{Name: "test.yaml", Data: []byte(yaml)}}, false)
	if err != nil {
		g.Fatal(err)
	}
	g.service.SetConfig(c)
}

// desc makes a descriptor from alternating keys and values.
func desc(words ...string) *ratelimit.RateLimitDescriptor {
	d := &ratelimit.RateLimitDescriptor{}
	for i := 0; i < len(words); i += 2 {
		d.Entries = append(d.Entries, &ratelimit.RateLimitDescriptor_Entry{Key: words[i], Value: words[i+1]})
	}
	return d
}

// costing makes a descriptor with its own cost.
func costing(d *ratelimit.RateLimitDescriptor, hits uint64) *ratelimit.RateLimitDescriptor {
	d.HitsAddend = wrapperspb.UInt64(hits)
	return d
}

// ask sends descriptors of the domain "test" with a cost, 0 for none.
func (g *gate) ask(hits uint32, list ...*ratelimit.RateLimitDescriptor) *rls.RateLimitResponse {
	g.Helper()
	ctx, cancel := context.WithTimeout(g.Context(), 20*time.Second)
	defer cancel()
	answer, err := g.ShouldRateLimit(ctx, &rls.RateLimitRequest{Domain: "test", Descriptors: list, HitsAddend: hits})
	if err != nil {
		g.Fatal(err)
	}
	if len(answer.Statuses) != len(list) {
		g.Fatalf("%d statuses for %d descriptors", len(answer.Statuses), len(list))
	}
	return answer
}

// metric expects a line of the metrics.
func (g *gate) metric(line string) {
	g.Helper()
	rec := httptest.NewRecorder()
	promhttp.HandlerFor(g.registry, promhttp.HandlerOpts{}).ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
	if !strings.Contains("\n"+rec.Body.String(), "\n"+line+"\n") {
		name, _, _ := strings.Cut(line, "{")
		name, _, _ = strings.Cut(name, " ")
		for _, l := range strings.Split(rec.Body.String(), "\n") {
			if strings.HasPrefix(l, name) {
				g.Log(l)
			}
		}
		g.Errorf("no metric %s", line)
	}
}
