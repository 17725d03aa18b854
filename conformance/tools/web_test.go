// The server over HTTP: its metrics by Prometheus's own checker, its page in a real browser without a window.
package tools

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/conformance/peer"
)

// site is a server with its page at an address.
func site(t *testing.T, args ...string) (s *peer.Server, url string) {
	t.Helper()
	s = peer.LimitKV(t, append([]string{"--http", "0"}, args...)...)
	v, err := s.Dial(t).Do("CONFIG", "GET", "http")
	if err != nil || len(v.Items) != 2 {
		t.Fatalf("%v %v", v, err)
	}
	return s, "http://" + v.Items[1].Text
}

// installed is a program of a Debian package, without which the test is skipped.
func installed(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("there is no %s in PATH", name)
	}
	return path
}

func get(t *testing.T, url string) string {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %v %s", url, answer.StatusCode, err, text)
	}
	return string(text)
}

// native is something of each of limitkv's types.
const native = `RL.SET api:alice GCRA 10 1000 LOG 100 60000
RL.ACQUIRE api:alice
RL.SET api:bob FIXED 1 60000
RL.ACQUIRE api:bob
RL.ACQUIRE api:bob
DQ.SET jobs LEASE 60000 TRIES 3 DEAD jobs:dead
DQ.ADD jobs ID first <payload>&
DQ.ADD jobs ID later DELAY 3600000 text
DQ.ADD jobs ID taken x
DQ.ADD chores EVERY 3600000 ID sweep x
LK.ACQUIRE stock:7 worker-1 600000
LK.ACQUIRE stock:7 worker-2 600000
SET text value
nope`

// lines sends commands, whatever they reply.
func lines(t *testing.T, s *peer.Server, text string) {
	t.Helper()
	c := s.Dial(t)
	for line := range strings.Lines(text) {
		if _, err := c.Do(strings.Fields(line)...); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPromtool(t *testing.T) {
	bin := installed(t, "promtool")
	for _, args := range [][]string{nil, {"--appendonly", "yes", "--dir", t.TempDir()}} {
		s, url := site(t, args...)
		lines(t, s, native)
		cmd := exec.Command(bin, "check", "metrics")
		cmd.Stdin = strings.NewReader(get(t, url+"/metrics"))
		if out, err := cmd.CombinedOutput(); err != nil || len(out) != 0 {
			t.Errorf("promtool: %v\n%s", err, out)
		}
	}
}

// The alerts are valid and fire, and what alerts and dashboard ask for is told.
func TestDeploy(t *testing.T) {
	bin := installed(t, "promtool")
	root, err := peer.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"check", "rules", "alerts.yml"}, {"test", "rules", "alerts_test.yml"}} {
		cmd := exec.Command(bin, args...)
		cmd.Dir = filepath.Join(root, "deploy")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %q: %v\n%s", args, err, out)
		}
	}
	// What docs/observing.md shows for Prometheus's own configuration.
	text, err := os.ReadFile(filepath.Join(root, "docs", "observing.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, config, found := strings.Cut(string(text), "```yaml\n")
	config, _, ends := strings.Cut(config, "```")
	file := filepath.Join(t.TempDir(), "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil || !found || !ends {
		t.Fatal("docs/observing.md has lost its configuration", err)
	}
	if out, err := exec.Command(bin, "check", "config", file).CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
	s, url := site(t, "--appendonly", "yes", "--dir", t.TempDir())
	lines(t, s, native)
	told := get(t, url+"/metrics")
	names := 0
	for _, file := range []string{"alerts.yml", "grafana.json"} {
		text, err := os.ReadFile(filepath.Join(root, "deploy", file))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, ".json") && !json.Valid(text) {
			t.Errorf("%s is no JSON", file)
		}
		for _, name := range regexp.MustCompile(`limitkv_[a-z_]+`).FindAllString(string(text), -1) {
			names++
			if name != "limitkv_replication_link_up" && !strings.Contains(told, "\n"+name) { // that is a replica's
				t.Errorf("%s: nobody tells %s", file, name)
			}
		}
	}
	if names < 30 {
		t.Errorf("there are %d names", names)
	}
}
