// Running rounds on two servers: commands go out in batches to both at once, replies are compared one by one, and at
// the end of a round everything that the keyspace holds. A round that differs is shrunk to the few commands that show
// it.

package sequence

import (
	"fmt"
	"strings"

	"github.com/limitkv/limitkv/conformance/peer"
)

// batchMax is how many commands are in flight at once.
const batchMax = 200

// shrinkTries bounds how often a failing round is replayed while it is shrunk.
const shrinkTries = 400

// Pair is a connection to each of two servers: the one that is right, and the one that is tested.
type Pair struct {
	Oracle, Tested *peer.Conn
	Proto          int  // 2 or 3
	Small          bool // with small limits of the packed encodings, so that the large ones are reached

	Commands int            // commands compared
	Errors   int            // of those, how many replied an error on both
	Names    map[string]int // commands compared by name
	// Prover, if not nil, is another connection to the tested server, which runs with --test: after each round it proves
	// that the effects it logged are enough.
	Prover *peer.Conn
}

// Difference is what a round found: the step where the servers differ and what they said, or a key that they keep
// differently (Step is then nil).
type Difference struct {
	Steps     []Step
	What      string
	Want, Got string
	keyspace  bool
}

func (d *Difference) String() string {
	var b strings.Builder
	for _, s := range d.Steps {
		b.WriteString("    ")
		for i, a := range s.Args {
			if i > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(peer.Quote(a))
		}
		b.WriteByte('\n')
	}
	return fmt.Sprintf("%s\n  want %s\n  got  %s\n  after\n%s", d.What, d.Want, d.Got, b.String())
}

// both sends steps to the two servers and hands over each pair of replies. It stops where each says so.
func (p *Pair) both(steps []Step, each func(i int, want, got peer.Value) bool) error {
	for from := 0; from < len(steps); from += batchMax {
		batch := steps[from:min(from+batchMax, len(steps))]
		var out []byte
		for _, s := range batch {
			out = peer.AppendCommand(out, s.Args...)
		}
		if err := p.Oracle.SendRaw(out); err != nil {
			return fmt.Errorf("oracle: %w", err)
		}
		if err := p.Tested.SendRaw(out); err != nil {
			return fmt.Errorf("tested: %w", err)
		}
		stop := false
		for i := range batch {
			want, err := p.Oracle.Receive()
			if err != nil {
				return fmt.Errorf("oracle: %v: %w", batch[i].Args, err)
			}
			got, err := p.Tested.Receive()
			if err != nil {
				return fmt.Errorf("tested: %v: %w", batch[i].Args, err)
			}
			stop = stop || !each(from+i, want, got)
		}
		if stop {
			return nil
		}
	}
	return nil
}

// limits are the limits of the packed encodings: their defaults, and small ones.
var limits = map[bool][]string{
	false: {"hash-max-listpack-entries", "128", "zset-max-listpack-entries", "128", "set-max-listpack-entries", "128", "set-max-intset-entries", "512", "list-max-listpack-size", "-2"},
	true:  {"hash-max-listpack-entries", "3", "zset-max-listpack-entries", "3", "set-max-listpack-entries", "3", "set-max-intset-entries", "2", "list-max-listpack-size", "3"},
}

// reset empties both servers and puts both connections into the same state.
func (p *Pair) reset() error {
	steps := []Step{{Args: []string{"RESET"}}, {Args: []string{"SELECT", "0"}}, {Args: []string{"FLUSHALL"}}, {Args: []string{"HELLO", fmt.Sprint(p.Proto)}},
		{Args: append([]string{"CONFIG", "SET"}, limits[p.Small]...)}}
	var failed error
	err := p.both(steps, func(i int, want, got peer.Value) bool {
		if want.IsError() || got.IsError() {
			failed = fmt.Errorf("%v: %v, %v", steps[i].Args, want, got)
		}
		return failed == nil
	})
	if err != nil {
		return err
	}
	if p.Prover != nil && failed == nil {
		v, err := p.Prover.Do("LKV.JOURNAL", "START")
		if err == nil && v.IsError() {
			err = fmt.Errorf("LKV.JOURNAL START: %v", v)
		}
		return err
	}
	return failed
}

// Run runs one round and returns the first difference, nil where there is none.
func (p *Pair) Run(steps []Step) (*Difference, error) {
	d, err := p.try(steps, true)
	if d == nil || err != nil {
		return d, err
	}
	return p.shrink(d)
}

// try runs the steps on empty servers. count says whether they count as compared.
func (p *Pair) try(steps []Step, count bool) (*Difference, error) {
	if err := p.reset(); err != nil {
		return nil, err
	}
	var diff *Difference
	guard := ""
	err := p.both(steps, func(i int, want, got peer.Value) bool {
		if diff != nil {
			return false
		}
		if count {
			p.Commands++
			p.Names[strings.ToUpper(steps[i].Args[0])]++
			if want.IsError() {
				p.Errors++
			}
		}
		if !same(steps[i], guard, want, got) {
			diff = &Difference{Steps: steps[:i+1], What: "replies differ", Want: want.String(), Got: got.String()}
			return false
		}
		guard = ""
		if steps[i].Guard {
			guard = want.Text
		}
		return true
	})
	if err != nil || diff != nil {
		return diff, err
	}
	return p.keyspace(steps)
}

// shrink drops steps as long as a difference remains.
func (p *Pair) shrink(d *Difference) (*Difference, error) {
	tries := 0
	for size := len(d.Steps) / 2; size >= 1; size /= 2 {
		for from := 0; from+size <= len(d.Steps) && tries < shrinkTries; {
			tries++
			fewer := append(append([]Step(nil), d.Steps[:from]...), d.Steps[from+size:]...)
			smaller, err := p.try(fewer, false)
			if err != nil {
				return d, err
			}
			if smaller != nil && smaller.keyspace == d.keyspace {
				d = smaller
				continue
			}
			from += size
		}
	}
	return d, nil
}

// databases is how many of the databases a round may write to.
const databases = 3

// keyspace compares everything that the two servers hold.
func (p *Pair) keyspace(after []Step) (*Difference, error) {
	if p.Prover != nil {
		if v, err := p.Prover.Do("LKV.JOURNAL", "CHECK"); err != nil {
			return nil, err
		} else if v.IsError() {
			return &Difference{Steps: after, What: "the effects do not make the same keys", Got: v.String(), keyspace: true}, nil
		}
	}
	for db := range databases {
		if _, err := p.Oracle.Do("SELECT", fmt.Sprint(db)); err != nil {
			return nil, err
		}
		if _, err := p.Tested.Do("SELECT", fmt.Sprint(db)); err != nil {
			return nil, err
		}
		what, want, got, err := peer.CompareKeyspaces(p.Oracle, p.Tested)
		if err != nil {
			return nil, err
		}
		if what != "" {
			return &Difference{Steps: after, What: fmt.Sprintf("in database %d %s", db, what), Want: want, Got: got, keyspace: true}, nil
		}
	}
	return nil, nil
}
