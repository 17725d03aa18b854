// The recorded conversations of testdata/<family>/*.txt: replayed against limitkv, or with -record against the real
// Redis to write down what it says. A family is a folder with a server of its own, so families run in parallel.
package conformance

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
	"github.com/limitkv/limitkv/conformance/recorded"
)

const scriptsDir = "testdata/scripts"

// familyArgs are what the servers of some families are started with.
var familyArgs = map[string][]string{"cluster": {"--cluster-enabled", "yes"}}

// allSlots gives a Redis that is a cluster of one node all slots, and waits until it says that it is well.
func allSlots(t *testing.T, c *peer.Conn) {
	t.Helper()
	c.Must(t, "CLUSTER", "ADDSLOTSRANGE", "0", "16383")
	for end := time.Now().Add(10 * time.Second); !strings.Contains(c.Must(t, "CLUSTER", "INFO").Text, "cluster_state:ok"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the cluster has not come up")
		}
	}
}

func TestRecorded(t *testing.T) {
	families, err := filepath.Glob("testdata/*")
	if err != nil {
		t.Fatal(err)
	}
	var compared atomic.Int64
	t.Run("families", func(t *testing.T) {
		for _, dir := range families {
			files, err := filepath.Glob(filepath.Join(dir, "*.txt"))
			if err != nil {
				t.Fatal(err)
			}
			if len(files) == 0 {
				continue
			}
			t.Run(filepath.Base(dir), func(t *testing.T) {
				t.Parallel()
				var server *peer.Server
				if *record {
					server = redis(t, familyArgs[filepath.Base(dir)]...)
					if filepath.Base(dir) == "cluster" {
						allSlots(t, server.Dial(t))
					}
				} else {
					server = peer.LimitKV(t, familyArgs[filepath.Base(dir)]...)
				}
				for _, path := range files {
					t.Run(filepath.Base(path), func(t *testing.T) {
						compared.Add(int64(runFile(t, server, path)))
					})
				}
			})
		}
	})
	if n := compared.Load(); !*record && n == 0 {
		t.Error("no reply was compared")
	} else {
		t.Logf("%d replies compared", n)
	}
}

// liveTries is how often a conversation that sleeps may be had.
const liveTries = 4

// differencesMax is how many differences of one file are shown.
const differencesMax = 20

func runFile(t *testing.T, server *peer.Server, path string) int {
	file, err := recorded.Load(path, scriptsDir)
	if err != nil {
		t.Fatal(err)
	}
	if *record {
		if err := file.Record(server.Addr); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, file.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return 0
	}
	compared, diffs, err := file.Replay(server.Addr)
	// What sleeps beside deadlines of milliseconds says nothing where the machine was away for longer.
	for try := 1; try < liveTries && len(diffs) > 0 && bytes.Contains(file.Bytes(), []byte("\n%sleep(")); try++ {
		t.Logf("again, since it goes by the clock: %v", diffs[0])
		compared, diffs, err = file.Replay(server.Addr)
	}
	if err != nil {
		t.Errorf("%v\n%s", err, server.Output())
	}
	for i, d := range diffs {
		if i == differencesMax {
			t.Errorf("and %d more differences", len(diffs)-i)
			break
		}
		t.Error(d)
	}
	return compared
}
