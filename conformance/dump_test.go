// What DUMP writes, the other server restores: after random commands each server restores what both dumped, and then all
// copies of a value must be the same, whoever wrote and whoever read.
package conformance

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/conformance/peer"
	"github.com/limitkv/limitkv/conformance/sequence"
)

// dumpedFamilies are those whose values have a form in the dump format.
var dumpedFamilies = []string{"string", "bitmap", "hash", "sortedset", "list", "set"}

// dumpedStreams makes streams, which the random families do not have.
var dumpedStreams = []string{
	"XADD s 1-1 a 1 b 2", "XADD s 1-2 a 3 b -70000", "XADD s 5-0 other fields here text", "XADD s 5-7 a 5 b 6", "XDEL s 1-2",
	"XGROUP CREATE s g 0", "XGROUP CREATE s h 5-0 ENTRIESREAD 2", "XGROUP CREATE s empty $", "XGROUP CREATECONSUMER s g idle",
	"XADD one * f v", "XADD gone 3-3 f v", "XDEL gone 3-3", "XADD trimmed 1-1 a b", "XADD trimmed 2-1 a b", "XTRIM trimmed MAXLEN 1", "XSETID trimmed 9-9",
}

// dumpRounds is how many rounds of a family there are, each of roundSteps commands.
const dumpRounds = 8

func TestDumpBothWays(t *testing.T) {
	oracle, tested := redis(t), peer.LimitKV(t)
	base := *seed
	if base == 0 {
		base = rand.Uint64()
	}
	t.Logf("seed %d", base)
	total := map[string]int{}
	for _, f := range sequence.Families {
		if !slices.Contains(dumpedFamilies, f.Name) {
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			p := &sequence.Pair{Oracle: oracle.Dial(t), Tested: tested.Dial(t), Names: map[string]int{}, Proto: 2}
			for round := range dumpRounds {
				p.Small = round%2 == 1
				d, err := p.Run(f.Round(base+uint64(round), roundSteps))
				if err != nil || d != nil {
					t.Fatalf("round %d: %v %v", round, err, d)
				}
				crossRestore(t, p.Oracle, p.Tested, total)
			}
		})
	}
	t.Run("stream", func(t *testing.T) {
		o, l := oracle.Dial(t), tested.Dial(t)
		for _, c := range []*peer.Conn{o, l} {
			c.Must(t, "FLUSHALL")
			for _, line := range dumpedStreams {
				c.Must(t, strings.Fields(strings.ReplaceAll(line, " * ", " 1700000000000-0 "))...)
			}
			for i := range 300 { // several nodes
				c.Must(t, "XADD", "long", fmt.Sprintf("%d-1", i+1), "n", fmt.Sprint(i), strings.Repeat("f", i%7), strings.Repeat("v", i))
			}
			c.Must(t, "XREADGROUP", "GROUP", "g", "alice", "COUNT", "2", "STREAMS", "s", ">")
		}
		crossRestore(t, o, l, total)
	})
	t.Logf("values restored on both servers: %v", total)
	for _, kind := range []string{"string", "list", "set", "zset", "hash", "stream"} {
		if total[kind] == 0 {
			t.Errorf("no %s was restored", kind)
		}
	}
}

func crossRestore(t *testing.T, oracle, tested *peer.Conn, total map[string]int) {
	t.Helper()
	both := []*peer.Conn{oracle, tested}
	for _, c := range both {
		c.Must(t, "RESET")
	}
	for _, k := range oracle.Must(t, "KEYS", "*").Items {
		key := k.Text
		kind := oracle.Must(t, "TYPE", key).Text
		for from, source := range both {
			payload := source.Must(t, "DUMP", key)
			if payload.Null { // it has expired meanwhile
				continue
			}
			name := key + []string{":redis", ":limitkv"}[from]
			for _, to := range both {
				if v := to.Must(t, "RESTORE", name, "0", payload.Text); v.Text != "OK" {
					t.Errorf("%s of a %s: %s", name, kind, v)
				}
				total[kind]++
				if kind != "stream" {
					continue
				}
				want, got := to.Must(t, "XINFO", "STREAM", key, "FULL", "COUNT", "0"), to.Must(t, "XINFO", "STREAM", name, "FULL", "COUNT", "0")
				if w, g := stable(want), stable(got); w != g {
					t.Errorf("%s\nwant %s\ngot  %s", name, w, g)
				}
			}
		}
	}
	sameDigest(t, oracle, tested)
	what, want, got, err := peer.CompareKeyspaces(oracle, tested)
	if err != nil {
		t.Fatal(err)
	}
	if what != "" {
		t.Errorf("%s\nwant %s\ngot  %s", what, want, got)
	}
}

// sameDigest compares the sums over all that the servers hold, before and after they have written and read it
// all, and if they differ, those of single values.
func sameDigest(t *testing.T, oracle, tested *peer.Conn) {
	t.Helper()
	oracle.Must(t, "SCAN", "0", "COUNT", "1000000") // what has expired goes
	for _, after := range []string{"commands", "DEBUG RELOAD"} {
		want, got := oracle.Must(t, "DEBUG", "DIGEST").Text, tested.Must(t, "DEBUG", "DIGEST").Text
		if want != got {
			t.Errorf("digest after %s: want %s, got %s", after, want, got)
			for _, k := range oracle.Must(t, "KEYS", "*").Items {
				want, got := oracle.Must(t, "DEBUG", "DIGEST-VALUE", k.Text), tested.Must(t, "DEBUG", "DIGEST-VALUE", k.Text)
				if !want.Equal(got) {
					t.Errorf("digest of %s: want %s, got %s", k.Text, want, got)
				}
			}
		}
		for _, c := range []*peer.Conn{oracle, tested} {
			if v := c.Must(t, "DEBUG", "RELOAD"); v.Text != "OK" {
				t.Errorf("DEBUG RELOAD: %s", v)
			}
		}
	}
}

// stable is a stream's description without what depends on how it is kept and on when its entries were delivered.
func stable(v peer.Value) string {
	for i := 0; i+1 < len(v.Items); i += 2 {
		if strings.HasPrefix(v.Items[i].Text, "radix-tree") {
			v.Items[i+1].Text = "0"
		}
	}
	return times.ReplaceAllString(v.String(), ":time")
}

// times are Unix times in milliseconds.
var times = regexp.MustCompile(`:1[0-9]{12}`)
