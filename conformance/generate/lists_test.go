// The lists of docs/COMPATIBILITY.md rest on names that a real server has, and are what would be generated now.
package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/conformance/peer"
)

// The stored names are those of a real Redis.
func TestLists(t *testing.T) {
	has, err := asked(peer.Redis(t, false).Dial(t))
	if err != nil {
		t.Fatal(err)
	}
	groups, err := readNames(redisLists)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range groups {
		names := has[g.name]
		slices.Sort(names)
		if names = slices.Compact(names); !slices.Equal(names, g.commands) || len(names) < 30 {
			t.Errorf("redis-8.0.6-lists.txt has other names for %s than Redis, whose are\n%s", g.name, strings.Join(names, " "))
		}
	}
	if len(groups) != len(has) || len(groups) < 3 {
		t.Errorf("%d lists are stored", len(groups))
	}
}

// The lists are what would be generated now.
func TestListsUpToDate(t *testing.T) {
	bin, err := peer.Build()
	if err != nil {
		t.Fatal(err)
	}
	parts, err := lists(bin)
	if err != nil {
		t.Fatal(err)
	}
	page := writtenPage(t)
	for name, text := range parts {
		if !strings.Contains(page, "<!-- "+name+": written by make generate -->\n"+text+"<!-- end of "+name+" -->\n") {
			t.Errorf("docs/COMPATIBILITY.md: %s is not what make generate writes", name)
		}
	}
}

func TestCompare(t *testing.T) {
	both, missing, own := compare([]string{"a", "b", "c"}, []string{"c", "x", "a", "d"})
	if !slices.Equal(both, []string{"a", "c"}) || !slices.Equal(missing, []string{"b"}) || !slices.Equal(own, []string{"d", "x"}) {
		t.Error(both, missing, own)
	}
	effect := effective("Usage: --no\n\n  --maxclients 10000\n        most clients\n  --lua-time-limit 5000, also --busy-reply-threshold\n")
	if len(effect) != 3 || !effect["maxclients"] || !effect["busy-reply-threshold"] {
		t.Error(effect)
	}
	if got := wrap(strings.Repeat("word ", 30)); strings.Count(got, "\n") != 2 || strings.Count(got, "word") != 30 {
		t.Errorf("%q", got)
	}
}
