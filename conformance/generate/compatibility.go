// What docs/COMPATIBILITY.md says of each command: the names that Redis has are stored, those that limitkv has come from
// the running server, and only where the two do not tell the whole a note does. A note can name a command whose reply
// shows that it is still true; a test runs it.

package main

import (
	_ "embed"
	"fmt"
	"sort"
	"strings"
)

//go:embed redis-8.0.6.txt
var redisNames string

//go:embed notes.txt
var redisNotes string

// group is a group of Redis's commands, by the names of COMMAND LIST.
type group struct {
	name     string
	commands []string
}

// readNames reads the list of names: below a line "group:" its names.
func readNames(text string) (groups []group, err error) {
	for i, line := range strings.Split(text, "\n") {
		name, isGroup := strings.CutSuffix(line, ":")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case isGroup:
			groups = append(groups, group{name: name})
		case len(groups) == 0:
			return nil, fmt.Errorf("names: line %d: before the first group", i+1)
		default:
			g := &groups[len(groups)-1]
			g.commands = append(g.commands, strings.Fields(line)...)
		}
	}
	return groups, nil
}

// The answers to whether limitkv has a command.
const (
	yes    = "yes"
	partly = "partly"
	no     = "no"
)

// note is what is to be said of a command: partly and what is missing, or no and why.
type note struct {
	answer, text string
	// probe is a command whose reply begins with reply, the type's byte included, as long as the note is true; "" for none.
	probe, reply string
}

// noteOfGroup is the name by which a note is that of all the commands of a group that have none of their own.
func noteOfGroup(name string) string { return name + ":" }

// readNotes reads the notes: name, answer and text between tabs, and then, where something shows it, a command and the
// beginning of its reply.
func readNotes(text string) (map[string]note, error) {
	notes := map[string]note{}
	for i, line := range strings.Split(text, "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(line, "\t")
		if len(f) != 3 && len(f) != 5 || f[1] != partly && f[1] != no {
			return nil, fmt.Errorf("notes: line %d: name, %s or %s, and a text are wanted, or also a command and its reply", i+1, partly, no)
		}
		if _, twice := notes[f[0]]; twice {
			return nil, fmt.Errorf("notes: line %d: %s has a note already", i+1, f[0])
		}
		f = append(f, "", "")
		notes[f[0]] = note{answer: f[1], text: f[2], probe: f[3], reply: f[4]}
	}
	return notes, nil
}

// compatibility writes the answers for Redis's commands, and limitkv's own commands. has are those of the server, tests
// those that it has with --test.
func compatibility(groups []group, notes map[string]note, has, tests map[string]entry) (string, error) {
	var sums, rows strings.Builder
	total, redis, used := map[string]int{}, map[string]bool{}, 0
	for _, g := range groups {
		count := map[string]int{}
		fmt.Fprintf(&rows, "### %s\n\n| command | | |\n| --- | --- | --- |\n", g.name)
		groupNote, ofGroup := notes[noteOfGroup(g.name)]
		if ofGroup {
			used++
		}
		for _, name := range g.commands {
			redis[name] = true
			n, noted := notes[name]
			if noted {
				used++
			} else {
				n, noted = groupNote, ofGroup
			}
			_, there := has[name]
			switch {
			case !there && n.answer != no:
				return "", fmt.Errorf("limitkv does not have %s, and no note says why", name)
			case !noted && parent(g.commands, name):
				continue // Its subcommands have the answer.
			case !noted:
				n.answer = yes
			}
			count[n.answer]++
			fmt.Fprintf(&rows, "| %s | %s |%s |\n", shown(name), n.answer, cell(n.text))
		}
		rows.WriteString("\n")
		fmt.Fprintf(&sums, "| [%s](#%s) | %d | %d | %d |\n", g.name, g.name, count[yes], count[partly], count[no])
		for answer, n := range count {
			total[answer] += n
		}
	}
	if used != len(notes) {
		return "", fmt.Errorf("%d notes, but only %d of them are about commands of Redis", len(notes), used)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "| group | %s | %s | %s |\n| --- | ---: | ---: | ---: |\n", yes, partly, no)
	fmt.Fprintf(&b, "%s| **all** | **%d** | **%d** | **%d** |\n\n", sums.String(), total[yes], total[partly], total[no])
	b.WriteString(rows.String())
	b.WriteString("## Commands of limitkv's own\n\n| command | |\n| --- | --- |\n")
	own(&b, has, redis, "")
	for name := range has {
		redis[name] = true
	}
	own(&b, tests, redis, " Only with `--test`.")
	return b.String(), nil
}

// own writes a row for each command that is not known, in the order of their names.
func own(b *strings.Builder, has map[string]entry, known map[string]bool, addition string) {
	var names []string
	for name, e := range has {
		if !known[name] && !e.parent {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	for _, name := range names {
		fmt.Fprintf(b, "| %s | %s%s |\n", shown(name), has[name].summary, addition)
	}
}

// parent says whether a command is there for its subcommands alone.
func parent(names []string, name string) bool {
	for _, n := range names {
		if strings.HasPrefix(n, name+"|") {
			return true
		}
	}
	return false
}

// shown is a name as people write it.
func shown(name string) string { return strings.ToUpper(strings.ReplaceAll(name, "|", " ")) }

// cell is a text with the blank before it that a cell of a table has.
func cell(text string) string {
	if text == "" {
		return ""
	}
	return " " + text
}
