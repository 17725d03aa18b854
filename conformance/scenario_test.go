// Scenarios: a script called again and again as its users call it, over everything that happens to it – a limiter that
// fills, refuses and recovers, a queue with early and due members, a lock that is stolen and runs out. Each scenario
// runs on limitkv and the real Redis, by EVAL, by SCRIPT LOAD and EVALSHA, and inside MULTI; replies and the keys left
// behind must be the same.
package conformance

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
)

// call is one step of a scenario: a script with its keys and arguments, or a command, or a pause.
type call struct {
	script string
	keys   []string
	args   []string
	sleep  time.Duration
	rule   peer.Rule
}

func script(name string, keys []string, args ...any) call {
	return call{script: name, keys: keys, args: texts(args)}
}

func command(args ...any) call { return call{args: texts(args)} }

func pause(d time.Duration) call { return call{sleep: d} }

// nearly lets numbers of the reply differ: seconds or milliseconds that are left.
func (c call) nearly(n float64) call {
	c.rule = peer.Rule{Near: n}
	return c
}

func texts(args []any) []string {
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = fmt.Sprint(a)
	}
	return out
}

func keys(k ...string) []string { return k }

// scenario is a named story. Its steps may be random: it gets the run's source.
type scenario struct {
	name  string
	steps func(r *rand.Rand) []call
}

// scriptFolder reads scripts by name.
type scriptFolder struct {
	dir   string
	texts map[string]string
}

func (f *scriptFolder) text(t *testing.T, name string) string {
	t.Helper()
	if s, ok := f.texts[name]; ok {
		return s
	}
	b, err := os.ReadFile(filepath.Join(f.dir, name+".lua"))
	if err != nil {
		t.Fatal(err)
	}
	f.texts[name] = string(b)
	return string(b)
}

// manner is a way to call a script: what is sent for it. The last command's reply is compared like the others.
type manner struct {
	name string
	send func(text string, call call) [][]string
	// whole puts the entire scenario into one transaction. Scenarios that pause are not run so.
	whole bool
}

func sha(text string) string {
	sum := sha1.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}

func evalArgs(command, script string, c call) []string {
	return append(append([]string{command, script, fmt.Sprint(len(c.keys))}, c.keys...), c.args...)
}

var manners = []manner{
	{name: "EVAL", send: func(text string, c call) [][]string {
		return [][]string{evalArgs("EVAL", text, c)}
	}},
	{name: "EVALSHA", send: func(text string, c call) [][]string {
		return [][]string{{"SCRIPT", "LOAD", text}, evalArgs("EVALSHA", sha(text), c)}
	}},
	{name: "MULTI", send: func(text string, c call) [][]string {
		return [][]string{{"SCRIPT", "LOAD", text}, {"MULTI"}, evalArgs("EVALSHA", sha(text), c), evalArgs("EVAL", text, c), {"EXEC"}}
	}},
	{name: "one MULTI", whole: true, send: func(text string, c call) [][]string {
		return [][]string{evalArgs("EVAL", text, c)}
	}},
}

// tell runs a scenario in a manner on both servers and says how many replies were compared.
func tell(t *testing.T, oracle, tested *peer.Server, folder *scriptFolder, s scenario, m manner, seed uint64, proto int) int {
	t.Helper()
	a, b := oracle.Dial(t), tested.Dial(t)
	compared := 0
	both := func(rule peer.Rule, args ...string) {
		t.Helper()
		want, err := a.Do(args...)
		if err != nil {
			t.Fatalf("redis: %v", err)
		}
		got, err := b.Do(args...)
		if err != nil {
			t.Fatalf("limitkv: %v\n%s", err, tested.Output())
		}
		compared++
		if !rule.Match(want, got) {
			t.Errorf("seed %d, step %d: %s\n  want %v\n  got  %v", seed, compared, brief(args), want, got)
		}
	}
	both(peer.Rule{}, "FLUSHALL")
	both(peer.Rule{}, "SCRIPT", "FLUSH")
	both(peer.Rule{Any: true}, "HELLO", fmt.Sprint(proto))
	steps := s.steps(rand.New(rand.NewPCG(seed, 2)))
	if m.whole {
		for _, c := range steps {
			if c.sleep > 0 {
				return 0
			}
		}
		both(peer.Rule{}, "MULTI")
	}
	for _, c := range steps {
		switch {
		case c.sleep > 0:
			time.Sleep(c.sleep)
		case c.script == "":
			both(c.rule, c.args...)
		default:
			for _, args := range m.send(folder.text(t, c.script), c) {
				both(c.rule, args...)
			}
		}
		if t.Failed() {
			return compared
		}
	}
	if m.whole {
		both(peer.Rule{Near: 1000}, "EXEC")
	}
	what, want, got, err := peer.CompareKeyspaces(a, b)
	if err != nil {
		t.Fatal(err)
	}
	if what != "" {
		t.Errorf("seed %d: at the end %s\n  want %s\n  got  %s", seed, what, want, got)
	}
	return compared
}

// brief is a command in one line, a script by its first words.
func brief(args []string) string {
	var b strings.Builder
	for _, a := range args {
		if len(a) > 60 {
			a = a[:60] + "..."
		}
		b.WriteString(peer.Quote(a) + " ")
	}
	return b.String()
}

// tellAll runs scenarios in all manners and both protocols.
func tellAll(t *testing.T, folder *scriptFolder, scenarios []scenario) {
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	t.Logf("seed %d", *seed)
	oracle, tested := redis(t), peer.LimitKV(t)
	compared := 0
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			for i, m := range manners {
				t.Run(m.name, func(t *testing.T) {
					compared += tell(t, oracle, tested, folder, s, m, *seed, 2+i%2)
				})
			}
		})
	}
	t.Logf("%d replies compared", compared)
	if compared < 4*len(scenarios) {
		t.Error("too little was compared")
	}
}
