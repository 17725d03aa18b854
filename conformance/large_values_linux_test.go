package conformance

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
)

// What a server may have beside a large value: peakTimes of it while it comes or goes, and slackBytes, also when it is gone.
const (
	largeValueBytes = 128 << 20
	peakPercent     = 130
	slackBytes      = 30 << 20
)

// memory is how many bytes a process has, and the most that it had since its peak was forgotten.
func memory(t *testing.T, pid int) (now, peak int) {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), "VmRSS:")
	_, _ = fmt.Sscan(rest, &now)
	_, rest, _ = strings.Cut(string(b), "VmHWM:")
	_, _ = fmt.Sscan(rest, &peak)
	return now << 10, peak << 10
}

// forgetPeak has the system measure a process's peak from now on.
func forgetPeak(t *testing.T, pid int) {
	t.Helper()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0); err != nil {
		t.Skip(err)
	}
}

// TestMemoryOfLargeValues holds that a value of many megabytes is in memory once, whichever command brings it or asks for it,
// and that it goes back to the system when it is deleted.
func TestMemoryOfLargeValues(t *testing.T) {
	peer.Long(t)
	value := strings.Repeat("0123456789abcdef", largeValueBytes/16)
	type words = []string
	for _, c := range []struct {
		name   string
		before words // run first, not measured
		run    []words
	}{
		{name: "SET", run: []words{{"SET", "k", value}}},
		{name: "SET EX", run: []words{{"SET", "k", value, "EX", "1000"}}},
		{name: "SETEX", run: []words{{"SETEX", "k", "1000", value}}},
		{name: "SETNX", run: []words{{"SETNX", "k", value}}},
		{name: "APPEND", run: []words{{"APPEND", "k", value}}},
		{name: "GETSET", run: []words{{"GETSET", "k", value}}},
		{name: "MSET", run: []words{{"MSET", "a", "1", "k", value, "b", "2"}}},
		{name: "SETRANGE", run: []words{{"SETRANGE", "k", "0", value}}},
		{name: "EXEC", run: []words{{"MULTI"}, {"SET", "k", value}, {"EXEC"}}},
		{name: "GET", before: words{"SET", "k", value}, run: []words{{"GET", "k"}}},
		{name: "GETRANGE", before: words{"SET", "k", value}, run: []words{{"GETRANGE", "k", "5", "-1"}}},
		{name: "GETDEL", before: words{"SET", "k", value}, run: []words{{"GETDEL", "k"}}},
		{name: "MGET", before: words{"SET", "k", value}, run: []words{{"MGET", "a", "k"}}},
		{name: "GET in EXEC", before: words{"SET", "k", value}, run: []words{{"MULTI"}, {"GET", "k"}, {"EXEC"}}},
		{name: "COPY", before: words{"SET", "k", value}, run: []words{{"COPY", "k", "l"}}},
		{name: "an unknown command", run: []words{{"NOSUCH", "k", value}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := peer.LimitKV(t, "--save", "")
			conn := s.Dial(t)
			if c.before != nil {
				conn.Must(t, c.before...)
			}
			until := time.Now().Add(20 * time.Second)
			held, _ := memory(t, s.Pid())
			for c.before != nil && held > largeValueBytes+slackBytes && time.Now().Before(until) {
				time.Sleep(50 * time.Millisecond)
				held, _ = memory(t, s.Pid())
			}
			forgetPeak(t, s.Pid())
			base, _ := memory(t, s.Pid())
			for _, w := range c.run {
				conn.Must(t, w...)
			}
			if c.before != nil {
				base -= largeValueBytes
			}
			_, peak := memory(t, s.Pid())
			if most := base + largeValueBytes/100*peakPercent + slackBytes; peak > most {
				t.Errorf("the server had %d MB, %.2f times the value", peak>>20, float64(peak-base)/largeValueBytes)
			}
			if peak < largeValueBytes {
				t.Errorf("the server had %d MB at most", peak>>20)
			}
			conn.Must(t, "DEL", "a", "b", "k", "l")
			comesBack(t, s, base+slackBytes)
		})
	}
	for _, run := range []words{ // these take more for a moment
		{"EVAL", "redis.call('SET', KEYS[1], ARGV[1])", "1", "k", value},
		{"EVAL", "local function all() return ARGV end redis.call('SET', KEYS[1], all()[1])", "1", "k", value},
		{"HSET", "k", "f", value},
		{"LPUSH", "k", value},
		{"SADD", "k", value},
		{"ZADD", "k", "1", value},
		{"XADD", "k", "*", "f", value},
		{"DQ.ADD", "k", value},
	} {
		t.Run(run[0]+" and DEL", func(t *testing.T) {
			s := peer.LimitKV(t, "--save", "")
			base, _ := memory(t, s.Pid())
			conn := s.Dial(t)
			if v := conn.Must(t, run...); v.IsError() {
				t.Fatal(v)
			}
			if now, _ := memory(t, s.Pid()); now < largeValueBytes {
				t.Errorf("the server has %d MB", now>>20)
			}
			conn.Must(t, "DEL", "k")
			comesBack(t, s, base+slackBytes)
		})
	}
	t.Run("unfinished", func(t *testing.T) {
		s := peer.LimitKV(t, "--save", "")
		forgetPeak(t, s.Pid())
		base, _ := memory(t, s.Pid())
		conn, err := peer.Dial(s.Addr)
		if err != nil {
			t.Fatal(err)
		}
		raw := peer.AppendCommand(nil, "SET", "k", value)
		if err := conn.SendRaw(raw[:len(raw)/2]); err != nil {
			t.Fatal(err)
		}
		conn.Close()
		comesBack(t, s, base+slackBytes)
		if _, peak := memory(t, s.Pid()); peak > base+largeValueBytes/200*peakPercent+slackBytes {
			t.Errorf("the server had %d MB", peak>>20)
		}
	})
}

// comesBack waits until a server has no more memory than that.
func comesBack(t *testing.T, s *peer.Server, most int) {
	t.Helper()
	began := time.Now()
	for now, _ := memory(t, s.Pid()); now > most; now, _ = memory(t, s.Pid()) {
		if time.Since(began) > 20*time.Second {
			t.Fatalf("the server has %d MB still, where %d were expected", now>>20, most>>20)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
