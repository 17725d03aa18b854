// Command limitkv-rls is a gateway between Envoy's rate limit service (v3 over gRPC) and limitkv. It reads the configuration of
// envoyproxy/ratelimit.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"

	"github.com/limitkv/limitkv/rls/config"
	"github.com/limitkv/limitkv/rls/service"
)

func main() {
	log.SetFlags(log.LstdFlags | log.Lmsgprefix)
	log.SetPrefix("limitkv-rls: ")
	s, err := read(os.Args[1:], os.LookupEnv, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return
	case err != nil:
		log.Fatal(err)
	}
	if s.check {
		c, err := s.source.Load()
		if err != nil {
			log.Fatal(err)
		}
		for _, w := range c.Warnings {
			log.Print(w)
		}
		fmt.Printf("%d files, %d domains, %d limits\n", c.Files, c.Domains(), c.Limits)
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, s); err != nil {
		log.Fatal(err)
	}
}

// stopMax is how long requests may take to end when the gateway ends.
const stopMax = 10 * time.Second

// run serves until ctx is done.
func run(ctx context.Context, s *settings) error {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	metrics := service.NewMetrics(registry)
	client := service.NewClient(s.server, log.Printf)
	defer client.Close()
	g := &gateway{settings: s, metrics: metrics, client: client, health: health.NewServer()}
	g.service = service.New(s.opts, client, metrics, log.Printf)

	// An error at the start ends the gateway; after a later one the present configuration stays.
	again := make(chan os.Signal, 1)
	signal.Notify(again, syscall.SIGHUP)
	defer signal.Stop(again)
	first := make(chan error, 1)
	watching, stopWatching := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		s.source.Watch(watching, s.reload, again, func(c *config.Config, err error) {
			g.loaded(c, err)
			select {
			case first <- err:
			default:
			}
		})
	}()
	defer func() { stopWatching(); <-watched }()
	if err := <-first; err != nil {
		return err
	}

	listener, err := net.Listen("tcp", s.grpc)
	if err != nil {
		return err
	}
	server := grpc.NewServer(g.options()...)
	rls.RegisterRateLimitServiceServer(server, g.service)
	healthpb.RegisterHealthServer(server, g.health)
	failed := make(chan error, 2)
	go func() { failed <- server.Serve(listener) }()
	defer server.Stop()
	log.Printf("gRPC on %s", listener.Addr())
	if s.http != "" {
		listener, err := net.Listen("tcp", s.http)
		if err != nil {
			return err
		}
		web := &http.Server{Handler: g.handler(registry), ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 64 << 10}
		go func() { failed <- web.Serve(listener) }()
		defer web.Close()
		log.Printf("HTTP on %s", listener.Addr())
	}
	if s.needs {
		go g.probe(ctx)
	} else {
		g.setHealth(true)
	}

	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	g.health.Shutdown() // Envoy then sends no more requests
	g.ok.Store(false)
	ended := make(chan struct{})
	go func() { server.GracefulStop(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(stopMax):
	}
	return nil
}

// gateway holds the parts of the running gateway.
type gateway struct {
	*settings
	service *service.Service
	metrics *service.Metrics
	client  *service.Client
	health  *health.Server
	ok      atomic.Bool
}

func (g *gateway) options() []grpc.ServerOption {
	list := []grpc.ServerOption{grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionAge: g.maxAge, MaxConnectionAgeGrace: g.maxGrace})}
	if g.grpcTLS != nil {
		list = append(list, grpc.Creds(credentials.NewTLS(g.grpcTLS)))
	}
	return list
}

// loaded puts a new configuration into effect, or logs why not.
func (g *gateway) loaded(c *config.Config, err error) {
	if err != nil {
		g.metrics.ConfigLoads.WithLabelValues("error").Inc()
		g.metrics.ConfigGood.Set(0)
		log.Printf("configuration not taken: %v", err)
		return
	}
	for _, w := range c.Warnings {
		log.Print(w)
	}
	g.service.SetConfig(c)
	g.metrics.ConfigLoads.WithLabelValues("success").Inc()
	g.metrics.ConfigGood.Set(1)
	g.metrics.ConfigTime.SetToCurrentTime()
	g.metrics.ConfigLimits.Set(float64(c.Limits))
	log.Printf("configuration: %d files, %d domains, %d limits", c.Files, c.Domains(), c.Limits)
}

func (g *gateway) setHealth(ok bool) {
	st := healthpb.HealthCheckResponse_NOT_SERVING
	if ok {
		st = healthpb.HealthCheckResponse_SERVING
	}
	g.ok.Store(ok)
	g.health.SetServingStatus("", st)
	g.health.SetServingStatus(rls.RateLimitService_ServiceDesc.ServiceName, st)
}

// probeEvery is how often the gateway pings limitkv.
const probeEvery = 500 * time.Millisecond

// probe sets the gateway's health to that of limitkv.
func (g *gateway) probe(ctx context.Context) {
	for {
		asking, cancel := context.WithTimeout(ctx, probeEvery)
		err := g.client.Ping(asking)
		cancel()
		if ctx.Err() != nil {
			return
		}
		g.setHealth(err == nil)
		select {
		case <-ctx.Done():
			return
		case <-time.After(probeEvery):
		}
	}
}

func (g *gateway) handler(registry *prometheus.Registry) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	healthy := func(w http.ResponseWriter, _ *http.Request) {
		if !g.ok.Load() {
			http.Error(w, "unhealthy", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "OK")
	}
	mux.HandleFunc("GET /healthz", healthy)
	mux.HandleFunc("GET /healthcheck", healthy) // as in envoyproxy/ratelimit
	mux.HandleFunc("/json", g.service.JSON)
	return mux
}
