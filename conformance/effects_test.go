// The journal: whatever commands do, the effects that they log make the same keys again.
package conformance

import (
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/limitkv/limitkv/conformance/peer"
	"github.com/limitkv/limitkv/conformance/recorded"
)

func TestEffectsAreEnough(t *testing.T) {
	families, err := filepath.Glob("testdata/*")
	if err != nil {
		t.Fatal(err)
	}
	var proven atomic.Int64
	t.Run("families", func(t *testing.T) {
		for _, dir := range families {
			files, _ := filepath.Glob(filepath.Join(dir, "*.txt"))
			if len(files) == 0 {
				continue
			}
			t.Run(filepath.Base(dir), func(t *testing.T) {
				t.Parallel()
				server := peer.LimitKV(t, append([]string{"--test"}, familyArgs[filepath.Base(dir)]...)...)
				for _, path := range files {
					t.Run(filepath.Base(path), func(t *testing.T) {
						file, err := recorded.Load(path, scriptsDir)
						if err != nil {
							t.Fatal(err)
						}
						n, diffs, err := file.Prove(server.Addr)
						if err != nil {
							t.Errorf("%v\n%s", err, server.Output())
						}
						for _, d := range diffs {
							t.Error(d)
						}
						proven.Add(int64(n))
					})
				}
			})
		}
	})
	if proven.Load() == 0 {
		t.Error("nothing was proven")
	}
	t.Logf("%d steps proven", proven.Load())
}
