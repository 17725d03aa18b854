package storm

// What there is is a function of the log: a second process, with another seed of its hash tables, other time zones, another
// wall clock and other idle times, makes the same of it.

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
)

const (
	logRounds  = 300   // how often what there is is compared
	logSteps   = 20    // commands between
	fillEvery  = 50    // rounds between
	logEffects = 2_000 // how many effects there are in all, at least
)

// pictures is all that a server has, in words, by database and key.
func pictures(t *testing.T, c *peer.Conn, args ...string) map[string]string {
	t.Helper()
	v, err := c.Do(append([]string{"LKV.JOURNAL", "PICTURES"}, args...)...)
	if err != nil || v.Kind == '-' {
		t.Fatal(v, err)
	}
	all := map[string]string{}
	for _, e := range v.Items {
		all[e.Items[0].Text+" "+e.Items[1].Text] = e.Items[2].Text
	}
	return all
}

// elsewhere is a server at another place.
func elsewhere(t *testing.T) *peer.Conn {
	t.Helper()
	zones := t.TempDir()
	utc := "TZif2" + strings.Repeat("\x00", 15) + strings.Repeat("\x00\x00\x00\x00", 4) + "\x00\x00\x00\x01\x00\x00\x00\x04" + "\x00\x00\x00\x00\x00\x00UTC\x00"
	utc += utc + "\nUTC0\n"
	for _, name := range []string{"Europe/Berlin", "Asia/Tokyo", "America/New_York"} {
		path := filepath.Join(zones, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(utc), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("ZONEINFO", zones)
	t.Setenv("TZ", "Pacific/Kiritimati")
	return peer.LimitKV(t, "--test").Dial(t)
}

// tell has a copy hear the effects since the last time, and returns how many there were.
func (x *closed) tell(copied *peer.Conn) int {
	x.t.Helper()
	effects := x.do("LKV.JOURNAL", "TAKE").Items
	for _, effect := range effects {
		words := []string{"LKV.JOURNAL", "APPLY"}
		for _, w := range effect.Items {
			words = append(words, w.Text)
		}
		x.say(words...)
		if v, err := copied.Do(words...); err != nil || v.Text != "OK" {
			x.fail("%.400q: %v %v", words, v, err)
		}
	}
	return len(effects)
}

func TestFunctionOfTheLog(t *testing.T) {
	seed := *seedOf
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	s := peer.LimitKV(t, "--test", "--maxmemory", "1gb", "--proto-max-bulk-len", "1mb")
	x := &closed{t: t, r: rand.New(rand.NewPCG(seed, 0)), c: s.Dial(t), kinds: map[string]int{}, now: 1_700_000_000_000}
	x.writers()
	x.ok("LKV.CLOCK", "FREEZE", strconv.FormatInt(x.now, 10))
	x.ok("LKV.JOURNAL", "START")
	copied := elsewhere(t)
	away := func(args ...string) {
		t.Helper()
		if v, err := copied.Do(args...); err != nil || v.Text != "OK" {
			t.Fatalf("%q: %v %v", args, v, err)
		}
	}
	away("LKV.JOURNAL", "START")
	effects := 0
	for round, end := 0, time.Now().Add(*lasts); round < logRounds || time.Now().Before(end); round++ {
		if round%fillEvery == 0 {
			x.fill()
		}
		for sent := 0; sent < logSteps; sent += x.batch() {
			if x.r.IntN(4) == 0 {
				x.advance()
			}
		}
		// Some time between the years 2001 and 2286.
		away("LKV.CLOCK", "FREEZE", strconv.FormatInt(1e12+x.r.Int64N(9e12), 10))
		// Dead letters go to their queue a moment later: what is compared has to be all that was told.
		effects += x.tell(copied)
		want := pictures(t, x.c)
		for more := x.tell(copied); more > 0; more = x.tell(copied) {
			effects += more
			want = pictures(t, x.c)
		}
		got := pictures(t, copied, "COPY")
		for key, picture := range want {
			if got[key] != picture {
				_, x.about, _ = strings.Cut(key, " ")
				x.fail("round %d: %s is\n%s\nand elsewhere\n%s", round, key, picture, got[key])
			}
			delete(got, key)
		}
		for key, picture := range got {
			_, x.about, _ = strings.Cut(key, " ")
			x.fail("round %d: elsewhere there is %s\n%s", round, key, picture)
		}
	}
	t.Logf("%d effects", effects)
	if effects < logEffects {
		t.Errorf("only %d effects", effects)
	}
}
