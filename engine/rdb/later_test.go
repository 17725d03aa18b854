package rdb

import (
	"bytes"
	"os"
	"sync"
	"testing"

	"github.com/limitkv/limitkv/engine/hash"
	"github.com/limitkv/limitkv/engine/packed"
	"github.com/limitkv/limitkv/engine/stream"
)

// A file that Redis 8.10.2 saved: hashes of templates, packed and not, a stream that remembers three IDs of two producers, and
// older types.
func TestFileOfRedis810(t *testing.T) {
	file, err := os.ReadFile("testdata/redis-8.10")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	values := map[string]Value{}
	l := NewLoader(bytes.NewReader(file), LoadOptions{Limits: limits, Databases: 16, Enter: func(items []Item) error {
		mu.Lock()
		defer mu.Unlock()
		for _, i := range items {
			values[string(i.Key)] = i.Value
		}
		return nil
	}})
	if err := l.Load(); err != nil {
		t.Fatal(err)
	}
	if len(values) != 30 {
		t.Errorf("%d keys", len(values))
	}
	for key, want := range map[string]string{"h1": "1", "hh7": "7"} {
		h := values[key].Object.(*hash.Hash)
		if got, ok := h.Get([]byte("zeta"), new(packed.Scratch)); !ok || string(got) != want || h.Len() != 3 {
			t.Errorf("%s: %d fields, %q", key, h.Len(), got)
		}
	}
	d := values["si"].Object.(*stream.Stream).Dedup()
	if p := d.Producers(); len(p) != 2 || p[0].Name != "p1" || len(p[0].IDs) != 2 || d.Added != 3 || d.Seconds != 100 {
		t.Errorf("producers: %+v", d)
	}
}
