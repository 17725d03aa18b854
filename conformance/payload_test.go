// The bytes of DUMP: what one server dumped the other restores and dumps again, which must give the same bytes wherever the
// order of elements is not the server's own. Streams must come with all that their groups know.
package conformance

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/conformance/peer"
)

// dumpedKeys is how many random keys are carried over.
const dumpedKeys = 150

func TestPayloadBytes(t *testing.T) {
	oracle := redis(t).Dial(t)
	tested := peer.LimitKV(t).Dial(t)
	base := *seed
	if base == 0 {
		base = rand.Uint64()
	}
	t.Logf("seed %d", base)
	rng := rand.New(rand.NewPCG(base, 0))
	for i := range dumpedKeys {
		for _, args := range randomKey(rng, fmt.Sprintf("key%d", i)) {
			if v := oracle.Must(t, args...); strings.HasPrefix(v.String(), "-") {
				t.Fatalf("%.100q: %v", args, v)
			}
		}
	}
	kinds := map[string]int{}
	carry(t, oracle, tested, kinds)
	sameKeys(t, oracle, tested)
	oracle.Must(t, "FLUSHALL")
	carry(t, tested, oracle, kinds)
	sameKeys(t, oracle, tested)
	if len(kinds) < 11 {
		t.Errorf("too few types and encodings were carried: %v", kinds)
	}
}

// carry copies every key of one server to another. The first restores it too: RPUSH looks at the bytes of the
// elements, RESTORE at those of the listpack, so that a list close to the limit may be another one afterwards.
func carry(t *testing.T, from, to *peer.Conn, kinds map[string]int) {
	t.Helper()
	for _, k := range from.Must(t, "KEYS", "*").Items {
		key := k.Text
		encoding := from.Must(t, "OBJECT", "ENCODING", key).Text
		payload := from.Must(t, "DUMP", key).Text
		ttl := from.Must(t, "PEXPIRETIME", key).Text
		if ttl == "-1" {
			ttl = "0"
		}
		if got := to.Must(t, "RESTORE", key, ttl, payload, "ABSTTL").String(); got != "+OK" {
			t.Fatalf("%s, %s of %d bytes: %s\n%.200q", key, encoding, len(payload), got, payload)
		}
		if got := from.Must(t, "RESTORE", key, ttl, payload, "ABSTTL", "REPLACE").String(); got != "+OK" {
			t.Fatalf("%s, %s of %d bytes, where it was dumped: %s", key, encoding, len(payload), got)
		}
		again := to.Must(t, "DUMP", key).Text
		if len(again) != len(payload) || again != payload && encoding != "hashtable" && encoding != "listpackex" {
			t.Errorf("%s, %s: %.300q\nbecame %.300q", key, encoding, payload, again)
		}
		kinds[from.Must(t, "TYPE", key).Text+" "+encoding]++
	}
}

func sameKeys(t *testing.T, oracle, tested *peer.Conn) {
	t.Helper()
	what, want, got, err := peer.CompareKeyspaces(oracle, tested)
	if err != nil {
		t.Fatal(err)
	}
	if what != "" {
		t.Errorf("%s\nwant %.500s\ngot  %.500s", what, want, got)
	}
	for _, k := range oracle.Must(t, "KEYS", "*").Items {
		if oracle.Must(t, "TYPE", k.Text).Text != "stream" {
			continue
		}
		for _, args := range [][]string{{"XINFO", "STREAM", k.Text}, {"XINFO", "GROUPS", k.Text}, {"XPENDING", k.Text, "g", "-", "+", "1000"}} {
			if want, got := number(oracle.Must(t, args...)), number(tested.Must(t, args...)); want != got {
				t.Errorf("%q\nwant %.500s\ngot  %.500s", args, want, got)
			}
		}
	}
}

