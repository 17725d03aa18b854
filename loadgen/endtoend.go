package main

// End to end: real libraries at work on limitkv and Redis, alternating. The time is that of the library's program, and mostly
// its own; the processor time is the server's.

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// span is the time of a phase or of a whole run.
type span struct{ Seconds, CPU float64 }

// labour is the end-to-end result of a library, or the reason why there is none.
type labour struct {
	library library
	phases  []string // in order, then the whole run
	// median is by phase, by server.
	median [][]span
	failed string
}

// whole is the name of all phases together.
const whole = "in all"

// measureEndToEnd lets the libraries work on limitkv and Redis.
func (m *matrix) measureEndToEnd() error {
	if m.versions == nil {
		if err := m.with(func([]*target) error { return nil }); err != nil {
			return err
		}
	}
	rounds := m.rounds
	if m.quick {
		rounds = 1
	}
	for _, l := range libraries {
		if l.count == 0 || m.onlyLibraries != "" && !slices.Contains(strings.Split(m.onlyLibraries, ","), l.name) {
			continue
		}
		work, err := m.labour(l, rounds)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", l.name, err)
			work = labour{library: l, failed: err.Error()}
		}
		m.labours = append(m.labours, work)
	}
	return nil
}

// labour measures one library. Each run has new servers, so that it does not see keys of another run.
func (m *matrix) labour(l library, rounds int) (labour, error) {
	work := labour{library: l}
	var runs [][]map[string]span // by round, by server
	for round := range rounds {
		run := make([]map[string]span, 2)
		for i := range run {
			i = (i + round) % len(run)
			var err error
			var phases []string
			if run[i], phases, err = m.work(m.programs[i], l); err != nil {
				return work, err
			}
			work.phases = phases
			fmt.Fprintf(os.Stderr, "%s on %s: %.2f s, %.2f s of processor\n", l.name, m.programs[i].name, run[i][whole].Seconds, run[i][whole].CPU)
		}
		runs = append(runs, run)
	}
	for _, phase := range work.phases {
		var row []span
		for server := range runs[0] {
			var spans []span
			for _, run := range runs {
				spans = append(spans, run[server][phase])
			}
			row = append(row, middles(spans))
		}
		work.median = append(work.median, row)
	}
	return work, nil
}

// work starts a server and lets a library work on it.
func (m *matrix) work(p program, l library) (map[string]span, []string, error) {
	s, err := p.start()
	if err != nil {
		return nil, nil, err
	}
	defer s.stop()
	spans := map[string]span{}
	var phases []string
	var began time.Time
	var cpu, all = 0.0, span{}
	err = l.drive(m.clients, s.addr, l.count, l.workers, func(event, phase string, _ uint64) {
		if event == "begin" {
			began, cpu = time.Now(), processSeconds(s.pid)
			return
		}
		x := span{time.Since(began).Seconds(), processSeconds(s.pid) - cpu}
		spans[phase] = x
		phases = append(phases, phase)
		all.Seconds, all.CPU = all.Seconds+x.Seconds, all.CPU+x.CPU
	})
	spans[whole] = all
	return spans, append(phases, whole), err
}

// processSeconds returns the processor time of a process, including threads that have ended.
func processSeconds(pid int) float64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, after, _ := strings.Cut(string(text), ") ")
	f := strings.Fields(after)
	if len(f) < 13 {
		return 0
	}
	user, _ := strconv.ParseFloat(f[11], 64)
	system, _ := strconv.ParseFloat(f[12], 64)
	const ticks = 100 // per second, on every Linux
	return (user + system) / ticks
}

// endToEnd writes the table of end-to-end results.
func (m *matrix) endToEnd(b *strings.Builder) {
	fmt.Fprint(b, "\n## Libraries from end to end\n\nReal libraries at work: seconds, and seconds of the server's processor. Most of the time is the library's own. The ratio is\n"+
		"Redis's time to limitkv's, so above 1 limitkv is faster; the processor's is limitkv's to Redis's.\n\n"+
		"| library | operations | at once | phase | limitkv | redis | ratio | at least | CPU s | CPU ratio |\n| --- | ---: | ---: | --- | ---: | ---: | ---: | ---: | --- | ---: |\n")
	for _, w := range m.labours {
		l := w.library
		head := fmt.Sprintf("| %s | %s | %d |", l.name, thousands(float64(l.count)), l.workers)
		if w.failed != "" {
			fmt.Fprintf(b, "%s not measured: %s | | | | | | |\n", head, strings.ReplaceAll(w.failed, "|", " "))
			continue
		}
		for i, phase := range w.phases {
			ours, theirs := w.median[i][0], w.median[i][1]
			ratio := theirs.Seconds / ours.Seconds
			text, atLeast := fmt.Sprintf("%.2f", ratio), ""
			if phase == whole {
				text, atLeast = verdict(ratio, ratio >= l.atLeast), fmt.Sprintf("%.1f", l.atLeast)
			}
			fmt.Fprintf(b, "%s %s | %.2f | %.2f | %s | %s | %.2f / %.2f | %.2f |\n", head, phase, ours.Seconds, theirs.Seconds, text, atLeast,
				ours.CPU, theirs.CPU, ours.CPU/theirs.CPU)
		}
	}
}
