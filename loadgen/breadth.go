package main

// The breadth run compares limitkv and Redis in every command that both have. It makes requests from the syntax in COMMAND
// DOCS, so it includes a new command at once. For each command it compares the processor time of a request on both servers,
// with values of several sizes. `make bench-compare OF=breadth` writes docs/BREADTH.md.
//
// All requests are first tried on both servers. Those to which both give the same reply, and no error, are repeated in rounds
// in which the servers alternate. Before each round of a command that writes, the keys are made again.

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"
)

const (
	breadthKeys   = 16  // of each type
	breadthForms  = 24  // of each command
	breadthTries  = 600 // until there are breadthForms
	breadthBatch  = 16  // requests sent at once
	breadthCPU    = 6 * time.Millisecond
	breadthMin    = 32 // requests of a round, at least
	breadthMax    = 4096
	breadthSeed   = 20240229
	breadthAtMost = 1.05 // claimed of every command
	breadthMedian = 0.8  // and of the median
)

// breadth is the state of the run.
type breadth struct {
	servers []*breadthServer // limitkv, Redis
	rounds  int
	passes  int
	rows    []breadthRow
	without []string // commands for which no form was found
	skipped []string
	// conditions is the document's text about the conditions of the measurement.
	conditions string
}

type breadthServer struct {
	*instance
	*wire
}

// breadthRow is the result for a command on values of one size.
type breadthRow struct {
	name   string
	size   int
	forms  int
	micros [2]float64 // limitkv's, Redis's
}

func (r *breadthRow) ratio() float64 { return r.micros[0] / r.micros[1] }

func runBreadth(args []string) error {
	b := &breadth{}
	flags := flag.NewFlagSet("limitkv-benchmark breadth", flag.ExitOnError)
	limitkv := flags.String("limitkv", "bin/limitkv", "limitkv's binary")
	redis := flags.String("redis", binary("REDIS", "redis"), "Redis's binary; by default redis-server in PATH")
	out := flags.String("out", "", "file to write, empty for none")
	only := flags.String("only", "", "commands to measure, separated by commas (config|get for a subcommand); by default all")
	sizes := flags.String("sizes", "10,1000", "elements of the values, separated by commas")
	flags.IntVar(&b.passes, "passes", 1, "how often all is measured, minutes apart; of each server the best counts")
	flags.StringVar(&b.conditions, "conditions", "", "a sentence for the document: what else the machine did")
	flags.IntVar(&b.rounds, "rounds", 7, "rounds of each command; the third best counts")
	if err := flags.Parse(args); err != nil {
		return err
	}
	began := time.Now()
	for range max(b.passes, 1) {
		if err := b.pass(*limitkv, *redis, *sizes, *only); err != nil {
			return err
		}
	}
	text := b.document(time.Since(began))
	if *out == "" {
		fmt.Print("\n", text)
		return nil
	}
	return os.WriteFile(*out, []byte(text), 0o644)
}

// pass measures with new servers, because one process may be a third slower than the next for the same replies of 10 KB, as
// long as it runs.
func (b *breadth) pass(limitkv, redis, sizes, only string) error {
	servers, stop, err := startBoth(limitkv, redis)
	defer stop()
	if err != nil {
		return err
	}
	b.servers = servers
	for text := range strings.SplitSeq(sizes, ",") {
		size := 0
		if _, err := fmt.Sscan(text, &size); err != nil || size < 1 {
			return fmt.Errorf("%q is no size", text)
		}
		if err := b.measure(size, only); err != nil {
			return err
		}
	}
	return nil
}

// startBoth starts limitkv and Redis. stop stops those that were started.
func startBoth(limitkv, redis string) (servers []*breadthServer, stop func(), err error) {
	stop = func() {
		for _, s := range servers {
			s.conn.Close()
			s.stop()
		}
	}
	list, err := programs(limitkv, redis, "none")
	if err != nil {
		return servers, stop, err
	}
	for _, p := range list[:2] {
		s, err := p.start()
		if err != nil {
			return servers, stop, err
		}
		w, err := dial(s.addr, "")
		if err != nil {
			s.stop()
			return servers, stop, err
		}
		servers = append(servers, &breadthServer{s, w})
	}
	return servers, stop, nil
}

