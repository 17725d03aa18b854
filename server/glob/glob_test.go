package glob

// Glob patterns, in particular those that Redis treats in unexpected ways.

import (
	"strings"
	"testing"
)

func TestMatchLimits(t *testing.T) {
	long := strings.Repeat("a", 5000)
	for _, x := range []struct {
		name, pattern, s string
		want             bool
	}{
		{"a thousand stars", strings.Repeat("*?", 1000), long, true},
		{"one more", strings.Repeat("*?", 1001), long, false},
		{"as one that is last", strings.Repeat("*?", 1000) + "*", long, true},
		{"stars in a row are one", strings.Repeat("*", 3000) + "a", long, true},
		{"stars behind the end", "a" + strings.Repeat("*", 3000), "a", true},
		{"a star that goes on", "*ab*c", "aababxc", true},
		{"and does not", "*ab*d", "aababxc", false},
		{"a star before what is nowhere", "*x", "aab", false},
		{"before a class", "*[x]b", "axaxb", true},
		{"before a byte as it is", `*\*b`, "a*a*b", true},
		{"before any byte", "*?b", "b", false},
		{"the last byte twice", "*aa", "aba", false},
	} {
		if got := Match([]byte(x.pattern), []byte(x.s)); got != x.want {
			t.Errorf("%s: %v", x.name, got)
		}
	}
}
