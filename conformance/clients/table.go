package main

// The lines that the programs print, and the table made of them.

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// check is a line.
type check struct {
	language, client, version, area, name, reason string

	passed bool
}

// areas are what is checked of every client, in the table's order.
var areas = []string{"connect", "resp3", "auth", "tls", "unix", "pipeline", "transaction", "script", "pubsub", "blocking", "features", "large"}

var areaTitles = []string{"RESP2", "RESP3", "auth", "TLS", "unix socket", "pipeline", "transaction", "script", "pub/sub", "blocking", "own features", "large arguments"}

// parse reads what a program printed; bad are lines that are no checks.
func parse(language, out string) (checks []check, bad []string) {
	for line := range strings.Lines(out) {
		line = strings.TrimSuffix(line, "\n")
		parts := strings.Split(line, "\t")
		switch {
		case line == "":
			continue
		case len(parts) == 5 && parts[0] == "pass", len(parts) == 6 && parts[0] == "fail":
		default:
			bad = append(bad, line)
			continue
		}
		c := check{language: language, client: parts[1], version: parts[2], area: parts[3], name: parts[4], passed: parts[0] == "pass"}
		if !c.passed {
			c.reason = parts[5]
		}
		if !slices.Contains(areas, c.area) {
			bad = append(bad, line)
			continue
		}
		checks = append(checks, c)
	}
	return checks, bad
}

// table is what passed in Markdown: a line a client, with the number of checks by area.
func table(checks []check) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| client | | %s |\n| --- | --- |%s\n", strings.Join(areaTitles, " | "), strings.Repeat(" :-: |", len(areas)))
	type row struct{ language, client, version string }
	var rows []row
	counts := map[row]map[string]int{}
	for _, c := range checks {
		r := row{c.language, c.client, c.version}
		if counts[r] == nil {
			counts[r] = map[string]int{}
			rows = append(rows, r)
		}
		if c.passed {
			counts[r][c.area]++
		}
	}
	// Clients that run side by side print in any order.
	slices.SortStableFunc(rows, func(x, y row) int {
		if x.language != y.language {
			return 0
		}
		return strings.Compare(strings.ToLower(x.client), strings.ToLower(y.client))
	})
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %s %s |", r.language, r.client, r.version)
		for _, area := range areas {
			if n := counts[r][area]; n > 0 {
				fmt.Fprintf(&b, " %d |", n)
			} else {
				b.WriteString(" |")
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

const (
	begin = "<!-- clients: written by make conformance-clients -->\n"
	end   = "<!-- end of clients -->\n"
)

// writeTable puts the table between its marks.
func writeTable(path string, checks []check) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text, err := replaced(string(b), table(checks))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

func replaced(text, table string) (string, error) {
	before, rest, ok := strings.Cut(text, begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return "", fmt.Errorf("the marks of the table are missing")
	}
	return before + begin + "\n" + table + "\n" + end + after, nil
}