// measure measures all commands on values of one size.
func (b *breadth) measure(size int, only string) error {
	for _, s := range b.servers {
		if err := fillBreadth(s.wire, size); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	docs, err := askDocs(b.servers[0].wire)
	if err != nil {
		return err
	}
	b.without, b.skipped = nil, nil
	for _, d := range docs {
		name := strings.Join(d.name, "|")
		if only != "" && !slices.Contains(strings.Split(only, ","), name) {
			continue
		}
		if d.leftOut() {
			b.skipped = append(b.skipped, name)
			continue
		}
		if known, err := b.servers[1].tree("COMMAND", "DOCS", name); err != nil || len(known.items) == 0 {
			continue // only limitkv has it
		}
		forms, err := b.forms(&d, size)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if len(forms) == 0 {
			b.without = append(b.without, name)
			continue
		}
		row := breadthRow{name: name, size: size, forms: len(forms)}
		info, err := b.servers[0].tree("COMMAND", "INFO", name)
		if err != nil {
			return err
		}
		if err := b.race(&row, forms, kindsOf(&d), info.writes()); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		fmt.Fprintf(os.Stderr, "%-24s %5d  %8.2f / %8.2f µs  %.2f\n", name, size, row.micros[0], row.micros[1], row.ratio())
		b.add(row)
	}
	return nil
}

// add adds a row, or improves that of an earlier pass: other load on the machine makes a server slower for seconds, never
// faster.
func (b *breadth) add(row breadthRow) {
	for i := range b.rows {
		if r := &b.rows[i]; r.name == row.name && r.size == row.size {
			for j := range r.micros {
				r.micros[j] = min(r.micros[j], row.micros[j])
			}
			return
		}
	}
	b.rows = append(b.rows, row)
}

// kindsOf returns the kinds of keys that a command's forms use.
func kindsOf(d *documented) []string {
	switch kind := groupKinds[d.group]; kind {
	case "":
	case "str":
		return []string{"str", "int"}
	default:
		return []string{kind}
	}
	return keyKinds
}

// forms returns requests to which both servers give the same reply, preferably those whose replies have content.
func (b *breadth) forms(d *documented, size int) (list [][]string, err error) {
	g := &forms{Rand: rand.New(rand.NewPCG(breadthSeed, uint64(size))), size: size}
	var silent [][]string
	for try := 0; try < breadthTries && len(list) < breadthForms; try++ {
		if try%50 == 0 {
			for _, s := range b.servers {
				if err := renewBreadth(s.wire, kindsOf(d)...); err != nil {
					return nil, fmt.Errorf("%s: %w", s.name, err)
				}
			}
		}
		args := g.command(d)
		var got [2]tree
		for i, s := range b.servers {
			if got[i], err = s.tree(args...); err != nil {
				return nil, fmt.Errorf("%q: %w", args, err)
			}
		}
		switch {
		case got[0].kind == '-' || got[1].kind == '-' || got[0].kind != got[1].kind:
		case got[0].says() && got[1].says():
			list = append(list, args)
		case len(silent) < breadthForms:
			silent = append(silent, args)
		}
	}
	if len(list) == 0 {
		list = silent
	}
	return list, nil
}

// race measures the forms on both servers, alternating.
func (b *breadth) race(row *breadthRow, forms [][]string, kinds []string, writes bool) error {
	var request []byte
	ends := []int{0}
	for _, args := range forms {
		request = appendRequest(request, args)
		ends = append(ends, len(request))
	}
	// send sends n requests and returns the server's processor time for them.
	send := func(s *breadthServer, n int) (time.Duration, error) {
		if writes {
			if err := renewBreadth(s.wire, kinds...); err != nil {
				return 0, err
			}
		}
		before := processorNanos(s.pid)
		// The next batch is sent before the replies to the last one are read, so that the server does not sleep between two. A
		// wake-up on another core costs either server more than the requests, one on the same core much less, and which one
		// happens changes from second to second.
		for sent, unread := 0, 0; sent < n || unread > 0; {
			batch := 0
			if sent < n {
				batch = min(breadthBatch, n-sent, len(forms)-sent%len(forms))
				at := sent % len(forms)
				if _, err := s.conn.Write(request[ends[at]:ends[at+batch]]); err != nil {
					return 0, err
				}
				sent += batch
			}
			for range unread {
				if _, _, err := s.next(); err != nil {
					return 0, err
				}
			}
			unread = batch
		}
		return time.Duration(processorNanos(s.pid) - before), nil
	}
	for _, s := range b.servers {
		if err := renewBreadth(s.wire, kinds...); err != nil {
			return err
		}
	}
	n := breadthMin
	for n < breadthMax {
		took, err := send(b.servers[1], n)
		if err != nil {
			return err
		}
		if took >= breadthCPU {
			break
		}
		n *= 2
	}
	var micros [2][]float64
	for round := range b.rounds {
		for i := range b.servers {
			i = (i + round) % len(b.servers)
			took, err := send(b.servers[i], n)
			if err != nil {
				return err
			}
			micros[i] = append(micros[i], float64(took.Nanoseconds())/1000/float64(n))
		}
	}
	for i := range micros {
		slices.Sort(micros[i])
		row.micros[i] = micros[i][len(micros[i])/4]
	}
	return nil
}

// document returns the text of docs/BREADTH.md.
func (b *breadth) document(took time.Duration) string {
	var o strings.Builder
	slices.SortFunc(b.rows, func(x, y breadthRow) int { return cmp.Compare(y.ratio(), x.ratio()) })
	above := 0
	for i := range b.rows {
		if b.rows[i].ratio() > breadthAtMost {
			above++
		}
	}
	median := 0.0
	if len(b.rows) > 0 {
		median = b.rows[len(b.rows)/2].ratio()
	}
	fmt.Fprintf(&o, "# Every command beside Redis\n\n<!-- Written by make bench-compare OF=breadth. -->\n\n"+
		"The server's processor time for a request in microseconds, in pipelines of %d over one connection, one of them always waiting, %s\n"+
		"beside %s.\n"+
		"The requests are made from the syntax of the commands, on %d keys of each type; the size is the elements of a value, or a\n"+
		"hundredth of the bytes of a string. Measured on %s, in %.0f minutes; the better quarter of %d rounds, and of each server the best of %d passes. A ratio below 1 is less than Redis takes.\n\n",
		breadthBatch, b.servers[0].name+" "+b.servers[0].version, b.servers[1].name+" "+b.servers[1].version, breadthKeys, machine(), took.Minutes(), b.rounds, max(b.passes, 1))
	if b.conditions != "" {
		fmt.Fprintf(&o, "Conditions: %s\n\n", b.conditions)
	}
	fmt.Fprintf(&o, "%d of %d rows are above %.2f, none is claimed; the median is %s, at most %.1f is claimed.\n\n",
		above, len(b.rows), breadthAtMost, verdict(median, median <= breadthMedian), breadthMedian)
	fmt.Fprint(&o, "| command | size | forms | limitkv | Redis | ratio |\n| --- | ---: | ---: | ---: | ---: | ---: |\n")
	for i := range b.rows {
		r := &b.rows[i]
		fmt.Fprintf(&o, "| %s | %d | %d | %.2f | %.2f | %.2f |\n", strings.ToUpper(strings.ReplaceAll(r.name, "|", " ")), r.size, r.forms, r.micros[0], r.micros[1], r.ratio())
	}
	list := func(what string, names []string) {
		if len(names) > 0 {
			slices.Sort(names)
			fmt.Fprintf(&o, "\n%s: %s.\n", what, strings.ToUpper(strings.ReplaceAll(strings.Join(names, ", "), "|", " ")))
		}
	}
	list("Left out, since they wait, end the connection or change the server itself", b.skipped)
	list("No form was found that both servers answer alike", b.without)
	return o.String()
}
