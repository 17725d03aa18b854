package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/commands"
	"github.com/limitkv/limitkv/server"
)

// The short help fits a screen of 24 lines, one of them for the prompt, and 80 columns, and what it says about parameters is
// true.
func TestHelp(t *testing.T) {
	lines := strings.Split(strings.TrimSuffix(usage, "\n"), "\n")
	if len(lines) > 23 {
		t.Errorf("%d lines", len(lines))
	}
	s, err := commands.New(server.Options{LoadLater: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	parameter, named := regexp.MustCompile(`^  --([a-z-]+) ("[^"]*"|\S+) `), 0
	for _, line := range lines {
		if len(line) > 80 {
			t.Errorf("too wide: %s", line)
		}
		m := parameter.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		named++
		if p := s.Config.Find(m[1]); p == nil {
			t.Errorf("there is no %s", m[1])
		} else if value := p.Get(); value != strings.Trim(m[2], `"`) && m[1] != "dir" {
			t.Errorf("%s is %s, not %s", m[1], value, m[2])
		}
	}
	if named != 10 {
		t.Errorf("%d parameters were compared", named)
	}
	all := strings.Count(s.Config.Usage(""), "\n  --") + 1
	for word, want := range map[string][]string{
		"port": {"--port 6379", "--tls-port"}, "--maxmemory-policy": {"--maxmemory-policy noeviction"},
		"BACKLOG": {"--repl-backlog-size", "--repl-backlog-ttl"},
	} {
		got := s.Config.Usage(word)
		if n := strings.Count(got, "\n  --") + 1; n >= all {
			t.Errorf("%s: %d of %d parameters", word, n, all)
		}
		for _, w := range want {
			if !strings.Contains(got, "  "+w) {
				t.Errorf("%s: %s is not in\n%s", word, w, got)
			}
		}
	}
	if got := s.Config.Usage("no such word"); got != "" {
		t.Error(got)
	}
}
