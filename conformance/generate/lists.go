// The lists of docs/COMPATIBILITY.md: which subcommands of DEBUG, fields of INFO and parameters of redis.conf limitkv has.
// As with commands, Redis's names are stored, and the running server says which are there.

package main

import (
	_ "embed"
	"fmt"
	"os/exec"
	"regexp"
	"sort"
	"strings"

	"github.com/limitkv/limitkv/conformance/peer"
)

//go:embed redis-8.0.6-lists.txt
var redisLists string

// lists writes the parts of the document by their names. bin is the server's binary.
func lists(bin string) (parts map[string]string, err error) {
	groups, err := readNames(redisLists)
	if err != nil {
		return nil, err
	}
	redis := map[string][]string{}
	for _, g := range groups {
		redis[g.name] = g.commands
	}
	server, err := peer.Start("limitkv", bin, "--enable-debug-command", "yes", "--save", "")
	if err != nil {
		return nil, err
	}
	defer server.Stop()
	conn, err := peer.Dial(server.Addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	has, err := asked(conn)
	if err != nil {
		return nil, err
	}
	help, err := exec.Command(bin, "--help", "all").Output()
	if err != nil {
		return nil, fmt.Errorf("--help: %v", err)
	}
	return map[string]string{
		"debug":      debugList(redis["debug"], has["debug"]),
		"info":       infoList(redis["info"], has["info"]),
		"parameters": parameterList(redis["parameters"], has["parameters"], effective(string(help))),
	}, nil
}

// fieldsOfState are fields of INFO that come and go with what the server has done, or with its machine.
var fieldsOfState = regexp.MustCompile(`^(cmdstat_.*|errorstat_.*|latency_percentiles_.*|db\d+|io_thread_\d+|listener\d+|module|distrib_.*)$`)

// asked asks a server for its lists: debug, info and parameters.
func asked(conn *peer.Conn) (map[string][]string, error) {
	do := func(args ...string) (peer.Value, error) {
		v, err := conn.Do(args...)
		if err == nil && v.IsError() {
			err = fmt.Errorf("%s: %v", strings.Join(args, " "), v)
		}
		return v, err
	}
	has := map[string][]string{}
	help, err := do("DEBUG", "HELP")
	if err != nil {
		return nil, err
	}
	for _, line := range help.Items[1:] {
		if name, _, _ := strings.Cut(line.Text, " "); name != "" {
			has["debug"] = append(has["debug"], strings.ToLower(name))
		}
	}
	info, err := do("INFO", "everything")
	if err != nil {
		return nil, err
	}
	for _, line := range strings.Split(info.Text, "\r\n") {
		if name, _, ok := strings.Cut(line, ":"); ok && !fieldsOfState.MatchString(name) {
			has["info"] = append(has["info"], name)
		}
	}
	config, err := do("CONFIG", "GET", "*")
	if err != nil {
		return nil, err
	}
	for i := 0; i < len(config.Items); i += 2 {
		has["parameters"] = append(has["parameters"], config.Items[i].Text)
	}
	return has, nil
}

// option finds the names of parameters in a line of --help.
var option = regexp.MustCompile(`--([a-z_-]+)`)

// effective are the parameters that --help tells of: those that do something.
func effective(help string) map[string]bool {
	effect := map[string]bool{}
	for _, line := range strings.Split(help, "\n") {
		if strings.HasPrefix(line, "  --") {
			for _, m := range option.FindAllStringSubmatch(line, -1) {
				effect[m[1]] = true
			}
		}
	}
	return effect
}

func debugList(redis, has []string) string {
	both, missing, own := compare(redis, has)
	text := wrap("There: "+named(both, strings.ToUpper)+".") + "\n" + wrap("Not there: "+named(missing, strings.ToUpper)+".")
	if len(own) > 0 {
		text += "\n" + wrap("Limitkv's own, or not in the HELP of Redis: "+named(own, strings.ToUpper)+".")
	}
	return text
}

func infoList(redis, has []string) string {
	both, missing, own := compare(redis, has)
	return wrap(fmt.Sprintf("%d of %d fields are there. Not there: %s.", len(both), len(redis), named(missing, nil))) +
		"\n" + wrap("Limitkv's own: "+named(own, nil)+".")
}

func parameterList(redis, has []string, effect map[string]bool) string {
	both, missing, own := compare(redis, has)
	var does, kept []string
	for _, name := range both {
		if effect[name] {
			does = append(does, name)
		} else {
			kept = append(kept, name)
		}
	}
	text := wrap(fmt.Sprintf("With effect (%d): %s.", len(does), named(does, nil))) + "\n" +
		wrap(fmt.Sprintf("Kept, so that they can be read and set, without effect (%d): %s.", len(kept), named(kept, nil))) + "\n"
	if len(missing) > 0 {
		text += wrap("Unknown: "+named(missing, nil)+".") + "\n"
	}
	return text + wrap("Limitkv's own: "+named(own, nil)+".")
}

// compare tells which names both have, which Redis alone has and which limitkv alone has, each in order.
func compare(redis, has []string) (both, missing, own []string) {
	left := map[string]bool{}
	for _, name := range has {
		left[name] = true
	}
	for _, name := range redis {
		if left[name] {
			both = append(both, name)
		} else {
			missing = append(missing, name)
		}
		delete(left, name)
	}
	for name := range left {
		own = append(own, name)
	}
	sort.Strings(own)
	return both, missing, own
}

// named writes names as code.
func named(names []string, write func(string) string) string {
	if len(names) == 0 {
		return "none"
	}
	out := make([]string, len(names))
	for i, name := range names {
		if write != nil {
			name = write(name)
		}
		out[i] = "`" + name + "`"
	}
	return strings.Join(out, ", ")
}

// lineMax is the length to which lines are filled.
const lineMax = 120

// wrap breaks a paragraph into lines.
func wrap(text string) string {
	var b strings.Builder
	column := 0
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
		case column+1+len(word) > lineMax:
			b.WriteByte('\n')
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String() + "\n"
}
