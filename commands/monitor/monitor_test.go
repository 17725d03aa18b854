package monitor_test

// A client that monitors sees other clients' commands, and no passwords.

import (
	"strings"
	"testing"

	"github.com/limitkv/limitkv/commands/livetest"
)

func TestMonitor(t *testing.T) {
	s := livetest.Start(t)
	m, c := s.Client(), s.Client()
	m.Want("OK", "MONITOR")
	line := func() string {
		t.Helper()
		text := m.Read()
		at, rest, _ := strings.Cut(text, " [")
		if at != "1700000000.000000" {
			t.Errorf("the time is %s", at)
		}
		from, what, _ := strings.Cut(rest, "] ")
		db, from, _ := strings.Cut(from, " ")
		if from != "lua" {
			from = "client"
		}
		return db + " " + from + " " + what
	}
	want := func(lines ...string) {
		t.Helper()
		for _, l := range lines {
			if got := line(); got != l {
				t.Errorf("got  %s\nwant %s", got, l)
			}
		}
	}
	c.Want("OK", "SET", "k", "a\"b\\\n\r\t\a\b\x00\xff")
	want(`0 client "SET" "k" "a\"b\\\n\r\t\a\b\x00\xff"`)
	c.Want("OK", "AUTH", "default", "secret")
	want(`0 client "AUTH" "(redacted)" "(redacted)"`)
	c.Do("HELLO", 2, "AUTH", "default", "secret", "SETNAME", "n")
	want(`0 client "HELLO" "2" "AUTH" "(redacted)" "(redacted)" "SETNAME" "n"`)
	c.Want("OK", "SELECT", 1)
	want(`1 client "SELECT" "1"`)
	c.Want("OK", "CONFIG", "SET", "maxmemory", 0) // not shown, because it is an administrative command
	c.Want("1", "EVAL", "redis.call('incr', KEYS[1]) return 1", 1, "n")
	want(`1 client "EVAL" "redis.call('incr', KEYS[1]) return 1" "1" "n"`, `1 lua "incr" "n"`)
	c.Want("OK", "MULTI")
	c.Want("QUEUED", "INCR", "n")
	c.Want("[2]", "EXEC")
	want(`1 client "MULTI"`, `1 client "INCR" "n"`, `1 client "EXEC"`)
	m.Want("-ERR Replica can't interact with the keyspace", "GET", "k")
	m.Want("RESET", "RESET")
	c.Want("nil", "GET", "k")
	m.Silent()
	if n := s.Monitors.Load(); n != 0 {
		t.Errorf("%d clients monitor", n)
	}
}

func TestMonitorThatGoes(t *testing.T) {
	s := livetest.Start(t)
	m, c := s.Client(), s.Client()
	m.Want("OK", "MONITOR")
	m.Close()
	for range 1000 {
		c.Want("PONG", "PING")
		if s.Monitors.Load() == 0 {
			return
		}
	}
	t.Error("it monitors still")
}
