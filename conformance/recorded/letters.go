// The effects of a conversation letter for letter: what Redis sent to a replica, kept beside the conversation, and
// compared with what limitkv's journal holds. The file has a paragraph for each step that had effects: the step as the
// conversation has it, with "(2) " before it where it is the second one that reads so, and below it the effects.
//
//	SET k v EX 10
//	    0: SET k v PXAT now+10000
//
// Nothing expires by itself meanwhile, except where the conversation lets it. The number is the database. A time near that of the step is written as its distance from it in milliseconds, as is the
// time in the id of an entry. An argument that is long is written as its length and its SHA-1.

package recorded

import (
	"crypto/sha1"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
)

// Taker returns the effects since it was called last, SELECT, MULTI and EXEC included.
type Taker func(admin *peer.Conn) ([][]string, error)

// Letters are the effects of one run, or those of a file.
type Letters struct {
	Steps []Step
	Blind bool // the conversation ended the connection that asked for the effects
}

// Step is one step with its effects.
type Step struct {
	Name    string // the text of the step, numbered where there are several
	Line    int
	Effects []string
}

// JournalTaker begins to read limitkv's journal.
func JournalTaker(admin *peer.Conn) (Taker, error) {
	v, err := admin.Do("LKV.JOURNAL", "START")
	if err != nil || v.IsError() {
		return nil, fmt.Errorf("LKV.JOURNAL START: %v %v", v, err)
	}
	return func(admin *peer.Conn) (effects [][]string, err error) {
		v, err := admin.Do("LKV.JOURNAL", "TAKE")
		if err == nil && v.IsError() {
			err = fmt.Errorf("LKV.JOURNAL TAKE: %v", v)
		}
		for _, item := range v.Items {
			if words := peer.Words(item); words[0] != "PING" && words[0] != "REPLCONF" { // as of Redis's stream
				effects = append(effects, words)
			}
		}
		return effects, err
	}, nil
}

// Letters runs the file, whatever its replies are, and writes down the effects of each step.
func (f *File) Letters(addr string, begin func(admin *peer.Conn) (Taker, error)) (*Letters, error) {
	found := &Letters{}
	var take Taker
	seen := map[string]int{}
	n := normal{db: "0"} // FLUSHALL came before
	start := func(admin *peer.Conn) (err error) {
		// What expires goes when it is looked at, not a moment earlier or later.
		if v, err := admin.Do("DEBUG", "SET-ACTIVE-EXPIRE", "0"); err != nil || v.IsError() {
			return fmt.Errorf("DEBUG SET-ACTIVE-EXPIRE: %v %v", v, err)
		}
		take, err = begin(admin)
		n.now = time.Now()
		return err
	}
	after := func(admin *peer.Conn, s *step, text string) error {
		if s.verb == "sleep" {
			n.now = time.Now()
			return nil // What happens meanwhile may be a moment late.
		}
		effects, err := take(admin)
		if blind(err) {
			found.Blind = true
			return errBlind
		}
		if err != nil {
			return err
		}
		name := text
		if seen[text]++; seen[text] > 1 {
			name = fmt.Sprintf("(%d) %s", seen[text], text)
		}
		n.text = text
		lines := n.lines(effects)
		n.now = time.Now()
		if len(lines) > 0 {
			found.Steps = append(found.Steps, Step{Name: name, Line: s.number, Effects: lines})
		}
		return nil
	}
	err := f.runWith(addr, f.Protocols[:1], start, after, func(*step, int, string, peer.Value) error { return nil })
	if errors.Is(err, errBlind) {
		err = nil
	}
	return found, err
}

// normal brings effects into the form in which they are compared.
type normal struct {
	now  time.Time // when the step began
	text string
	db   string
}

// argumentMax is the length up to which an argument is written as it is.
const argumentMax = 160

// nearMillis: what is so near to now, and no number of the step, is a time that was computed. Deadlines may be further away.
const nearMillis = 10 * 366 * 24 * 3600 * 1000

// clocked matches a time in milliseconds, or the id of an entry that begins with one.
var clocked = regexp.MustCompile(`^(\d{13,19})(-\d+)?$`)

func (n *normal) lines(effects [][]string) (lines []string) {
	for _, args := range effects {
		switch strings.ToUpper(args[0]) {
		case "SELECT":
			n.db = args[1]
			continue
		case "MULTI", "EXEC":
			lines = append(lines, args[0])
			continue
		}
		words := make([]string, len(args))
		for i, a := range args {
			words[i] = n.word(a, strings.HasSuffix(args[0], "EXPIREAT") || i > 0 && args[i-1] == "PXAT")
		}
		lines = append(lines, n.db+": "+strings.Join(words, " "))
	}
	return lines
}

func (n *normal) word(a string, deadline bool) string {
	if len(a) > argumentMax {
		return fmt.Sprintf("%d:%x", len(a), sha1.Sum([]byte(a)))
	}
	if m := clocked.FindStringSubmatch(a); m != nil && !strings.Contains(n.text, m[1]) && !strings.Contains(n.text, strings.TrimSuffix(m[1], "000")) {
		if d := number(m[1]) - int(n.now.UnixMilli()); deadline || max(d, -d) < nearMillis {
			return fmt.Sprintf("now%+d%s", d, m[2])
		}
	}
	return peer.Quote(a)
}

