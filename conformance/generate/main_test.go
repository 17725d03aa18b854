// The session that README.md shows replies what it shows.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/conformance/peer"
	"github.com/limitkv/limitkv/conformance/recorded"
)

func TestMain(m *testing.M) {
	code := m.Run()
	peer.Cleanup()
	os.Exit(code)
}

func readme(t *testing.T) []byte {
	t.Helper()
	root, err := peer.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// prompt begins the lines of a redis-cli session.
const prompt = "127.0.0.1:6379> "

func TestSession(t *testing.T) {
	c := peer.LimitKV(t).Dial(t)
	lines := strings.Split(string(readme(t)), "\n")
	asked := 0
	for i, line := range lines {
		command, ok := strings.CutPrefix(line, prompt)
		if !ok {
			continue
		}
		asked++
		args, err := recorded.Split(command)
		if err != nil {
			t.Fatal(err)
		}
		v, err := c.Do(args...)
		if err != nil {
			t.Fatal(err)
		}
		if got := asRedisCLI(v); got != lines[i+1] {
			t.Errorf("README.md:%d: %s\n  says %s\n  gets %s", i+1, command, lines[i+1], got)
		}
	}
	if asked < 3 {
		t.Errorf("README.md shows %d commands", asked)
	}
}

// asRedisCLI writes a scalar as redis-cli shows it.
func asRedisCLI(v peer.Value) string {
	switch {
	case v.Null:
		return "(nil)"
	case v.Kind == '$':
		return v.String()
	case v.Kind == ':':
		return "(integer) " + v.Text
	case v.Kind == '-':
		return "(error) " + v.Text
	}
	return fmt.Sprint(v.Text)
}
