// Locks over a restart: what a server that was killed finds in its files of them.
package files

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
)

// Holders, fences, leases and permits are there again, in whatever form the file is; leases that were bound to connections
// have ended, and a delay after them has begun. Fences go on rising, even if no lock is left that has the last one, and the
// clock is behind it.
func TestLocksStay(t *testing.T) {
	log := []string{"--appendonly", "yes", "--appendfsync", "always", "--test"}
	for name, way := range map[string]struct {
		args []string
		save string // what makes the file
	}{
		"log":           {log, "PING"},
		"log rewritten": {log, "BGREWRITEAOF"},
		"log of words":  {append([]string{"--aof-use-rdb-preamble", "no"}, log...), "BGREWRITEAOF"},
		"snapshot":      {[]string{"--save", "3600 1", "--test"}, "SAVE"},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"--dir", t.TempDir()}, way.args...)
			s := peer.LimitKV(t, args...)
			c := s.Dial(t)
			ahead := time.Now().Add(10 * time.Hour).UnixMilli()
			do(t, c, fmt.Sprint("LKV.CLOCK FREEZE ", ahead))
			last := do(t, c, "LK.ACQUIRE free a 1000")
			do(t, c, "LK.RELEASE free a")
			do(t, c, "LKV.CLOCK RESUME")
			for _, line := range []string{
				"LK.ACQUIRE mutex a 3600000", "LK.ACQUIRE readers r1 3600000 SHARED", "LK.ACQUIRE readers r2 7200000 SHARED",
				"LK.ACQUIRE permits p 3600000 OF 5 TAKE 3", "LK.ACQUIRE bound b 0", "LK.ACQUIRE delayed d 0 DELAY 600000",
				"LK.ACQUIRE short s 1", "LK.ACQUIRE moved m 3600000", "RENAME moved there", "LK.TOUCH a 7200000 mutex",
			} {
				if got := do(t, c, line); strings.HasPrefix(got, "-") {
					t.Fatalf("%s: %s", line, got)
				}
			}
			for i := range 20 {
				do(t, c, fmt.Sprintf("LK.ACQUIRE many m%d 3600000 SHARED", i))
			}
			do(t, c, "LK.RELEASE many m7")
			var before []string
			keys := []string{"mutex", "readers", "permits", "there", "many"}
			for _, key := range keys {
				before = append(before, holdersOf(t, c, key))
			}
			do(t, c, way.save)
			for end := time.Now().Add(60 * time.Second); strings.Contains(do(t, c, "INFO persistence"), "_in_progress:1"); time.Sleep(10 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatal("the file is not written")
				}
			}
			s.Kill()

			c = peer.LimitKV(t, args...).Dial(t)
			for i, key := range keys {
				if got := holdersOf(t, c, key); got != before[i] {
					t.Errorf("%s is held by %s, not %s", key, got, before[i])
				}
			}
			for end := time.Now().Add(60 * time.Second); do(t, c, "EXISTS bound short") != ":0"; time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatal("a lease is there that has ended")
				}
			}
			if got := do(t, c, "LK.INFO delayed"); !strings.Contains(got, "closed") {
				t.Errorf("of a lease with a delay there is %s", got)
			}
			var was, is int64
			fence := func(reply string) (n int64) {
				fmt.Sscan(strings.TrimPrefix(strings.TrimSuffix(strings.Fields(strings.Trim(reply, "[]"))[1], ","), ":"), &n)
				return n
			}
			if was, is = fence(last), fence(do(t, c, "LK.ACQUIRE free a 1000")); is <= was || was == 0 {
				t.Errorf("fence %d comes after %d", is, was)
			}
			if got := do(t, c, "LK.ACQUIRE mutex x 1000"); !strings.HasPrefix(got, "[:0,") {
				t.Errorf("another one gets what is held: %s", got)
			}
		})
	}
}

// holdersOf are a lock's holders, with their fences and permits.
func holdersOf(t *testing.T, c *peer.Conn, key string) string {
	t.Helper()
	v, err := c.Do("LK.INFO", key)
	if err != nil || len(v.Items) < 12 {
		t.Fatalf("LK.INFO %s: %v %v", key, v, err)
	}
	text := v.Items[1].Text
	for _, h := range v.Items[11].Items {
		text += fmt.Sprint(" ", h.Items[0].Text, " ", h.Items[1].Text, " ", h.Items[3].Text)
	}
	return text
}