// Bytes is the text of the file.
func (l *Letters) Bytes() []byte {
	var b strings.Builder
	for _, s := range l.Steps {
		b.WriteString(s.Name + "\n")
		for _, e := range s.Effects {
			b.WriteString("    " + e + "\n")
		}
	}
	return []byte(b.String())
}

// LoadLetters reads a file. Where there is none, there are no effects.
func LoadLetters(path string) (*Letters, error) {
	b, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	l := &Letters{}
	for i, text := range strings.Split(string(b), "\n") {
		switch {
		case text == "":
		case strings.HasPrefix(text, "    ") && len(l.Steps) > 0:
			last := &l.Steps[len(l.Steps)-1]
			last.Effects = append(last.Effects, text[4:])
		default:
			l.Steps = append(l.Steps, Step{Name: text, Line: i + 1})
		}
	}
	return l, nil
}

// timeTolerance is by how many milliseconds two times may differ.
const timeTolerance = 3000

// offset matches a time as it is written.
var offset = regexp.MustCompile(`^now([+-]\d+)(-\d+)?$`)

// SameEffects says whether the effects of a step count as the same.
func SameEffects(name string, want, got []string) bool {
	if len(want) != len(got) {
		return false
	}
	// Redis picks at random what it evicts, and who is popped.
	random := strings.Contains(strings.ToUpper(name), "SPOP")
	if strings.Contains(name, "maxmemory") {
		want, got = slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(got))
	}
	auto := strings.Contains(name, "*")
	for i := range want {
		if want[i] != got[i] && !sameEffect(want[i], got[i], random, auto) {
			return false
		}
	}
	return true
}

// sameEffect compares one effect. random: members of a set are any. auto: an entry may be the first or a later one of its
// millisecond.
func sameEffect(want, got string, random, auto bool) bool {
	a, errA := Split(want)
	b, errB := Split(got)
	if errA != nil || errB != nil || len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] == b[i] || random && i > 2 && a[1] == "SREM" {
			continue
		}
		x, y := offset.FindStringSubmatch(a[i]), offset.FindStringSubmatch(b[i])
		if x == nil || y == nil || x[2] != y[2] && !auto {
			return false
		}
		if p, q := number(x[1]), number(y[1]); max(p-q, q-p) > timeTolerance {
			return false
		}
	}
	return true
}

func number(s string) int {
	n, _ := strconv.Atoi(s) // 0 where it is none
	return n
}

// Exception is where other effects are meant: those that match are left out on both sides, and with them the frame.
type Exception struct {
	File   string // of the path without its ending; like Step and Effect a regular expression
	Step   string
	Effect string
	Reason string
	Met    atomic.Int64
}

// without leaves out what an exception is for.
func (x *Exception) without(path, step string, effects []string) []string {
	matches := func(pattern, s string) bool { return regexp.MustCompile(pattern).MatchString(s) }
	if !matches(x.File, strings.TrimSuffix(path, ".effects")) || !matches(x.Step, step) || !slices.ContainsFunc(effects, func(e string) bool { return matches(x.Effect, e) }) {
		return effects
	}
	x.Met.Add(1)
	return slices.DeleteFunc(slices.Clone(effects), func(e string) bool { return matches(x.Effect, e) })
}

// sameBut is SameEffects but for exceptions, which are asked only where there is a difference.
func sameBut(path, step string, want, got []string, exceptions []*Exception) bool {
	if SameEffects(step, want, got) {
		return true
	}
	for _, x := range exceptions {
		a, b := x.without(path, step, want), x.without(path, step, got)
		if len(a) != len(want) || len(b) != len(got) {
			want, got = unframed(a), unframed(b)
		}
	}
	return SameEffects(step, want, got)
}

func unframed(effects []string) []string {
	return slices.DeleteFunc(slices.Clone(effects), func(e string) bool { return e == "MULTI" || e == "EXEC" })
}

// Compare returns how many steps have the same effects, and those that have others.
func (l *Letters) Compare(path string, got *Letters, exceptions []*Exception) (same int, diffs []Difference) {
	want := map[string]Step{}
	for _, s := range l.Steps {
		want[s.Name] = s
	}
	differ := func(s Step, w, g []string) {
		diffs = append(diffs, Difference{Where: fmt.Sprintf("%s:%d", path, s.Line), Command: s.Name,
			Want: strings.Join(w, "\n"), Got: strings.Join(g, "\n")})
	}
	for _, s := range got.Steps {
		w := want[s.Name]
		delete(want, s.Name)
		if sameBut(path, s.Name, w.Effects, s.Effects, exceptions) {
			same++
		} else {
			differ(s, w.Effects, s.Effects)
		}
	}
	for _, s := range l.Steps {
		if w, left := want[s.Name]; left && !sameBut(path, s.Name, w.Effects, nil, exceptions) {
			differ(w, w.Effects, nil)
		}
	}
	return same, diffs
}

// Keep takes over what was found, but keeps the text of steps whose effects are still the same.
func (l *Letters) Keep(found *Letters) {
	old := map[string][]string{}
	for _, s := range l.Steps {
		old[s.Name] = s.Effects
	}
	for i := range found.Steps {
		s := &found.Steps[i]
		if effects, ok := old[s.Name]; ok && SameEffects(s.Name, effects, s.Effects) {
			s.Effects = effects
		}
	}
	l.Steps = found.Steps
}
