package main

// Recordings: what a real library sent to a server while it worked, one command
// after the other, to be replayed over many connections. The scripts in them are
// the libraries' own, so recordings are made on the machine that measures
// (record.go) and kept in its user's cache.
//
// A recording is a text file, a line each:
//
//	script "source"
//	value "EVALSHA" "e0e1..." "1" "bull:mark000000000000:id" ...
//	null "GET" "mark000000000000"
//
// value and null say what the answer was when it was recorded.

import (
	"bytes"
	"crypto/sha1"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// mark is in every name that a driver gives to what it makes. On replay each
// connection has digits of its own in its place, so that none sees another's.
const (
	mark       = markPrefix + "914273650082"
	markPrefix = "mark"
	markDigits = len(mark) - len(markPrefix)
)

// replayGenerations is how many names a connection uses in turn: a round's keys
// are deleted at its end, those that have a TTL may have been left.
const replayGenerations = 1000

// recording is a conversation.
type recording struct {
	scripts []string
	calls   []recorded
}

// recorded is a command with whether its answer was null.
type recorded struct {
	args []string
	null bool
}

// recordingsDir is where recordings are kept.
func recordingsDir() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	return filepath.Join(dir, "limitkv-benchmark")
}

func recordingFile(dir, name string) string { return filepath.Join(dir, name+".txt") }

// write keeps the recording.
func (r *recording) write(path string) error {
	var b []byte
	for _, s := range r.scripts {
		b = append(strconv.AppendQuote(append(b, "script "...), s), '\n')
	}
	for _, c := range r.calls {
		kind := "value"
		if c.null {
			kind = "null"
		}
		b = append(b, kind...)
		for _, a := range c.args {
			b = strconv.AppendQuote(append(b, ' '), a)
		}
		b = append(b, '\n')
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o644)
}

var errRecording = errors.New("this is no recording")

// readRecording reads what write wrote.
func readRecording(path string) (*recording, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := &recording{}
	for number, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		kind, rest, _ := strings.Cut(line, " ")
		var args []string
		for rest != "" {
			quoted, err := strconv.QuotedPrefix(rest)
			if err != nil {
				return nil, fmt.Errorf("%s:%d: %w", path, number+1, errRecording)
			}
			arg, _ := strconv.Unquote(quoted)
			args = append(args, arg)
			rest = strings.TrimPrefix(rest[len(quoted):], " ")
		}
		switch {
		case len(args) == 0:
			return nil, fmt.Errorf("%s:%d: %w", path, number+1, errRecording)
		case kind == "script":
			r.scripts = append(r.scripts, args[0])
		case kind == "value" || kind == "null":
			r.calls = append(r.calls, recorded{args, kind == "null"})
		default:
			return nil, fmt.Errorf("%s:%d: %w", path, number+1, errRecording)
		}
	}
	if len(r.calls) == 0 {
		return nil, fmt.Errorf("%s: %w", path, errRecording)
	}
	return r, nil
}

func shaOf(script string) string { return fmt.Sprintf("%x", sha1.Sum([]byte(script))) }

// marked makes a pattern of a command, whose holes are the digits of the marks.
func marked(args []string) *pattern {
	b := appendRequest(nil, args)
	p := &pattern{text: b}
	for at := 0; ; {
		i := bytes.Index(b[at:], []byte(mark))
		if i < 0 {
			return p
		}
		at += i + len(mark)
		p.holes = append(p.holes, hole{at - markDigits, markDigits})
	}
}

// workload is the replay: each connection sends the whole conversation again and
// again, each time with another mark.
func (r *recording) workload(l library) *workload {
	patterns := make([]*pattern, len(r.calls))
	for i, c := range r.calls {
		patterns[i] = marked(c.args)
	}
	return &workload{
		name: l.name, does: l.does + " (recorded)",
		drains: true, // a run ends within a conversation: the next one begins with none
		prepare: func(c *wire, _ *setup) error {
			for _, s := range r.scripts {
				if _, err := c.text("SCRIPT", "LOAD", s); err != nil {
					return err
				}
			}
			return nil
		},
		maker: func(_ *setup, connection uint64) maker {
			i, generation := 0, uint64(0)
			return func(b []byte, _ uint64) []byte {
				start, p := len(b), patterns[i]
				b = append(b, p.text...)
				for _, h := range p.holes {
					digits(b[start+h.at:start+h.at+h.width], connection*replayGenerations+generation)
				}
				if i++; i == len(patterns) {
					i, generation = 0, (generation+1)%replayGenerations
				}
				return b
			}
		},
		judge: func() func(*reply) string {
			i := 0
			return func(a *reply) (wrong string) {
				c := &r.calls[i]
				if i++; i == len(r.calls) {
					i = 0
				}
				if a.kind == '-' || a.null == c.null {
					return ""
				}
				return fmt.Sprintf("command %d, %.60q: null is %v, recorded was %v", i, c.args, a.null, c.null)
			}
		},
	}
}

// recordedWorkloads are the recordings in a folder, and the libraries of which
// there is none.
func recordedWorkloads(dir string) (list []*workload, missing []string, err error) {
	for _, l := range libraries {
		r, err := readRecording(recordingFile(dir, l.name))
		if errors.Is(err, os.ErrNotExist) {
			missing = append(missing, l.name)
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		list = append(list, r.workload(l))
	}
	return list, missing, nil
}

// handshakes are commands that say who is speaking or look around; a replay does
// without them. Subscriptions are without an effect on it as well: nothing is
// delivered to connections that are not there.
var handshakes = []string{"AUTH", "CLIENT", "CLUSTER", "COMMAND", "CONFIG", "ECHO", "HELLO", "INFO", "PING", "QUIT", "RESET", "ROLE", "SCRIPT", "SELECT", "WAIT"}

// blocking are the commands that wait, in the order of their answers.
func blocking(args []string) bool {
	switch strings.ToUpper(args[0]) {
	case "BLPOP", "BRPOP", "BLMOVE", "BRPOPLPUSH", "BZPOPMIN", "BZPOPMAX", "BLMPOP", "BZMPOP":
		return true
	case "XREAD", "XREADGROUP":
		return slices.ContainsFunc(args, func(a string) bool { return strings.EqualFold(a, "BLOCK") })
	}
	return false
}

func subscribes(args []string) bool {
	name := strings.ToUpper(args[0])
	return strings.HasSuffix(name, "SUBSCRIBE") || name == "MONITOR"
}
