package ratelimit_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/commands"
	"github.com/limitkv/limitkv/resp"
	"github.com/limitkv/limitkv/server"
	"github.com/limitkv/limitkv/server/params"
)

// A limiter has two bytes for each count until that is not enough; no reply shows the change.
func TestCountsOutgrowTwoBytes(t *testing.T) {
	s, err := commands.New(server.Options{Loops: 1, Settings: []params.Setting{{Name: "save"}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	c := resp.NewMemory(s, s.Keyspace.Clock.Now)
	c.Loop = 0
	do := func(times int, words string) string {
		t.Helper()
		var b strings.Builder
		parts := strings.Fields(words)
		fmt.Fprintf(&b, "*%d\r\n", len(parts))
		for _, p := range parts {
			fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(p), p)
		}
		reply := string(c.Feed([]byte(strings.Repeat(b.String(), times))))
		if strings.HasPrefix(reply, "-") || strings.Contains(reply, "\n-") {
			t.Fatalf("%s: %q", words, reply[:min(len(reply), 200)])
		}
		return reply
	}
	counted := func(key string) (granted, refused int) {
		t.Helper()
		words := strings.Split(do(1, "RL.INFO "+key), "\r\n")
		at := func(name string) int {
			for i, w := range words {
				if w == name {
					n, _ := strconv.Atoi(strings.TrimPrefix(words[i+1], ":"))
					return n
				}
			}
			t.Fatalf("no %q in %q", name, words)
			return 0
		}
		return at("granted"), at("refused")
	}
	const most = 1<<16 - 1
	for _, test := range []struct{ name, first, again string }{
		{"granted", "RL.SET granted GCRA 1000000000 1000", "RL.ACQUIRE granted"},
		{"refused", "RL.ACQUIRE refused 1 GCRA 1 100000000", "RL.ACQUIRE refused"},
		{"several", "RL.ACQUIRE several 1 GCRA 1 100000000", "RL.MACQUIRE 1 several 1"},
	} {
		do(1, test.first)
		usage := do(1, "MEMORY USAGE "+test.name)
		for range (most - 1) / 74 { // 65,534 = 74 * 885 + 44
			do(74, test.again)
		}
		do((most-1)%74, test.again)
		for n := most - 1; n <= most+2; n++ {
			granted, refused := counted(test.name)
			if test.name == "granted" && (granted != n || refused != 0) || test.name != "granted" && (granted != 1 || refused != n) {
				t.Errorf("%s: %d granted, %d refused after %d", test.name, granted, refused, n)
			}
			if now := do(1, "MEMORY USAGE "+test.name); (now == usage) != (n <= most) {
				t.Errorf("%s: MEMORY USAGE %q at first, %q after %d", test.name, usage, now, n)
			}
			do(1, test.again)
		}
	}
}