// number leaves out what depends on the server's own memory, or on when it is asked.
func number(v peer.Value) string {
	for i := 0; i+1 < len(v.Items); i++ {
		if name := v.Items[i].Text; name == "radix-tree-nodes" {
			v.Items[i+1] = peer.Value{}
		}
		if len(v.Items[i].Items) == 4 && len(v.Items[i].Items[2].Text) > 0 { // of XPENDING: how long ago
			v.Items[i].Items[2] = peer.Value{}
		}
	}
	if n := len(v.Items); n > 0 && len(v.Items[n-1].Items) == 4 {
		v.Items[n-1].Items[2] = peer.Value{}
	}
	return v.String()
}

// randomKey are commands that make a key of any type and size.
func randomKey(rng *rand.Rand, key string) [][]string {
	n := 1 + rng.IntN(1+rng.IntN(400))
	small := rng.IntN(2) == 0 // words as the packed forms take them
	if small {
		n = 1 + rng.IntN(60)
	}
	word := func() string {
		if small {
			return strconv.FormatUint(rng.Uint64()>>rng.IntN(64), 10+rng.IntN(26))
		}
		switch rng.IntN(6) {
		case 0, 1:
			return strconv.FormatInt(rng.Int64()>>rng.IntN(64), 10)
		case 2:
			return strings.Repeat("limit ", rng.IntN(30))
		case 3:
			return strings.Repeat(strconv.Itoa(rng.IntN(1e6)), rng.IntN(1+rng.IntN(200)))
		}
		b := make([]byte, rng.IntN(60))
		for i := range b {
			b[i] = byte(rng.IntN(1 + rng.IntN(256)))
		}
		return string(b)
	}
	var out [][]string
	add := func(args ...string) { out = append(out, args) }
	switch rng.IntN(7) {
	case 0:
		add("SET", key, strings.Repeat(word(), 1+rng.IntN(20)))
	case 1:
		args := []string{"RPUSH", key}
		for range n {
			args = append(args, word())
			if rng.IntN(200) == 0 {
				args = append(args, strings.Repeat("large ", 2000))
			}
		}
		add(args...)
	case 2:
		args := []string{"SADD", key}
		ints := rng.IntN(2) == 0
		for range n {
			if ints {
				args = append(args, strconv.FormatInt(rng.Int64()>>rng.IntN(64), 10))
			} else {
				args = append(args, word())
			}
		}
		add(args...)
	case 3:
		args := []string{"ZADD", key}
		for range n {
			args = append(args, strconv.FormatFloat(rng.NormFloat64()*float64(rng.IntN(1e6)), 'g', 1+rng.IntN(17), 64), word())
		}
		add(args...)
	case 4, 5:
		args := []string{"HSET", key}
		for i := range n {
			args = append(args, fmt.Sprint("f", i), word())
		}
		add(args...)
		for i := range n {
			if rng.IntN(3) == 0 && n%2 == 0 {
				add("HPEXPIREAT", key, strconv.FormatInt(4e12+rng.Int64N(1e12), 10), "FIELDS", "1", fmt.Sprint("f", i))
			}
		}
	case 6:
		for i := range n {
			add("XADD", key, fmt.Sprintf("%d-%d", i+1, rng.IntN(9)), "a", word(), "b", word())
		}
		for range rng.IntN(n) {
			add("XDEL", key, fmt.Sprintf("%d-%d", 1+rng.IntN(n), rng.IntN(9)))
		}
		add("XGROUP", "CREATE", key, "g", "0")
		add("XREADGROUP", "GROUP", "g", "one", "COUNT", "10", "STREAMS", key, ">")
		add("XREADGROUP", "GROUP", "g", "two", "COUNT", "3", "STREAMS", key, ">")
		add("XGROUP", "CREATECONSUMER", key, "g", "idle")
		add("XGROUP", "CREATE", key, "other", "$", "ENTRIESREAD", "2")
	}
	if rng.IntN(3) == 0 {
		add("PEXPIREAT", key, strconv.FormatInt(4e12+rng.Int64N(1e12), 10))
	}
	return out
}
