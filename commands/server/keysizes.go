package server

// INFO keysizes: how many keys there are of each size, by type. They are counted when somebody asks, which takes a look
// at each key; to keep count would take part of every write. So it is told only to who asks for it by name.

import (
	"math/bits"
	"strconv"
	"strings"

	"github.com/limitkv/limitkv/commands/command"
	"github.com/limitkv/limitkv/engine"
)

// sizedKinds are what is counted, in the order and with the names of Redis.
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

// sizes counts keys: the first place those of size 0, place n those from 2^(n-1) to 2^n-1.
type sizes [65]int

func (f *family) infoKeysizes(w *command.InfoWriter) {
	w.Section("Keysizes")
	v := w.View
	db := v.DB
	defer func() { v.DB = db }()
	for v.DB = range v.KS.Databases() {
		count := make([]sizes, len(sizedKinds))
		v.Each(func(e engine.Entry) bool {
			n := e.Len
			if x, ok := e.Object().(interface{ Len() int }); ok {
				n = x.Len
			}
			for i, k := range sizedKinds {
				if k.kind == e.Kind() {
					count[i][bits.Len(uint(n()))]++
				}
			}
			return true
		})
		for i, k := range sizedKinds {
			if text := count[i].String(); text != "" {
				w.Linef(dbName(v.DB)+"_"+k.name, "%s", text)
			}
		}
	}
}

// String lists what was counted as size=number, where size is the least that is counted there: 0 1 2 4 … 512 1K …
func (s *sizes) String() string {
	var parts []string
	for i, n := range s {
		if n == 0 {
			continue
		}
		label := "0"
		if i > 0 {
			label = strconv.Itoa(1<<((i-1)%10)) + strings.TrimSpace(" KMGTPE"[(i-1)/10:(i-1)/10+1])
		}
		parts = append(parts, label+"="+strconv.Itoa(n))
	}
	return strings.Join(parts, ",")
}
