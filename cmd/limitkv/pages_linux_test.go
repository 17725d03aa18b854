package main

// Which pages are let go after the start.

import (
	"slices"
	"testing"
)

func TestFilePages(t *testing.T) {
	const smaps = `00400000-00a74000 r-xp 00000000 fe:00 12 /opt/limit kv/limitkv
Rss:                5768 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me 
00a74000-011df000 r--p 00674000 fe:00 12 /opt/limit kv/limitkv
Anonymous:             4 kB
011df000-01256000 rw-p 00ddf000 fe:00 12 /opt/limit kv/limitkv
Anonymous:             0 kB
01256000-03320000 r--p 00000000 00:00 0 
Anonymous:             0 kB
02400000-02a74000 r-xp 00000000 fe:00 13 /lib/ld.so
Anonymous:             0 kB
02a74000-02a75000 r--p 00000000 fe:00 12 /opt/limit kv/limitkv
Anonymous:             0 kB
`
	got := filePages(smaps, "/opt/limit kv/limitkv")
	if want := []pages{{0x400000, 0xa74000}, {0x2a74000, 0x2a75000}}; !slices.Equal(got, want) {
		t.Errorf("%x", got)
	}
	dropStart() // what runs goes on
}
