// The effects that the journal holds are Redis's, letter for letter: those that a replica of the real Redis was sent for
// the same conversations are kept beside them.
package conformance

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/limitkv/limitkv/conformance/peer"
	"github.com/limitkv/limitkv/conformance/recorded"
)

// otherEffects are where limitkv's effects are not Redis's, and why. Each is met at least once.
var otherEffects = []*recorded.Exception{
	{File: "/(groups|read|blocking)$", Step: "XREADGROUP|XCLAIM", Effect: "XGROUP CREATECONSUMER",
		Reason: "Redis forgets a consumer to whom no entry was given: here a restart and a replica know it"},
	{File: "/(field_expiry_live|debug)$", Effect: "HDEL (h|gone) ",
		Reason: "fields whose time is over go as soon as anybody looks at the hash, in Redis when anybody looks at the field"},
	{File: "/server/debug$", Step: "RELOAD", Effect: "(DEL over|FLUSHALL|RESTORE )",
		Reason: "what DEBUG RELOAD leaves out, and what DEBUG RELOAD NOSAVE reads, changes the keys: here the journal knows it"},
}

func TestRecordedEffects(t *testing.T) {
	families, err := filepath.Glob("testdata/*")
	if err != nil {
		t.Fatal(err)
	}
	var compared atomic.Int64
	t.Run("families", func(t *testing.T) {
		for _, dir := range families {
			files, _ := filepath.Glob(filepath.Join(dir, "*.txt"))
			if len(files) == 0 {
				continue
			}
			family := filepath.Base(dir)
			t.Run(family, func(t *testing.T) {
				t.Parallel()
				var server *peer.Server
				if *record {
					server = redis(t, familyArgs[family]...)
					if family == "cluster" {
						allSlots(t, server.Dial(t))
					}
				} else {
					server = peer.LimitKV(t, append([]string{"--test"}, familyArgs[family]...)...)
				}
				for _, path := range files {
					t.Run(filepath.Base(path), func(t *testing.T) {
						compared.Add(int64(effectsOf(t, server, path)))
					})
				}
			})
		}
	})
	for _, x := range otherEffects {
		if !*record && x.Met.Load() == 0 && !t.Failed() {
			t.Errorf("this exception is not needed: %s %s", x.File, x.Effect)
		}
	}
	if n := compared.Load(); !*record && n == 0 {
		t.Error("no effects were compared")
	} else {
		t.Logf("the effects of %d steps are Redis's", n)
	}
}

// effectsOf records or compares the effects of one conversation.
func effectsOf(t *testing.T, server *peer.Server, path string) int {
	file, err := recorded.Load(path, scriptsDir)
	if err != nil {
		t.Fatal(err)
	}
	kept := strings.TrimSuffix(path, ".txt") + ".effects"
	letters, err := recorded.LoadLetters(kept)
	if err != nil {
		t.Fatal(err)
	}
	if *record {
		replica, err := peer.Attach(server.Addr)
		if err != nil {
			t.Fatal(err)
		}
		defer replica.Close()
		found, err := file.Letters(server.Addr, func(admin *peer.Conn) (recorded.Taker, error) {
			_, err := replica.Take(admin)
			return replica.Take, err
		})
		if err != nil {
			t.Fatal(err)
		}
		if letters.Keep(found); len(letters.Steps) == 0 {
			_ = os.Remove(kept)
		} else if err := os.WriteFile(kept, letters.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return 0
	}
	var same int
	var diffs []recorded.Difference
	for try := 0; try < liveTries; try++ {
		found, err := file.Letters(server.Addr, recorded.JournalTaker)
		if err != nil {
			t.Fatalf("%v\n%s", err, server.Output())
		}
		if same, diffs = letters.Compare(kept, found, otherEffects); len(diffs) == 0 || !file.Sleeps() {
			break
		}
		t.Logf("again, since it goes by the clock: %v", diffs[0])
	}
	for _, d := range diffs {
		t.Error(d)
	}
	return same
}
