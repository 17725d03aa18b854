package files

// What fell due while a server was down: what becomes of it at the start, beside Redis.

import (
	"fmt"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
)

// counts are the lines of INFO that tell of keys whose time was over.
var counts = regexp.MustCompile(`(rdb_last_load_keys_expired|rdb_last_load_keys_loaded|expired_keys|expired_subkeys):\d+`)

func TestDueAtStart(t *testing.T) {
	servers := map[string]func(args ...string) *peer.Server{
		"limitkv": func(args ...string) *peer.Server { return peer.LimitKV(t, args...) },
		"redis":   func(args ...string) *peer.Server { return peer.Redis(t, required, args...) },
	}
	for _, form := range []string{"snapshot", "commands", "preamble"} {
		dir := t.TempDir()
		// With everysec Redis puts off what it writes while a sync takes long, and the kill would lose it.
		args := []string{"--dir", dir, "--save", "", "--appendonly", "yes", "--appendfsync", "no", "--aof-use-rdb-preamble", "no"}
		if form == "preamble" {
			args[len(args)-1] = "yes"
		}
		from := servers["redis"](args...)
		c := from.Dial(t)
		due := time.Now().Add(time.Second).UnixMilli()
		for i := range 30 {
			do(t, c, fmt.Sprintf("SET kept:%d x", i))
		}
		for i := range 20 {
			do(t, c, fmt.Sprintf("SET due:%d x PXAT %d", i, due))
		}
		do(t, c, "HSET hash a 1 b 2 c 3")
		do(t, c, fmt.Sprintf("HPEXPIREAT hash %d FIELDS 2 a b", due))
		do(t, c, "HSET gone a 1")
		do(t, c, fmt.Sprintf("HPEXPIREAT gone %d FIELDS 1 a", due))
		switch form {
		case "snapshot":
			do(t, c, "SAVE")
		case "preamble":
			do(t, c, "BGREWRITEAOF")
			until(t, c, "aof_rewrite_in_progress:0")
		}
		from.Kill()
		if time.Now().UnixMilli() >= due {
			t.Fatal("that took too long")
		}
		time.Sleep(time.Until(time.UnixMilli(due + 50)))
		got := map[string]string{}
		for name, start := range servers {
			copied := t.TempDir()
			if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			on := "yes"
			if form == "snapshot" {
				on = "no"
			}
			c := start("--dir", copied, "--save", "", "--appendonly", on).Dial(t)
			for end := time.Now().Add(60 * time.Second); do(t, c, "DBSIZE") != ":31"; time.Sleep(10 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("%s of %s: %s keys", form, name, do(t, c, "DBSIZE"))
				}
			}
			got[name] = fmt.Sprint(counts.FindAllString(do(t, c, "INFO persistence"), -1), counts.FindAllString(do(t, c, "INFO stats"), -1), do(t, c, "HGETALL hash"))
		}
		t.Logf("%s: %s", form, got["redis"])
		if len(counts.FindAllString(got["redis"], -1)) != 4 {
			t.Errorf("INFO does not tell: %s", got["redis"])
		}
		if got["redis"] != got["limitkv"] {
			t.Errorf("%s\n limitkv %s\n redis   %s", form, got["limitkv"], got["redis"])
		}
	}
}
