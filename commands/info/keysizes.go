package info

// INFO keysizes: how many keys there are of each size, by type.

import (
	"strconv"
	"strings"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/server/command"
)

// sizedKinds are the kinds that are counted, in the order and with the names of Redis.
var sizedKinds = []struct {
	kind engine.Kind
	name string
}{
	{engine.KindString, "distrib_strings_sizes"},
	{engine.KindList, "distrib_lists_items"},
	{engine.KindSet, "distrib_sets_items"},
	{engine.KindZSet, "distrib_zsets_items"},
	{engine.KindHash, "distrib_hashes_items"},
}

func (f *family) infoKeysizes(w *command.InfoWriter) {
	w.Section("Keysizes")
	for db, st := range w.Tally().DBs {
		if st.Keys == 0 {
			continue
		}
		for _, k := range sizedKinds {
			if text := sizes(st.Sizes.Of(k.kind)); text != "" {
				w.Line(dbName(db)+"_"+k.name, text)
			}
		}
	}
}

// sizes lists a histogram as size=number, where size is the least size that the number counts: 0 1 2 4 … 512 1K …
func sizes(bins [engine.SizeBins]int64) string {
	var parts []string
	for i, n := range bins {
		if n == 0 {
			continue
		}
		label := "0"
		if i > 0 {
			label = strconv.Itoa(1<<((i-1)%10)) + strings.TrimSpace(" KMGTPE"[(i-1)/10:(i-1)/10+1])
		}
		parts = append(parts, label+"="+strconv.FormatInt(n, 10))
	}
	return strings.Join(parts, ",")
}
