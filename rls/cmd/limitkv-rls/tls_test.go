// Tests of TLS on both sides of the gateway: to limitkv, which requires a certificate and a password, and from Envoy.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"path/filepath"
	"testing"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/limitkv/limitkv/conformance/peer"
	"github.com/limitkv/limitkv/limitkvtest"

	"github.com/limitkv/limitkv/rls/internal/cut"
)

func TestTLS(t *testing.T) {
	dir := t.TempDir()
	certificate := func(name string) (cert, key string, pair tls.Certificate, roots *x509.CertPool) {
		certPEM, keyPEM := peer.Certificate(t)
		cert, key = filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
		write(t, cert, string(certPEM))
		write(t, key, string(keyPEM))
		pair, err := tls.X509KeyPair(certPEM, keyPEM)
		if err != nil {
			t.Fatal(err)
		}
		roots = x509.NewCertPool()
		roots.AppendCertsFromPEM(certPEM)
		return cert, key, pair, roots
	}
	cert, key, pair, roots := certificate("known")
	strange, strangeKey, _, _ := certificate("strange")
	limits := filepath.Join(dir, "limits.yaml")
	write(t, limits, "domain: web\ndescriptors: [{key: user, rate_limit: {unit: hour, requests_per_unit: 3}}]\n")

	port := freePort(t)
	kv := limitkvtest.Start(t, "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert, "--requirepass", "secret")
	kv.FreezeAt(time.UnixMilli(1700000000000))
	line := cut.New(t, "127.0.0.1:"+port)

	// ask lets a gateway with these arguments answer a request, over TLS too.
	ask := func(args ...string) func() (*rls.RateLimitResponse, error) {
		t.Helper()
		gate := "127.0.0.1:" + freePort(t)
		startGateway(t, append([]string{"--config", limits, "--grpc", gate, "--http", "", "--timeout", "20s", "--limitkv", line.Addr,
			"--auth", "secret", "--grpc-tls-cert", cert, "--grpc-tls-key", key, "--grpc-tls-ca", cert}, args...)...)
		conn, err := grpc.NewClient(gate, grpc.WithTransportCredentials(credentials.NewTLS(
			&tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, ServerName: "localhost"})))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return func() (*rls.RateLimitResponse, error) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			return rls.NewRateLimitServiceClient(conn).ShouldRateLimit(ctx, &rls.RateLimitRequest{Domain: "web", Descriptors: []*ratelimit.RateLimitDescriptor{
				{Entries: []*ratelimit.RateLimitDescriptor_Entry{{Key: "user", Value: "ann"}}}}}, grpc.WaitForReady(true))
		}
	}
	known := ask("--tls", "--tls-ca", cert, "--tls-cert", cert, "--tls-key", key)
	left := func(ask func() (*rls.RateLimitResponse, error), want uint32) {
		t.Helper()
		until(t, "limitkv answers through TLS", func() bool {
			answer, err := ask()
			if err != nil {
				return false
			}
			if got := answer.Statuses[0].LimitRemaining; got != want {
				t.Errorf("%d left, want %d", got, want)
			}
			return true
		})
	}
	left(known, 2)
	left(known, 1)
	line.Cut()
	if answer, err := known(); status.Code(err) != codes.Unavailable {
		t.Errorf("without limitkv: %v %v", answer, err)
	}
	line.Mend()
	left(known, 0)

	// A server or client with an unknown certificate is refused, and a password is never sent without TLS.
	for _, args := range [][]string{
		{"--tls", "--tls-ca", strange, "--tls-cert", cert, "--tls-key", key},
		{"--tls", "--tls-ca", cert, "--tls-cert", strange, "--tls-key", strangeKey},
		{"--tls", "--tls-ca", cert},
		{"--tls"},
		{},
	} {
		if answer, err := ask(append(args, "--failure-mode", "deny", "--timeout", "200ms")...)(); err != nil ||
			answer.OverallCode != rls.RateLimitResponse_OVER_LIMIT || answer.Statuses[0].CurrentLimit != nil {
			t.Errorf("%v: %v %v", args, answer, err)
		}
	}
}
