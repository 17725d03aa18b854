// The real redis_exporter, where there is one: in PATH, or named by REDIS_EXPORTER.
package tools

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
)

func exporter(t *testing.T) string {
	if path := os.Getenv("REDIS_EXPORTER"); path != "" {
		return path
	}
	for _, name := range []string{"redis_exporter", "prometheus-redis-exporter"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("there is no redis_exporter in PATH")
	return ""
}

func TestRealExporter(t *testing.T) {
	bin := exporter(t)
	p := start(t, "--enable-debug-command", "yes")
	p.load(t, busy)
	var names [2][]string
	for i, s := range p.each() {
		text := scrape(t, bin, s)
		if !strings.Contains(text, "\nredis_up 1\n") || !strings.Contains(text, "\nredis_exporter_last_scrape_error{err=\"\"} 0\n") {
			t.Errorf("%s: the scrape failed: %.3000s", s.Name, text)
		}
		for _, line := range strings.Split(text, "\n") {
			if name, _, ok := strings.Cut(line, " "); ok && !strings.HasPrefix(line, "#") {
				name, _, _ = strings.Cut(name, "{")
				names[i] = append(names[i], name)
			}
		}
		slices.Sort(names[i])
		names[i] = slices.Compact(names[i])
	}
	for _, name := range names[0] {
		if !slices.Contains(names[1], name) {
			t.Errorf("there is no %s", name)
		}
	}
	t.Logf("%d metrics of limitkv, %d of Redis", len(names[1]), len(names[0]))
}

// scrape runs the exporter for a server and reads its metrics once.
func scrape(t *testing.T, bin string, s *peer.Server) string {
	t.Helper()
	port, err := peer.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bin, "-redis.addr", "redis://"+s.Addr, "-web.listen-address", "127.0.0.1:"+port,
		"-include-config-metrics", "-include-system-metrics", "-export-client-list", "-ping-on-connect", "-redis-only-metrics",
		"-check-keys", "*", "-check-single-streams", "x", "-count-keys", "db0=*", "-check-key-groups", "^(.*)$")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		r, err := http.Get("http://127.0.0.1:" + port + "/metrics")
		if err == nil {
			defer r.Body.Close()
			b, err := io.ReadAll(r.Body)
			if err != nil {
				t.Fatal(err)
			}
			return string(b)
		}
		if time.Since(began) > toolTimeout {
			t.Fatal(err)
		}
	}
}
