// Random commands at limitkv and the real Redis at once: any difference in a reply, an error text or what is kept in
// the end fails, and is printed as the shortest sequence that shows it. Repeat a run with -seed.
package conformance

import (
	"flag"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/conformance/peer"
	"github.com/limitkv/limitkv/conformance/sequence"
)

var (
	commands = flag.Int("commands", 18000, "how many random commands to compare in all")
	seed     = flag.Uint64("seed", 0, "seed of the random commands; 0 chooses one and prints it")
	only     = flag.String("families", "", "families of random commands to run, by name, separated by commas; all if empty")
)

// roundSteps is how many commands run between two comparisons of the whole keyspace.
const roundSteps = 1000

// differencesInRandom is how many differing rounds of a family are shown.
const differencesInRandom = 5

// errorsPerCent is how many replies may be errors before the commands are thought to test nothing.
const errorsPerCent = 40

func TestRandom(t *testing.T) {
	oracle := redis(t)
	tested := peer.LimitKV(t, "--test")
	base := *seed
	if base == 0 {
		base = rand.Uint64()
	}
	t.Logf("seed %d", base)
	var families []*sequence.Family
	for _, f := range sequence.Families {
		if *only == "" || strings.Contains(","+*only+",", ","+f.Name+",") {
			families = append(families, f)
		}
	}
	run := len(families)
	if !*withPending {
		run = max(1, run-len(pending))
	}
	rounds := (*commands/run + roundSteps - 1) / roundSteps
	total := 0
	for i, f := range families {
		t.Run(f.Name, func(t *testing.T) {
			if slices.Contains(pending, f.Name) && !*withPending {
				t.Skip("its differences are known and rare")
			}
			p := &sequence.Pair{Oracle: oracle.Dial(t), Tested: tested.Dial(t), Names: map[string]int{}, Prover: tested.Dial(t)}
			different := 0
			for round := range rounds {
				p.Proto, p.Small = 2+round%2, round/2%2 == 1
				steps := f.Round(base+uint64(i*rounds+round), roundSteps)
				d, err := p.Run(steps)
				if err != nil {
					t.Fatalf("%s, seed %d, round %d: %v\n%s", f.Name, base, round, err, tested.Output())
				}
				if d != nil {
					t.Errorf("%s, seed %d, round %d, RESP%d: %v", f.Name, base, round, p.Proto, d)
					if different++; different == differencesInRandom {
						break
					}
				}
			}
			t.Logf("%d commands of %d names compared, %d replies were errors", p.Commands, len(p.Names), p.Errors)
			if p.Errors*100 > p.Commands*errorsPerCent {
				t.Errorf("%d of %d replies were errors", p.Errors, p.Commands)
			}
			total += p.Commands
		})
	}
	t.Logf("%d commands compared", total)
	if !t.Failed() && total < *commands && *only == "" {
		t.Errorf("%d commands were to be compared", *commands)
	}
}
