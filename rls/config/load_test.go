// Tests of loading files, and of loading them again.
package config

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func file(domain, limit string) string {
	return "domain: " + domain + "\ndescriptors: [{key: k, rate_limit: {unit: second, requests_per_unit: " + limit + "}}]\n"
}

// put writes a file atomically, so that no half of it is read.
func put(t *testing.T, path, text string) {
	t.Helper()
	part := filepath.Join(t.TempDir(), "part")
	if err := os.WriteFile(part, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(part, path); err != nil {
		t.Fatal(err)
	}
}

func TestLoadFolder(t *testing.T) {
	dir := t.TempDir()
	s := Source{Path: dir}
	load := func(want string) {
		t.Helper()
		c, err := s.Load()
		switch {
		case err == nil && (want != "" || c.Domains() != c.Files):
			t.Errorf("%d files, want %q", c.Files, want)
		case err != nil && (want == "" || !strings.Contains(err.Error(), want)):
			t.Errorf("%v, want %q", err, want)
		}
	}
	load("no file *.yaml or *.yml")
	put(t, filepath.Join(dir, "a.yaml"), file("a", "1"))
	load("")
	put(t, filepath.Join(dir, ".hidden.yaml"), "bad")
	put(t, filepath.Join(dir, "README"), "bad")
	if err := os.Mkdir(filepath.Join(dir, "folder.yaml"), 0o700); err != nil {
		t.Fatal(err)
	}
	load("")
	put(t, filepath.Join(dir, "b.yml"), file("a", "1"))
	load("duplicate domain 'a'")
	put(t, filepath.Join(dir, "b.yml"), file("b", "1"))
	load("")
	if err := os.Symlink(filepath.Join(dir, "gone"), filepath.Join(dir, "c.yaml")); err != nil {
		t.Fatal(err)
	}
	load("c.yaml")
	s.Path = filepath.Join(dir, "a.yaml")
	load("")
	s.Path = filepath.Join(dir, "none.yaml")
	load("none.yaml")
}

func TestWatch(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.yaml")
	put(t, path, file("a", "1"))
	type event struct {
		c   *Config
		err error
	}
	events := make(chan event, 100)
	now := make(chan os.Signal)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan bool)
	go func() {
		defer close(ended)
		Source{Path: dir}.Watch(ctx, 5*time.Millisecond, now, func(c *Config, err error) { events <- event{c, err} })
	}()
	next := func(what string) event {
		t.Helper()
		select {
		case e := <-events:
			return e
		case <-time.After(30 * time.Second):
			t.Fatalf("nothing comes: %s", what)
			panic("")
		}
	}
	limit := func(what string, want uint32) {
		t.Helper()
		if e := next(what); e.err != nil || e.c.domains["a"].any["k"].limit.Count != want {
			t.Fatalf("%s: %+v", what, e)
		}
	}
	limit("the first", 1)
	put(t, path, file("a", "2"))
	limit("a change", 2)
	put(t, path, "domain: a\nx: 1\n")
	if e := next("a bad one"); e.err == nil {
		t.Fatal(e.c)
	}
	time.Sleep(30 * time.Millisecond) // it is reported once
	put(t, path, file("a", "3"))
	limit("a good one", 3)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if e := next("no file"); e.err == nil {
		t.Fatal(e.c)
	}
	time.Sleep(30 * time.Millisecond)
	put(t, path, file("a", "3"))
	limit("the file is back", 3)
	// Links that are replaced, as mounted configurations are.
	for i, name := range []string{"x", "y"} {
		put(t, filepath.Join(dir, name), file("a", []string{"4", "5"}[i]))
		if err := os.Symlink(name, filepath.Join(dir, "new")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "new"), path); err != nil {
			t.Fatal(err)
		}
		limit("a link", uint32(4+i))
	}
	stop()
	<-ended
	if len(events) != 0 {
		t.Errorf("%d more events", len(events))
	}
}

// A signal makes Watch read the files at once.
func TestWatchAsked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.yaml")
	put(t, path, file("a", "1"))
	now := make(chan os.Signal)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan bool)
	counts := make(chan uint32, 10)
	go func() {
		defer close(ended)
		Source{Path: path}.Watch(ctx, time.Hour, now, func(c *Config, err error) {
			if err != nil {
				t.Error(err)
				return
			}
			counts <- c.domains["a"].any["k"].limit.Count
		})
	}()
	if n := <-counts; n != 1 {
		t.Error(n)
	}
	put(t, path, file("a", "2"))
	now <- os.Interrupt
	if n := <-counts; n != 2 {
		t.Error(n)
	}
	stop()
	<-ended
}
