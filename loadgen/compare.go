package main

// Comparing several servers in several rounds. The servers alternate, so that other load on the machine affects all of them,
// and the medians are compared.

import (
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"text/tabwriter"
)

// cell is the result of one workload on one server.
type cell struct {
	Median *result   `json:"median"` // of each number separately
	Rounds []*result `json:"rounds"`
}

// compare runs a workload on all servers that have its commands.
func compare(w *workload, targets []*target, p *params, rounds int) ([]*cell, error) {
	return compareDifferent(w, w, targets, p, rounds)
}

// compareDifferent runs a workload on the servers that have its commands, and an equivalent one on the others.
func compareDifferent(w, other *workload, targets []*target, p *params, rounds int) ([]*cell, error) {
	var cells []*cell
	var able []*target
	var works []*workload
	for _, t := range targets {
		work := w
		if !t.offers(w) {
			work = other
		}
		if !t.offers(work) {
			continue
		}
		if err := t.prepare(work, p); err != nil {
			return nil, err
		}
		able, works = append(able, t), append(works, work)
		cells = append(cells, &cell{})
	}
	for round := range rounds {
		for i := range able {
			i = (i + round) % len(able) // so that no server is always first
			r, err := able[i].run(works[i], p)
			if err != nil {
				return nil, err
			}
			cells[i].Rounds = append(cells[i].Rounds, r)
		}
	}
	for _, c := range cells {
		c.Median = median(c.Rounds)
	}
	return cells, nil
}

// median returns a result with the median of each number.
func median(rounds []*result) *result {
	var list []result
	for _, r := range rounds {
		list = append(list, *r)
	}
	m := middles(list)
	m.Seconds, m.Requests, m.Errors, m.Unsent, m.Resident = 0, 0, 0, 0, 0
	for _, r := range rounds {
		m.Seconds += r.Seconds
		m.Requests += r.Requests
		m.Errors += r.Errors
		m.Unsent += r.Unsent
		m.Resident = max(m.Resident, r.Resident)
		if m.FirstError == "" {
			m.FirstError = r.FirstError
		}
	}
	return &m
}

// middle returns the median of numbers. It sorts them.
func middle(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

// middles returns the median of each floating-point field over several rounds. Other fields are those of the first round.
func middles[R any](rounds []R) R {
	m := rounds[0]
	var list []reflect.Value
	for _, r := range rounds {
		list = append(list, reflect.ValueOf(r))
	}
	setMiddles(reflect.ValueOf(&m).Elem(), list)
	return m
}

func setMiddles(to reflect.Value, rounds []reflect.Value) {
	switch to.Kind() {
	case reflect.Struct:
		for i := range to.NumField() {
			var fields []reflect.Value
			for _, r := range rounds {
				fields = append(fields, r.Field(i))
			}
			setMiddles(to.Field(i), fields)
		}
	case reflect.Float64:
		var values []float64
		for _, r := range rounds {
			values = append(values, r.Float())
		}
		to.SetFloat(middle(values))
	}
}

// printCells writes a workload's table.
func printCells(out io.Writer, cells []*cell) {
	if len(cells) == 0 {
		return
	}
	first := cells[0].Median
	kind := "closed loop"
	if first.Rate > 0 {
		kind = fmt.Sprintf("open loop, %.0f/s", first.Rate)
	}
	fmt.Fprintf(out, "%s: %d connections, pipeline %d, %d keys, %s\n", first.Workload, first.Connections, first.Pipeline, first.Keys, kind)
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "server\trequests/s\tratio\tCPU µs\tp50 µs\tp99\tp99.9\tmax\trefused\tcores\tgenerator\tresident MB\t")
	for _, c := range cells {
		m := c.Median
		cpu, ratio := "?", "1.00"
		if m.CPU > 0 {
			cpu = fmt.Sprintf("%.2f", m.CPU)
		}
		if m != first && m.PerSecond > 0 {
			ratio = fmt.Sprintf("%.2f", m.PerSecond/first.PerSecond)
		}
		fmt.Fprintf(w, "%s\t%.0f\t%s\t%s\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f %%\t%.2f\t%.2f\t%.1f\t\n", m.Server, m.PerSecond, ratio, cpu,
			m.Latency.P50, m.Latency.P99, m.Latency.P999, m.Latency.Max, 100*m.Refused, m.ServerCores, m.GeneratorCores, float64(m.Resident)/(1<<20))
	}
	w.Flush()
	for _, c := range cells {
		m := c.Median
		if m.Errors > 0 {
			fmt.Fprintf(out, "! %s: %d errors: %s\n", m.Server, m.Errors, strings.TrimSpace(m.FirstError))
		}
		if m.Unsent > 0 {
			fmt.Fprintf(out, "! %s: %d requests could not be sent in time: it does not keep up with the rate\n", m.Server, m.Unsent)
		}
	}
	fmt.Fprintln(out)
}
