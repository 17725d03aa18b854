package main

// Recordings: the commands that a real library sent to a server, in order. They are replayed over many connections. They
// contain the libraries' own scripts, so they are made on the machine that measures (record.go), and stored in its user's cache.
//
// A recording is a text file. Each line is a script or a command:
//
//	script "source"
//	value "EVALSHA" "e0e1..." "1" "bull:mark000000000000:id" ...
//	null "GET" "mark000000000000"
//
// value and null tell whether the recorded reply was null.

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

// mark is in every name that a driver creates. On replay each connection puts its own digits in its place, so that none sees
// another's keys.
const (
	mark       = markPrefix + "914273650082"
	markPrefix = "mark"
	markDigits = len(mark) - len(markPrefix)
)

// replayGenerations is how many names a connection uses in turn. A round's keys are deleted at its end, but those with a TTL
// may remain.
const replayGenerations = 1000

// recording is a conversation.
type recording struct {
	scripts []string
	calls   []recorded
}

// recorded is a command, and whether its reply was null.
type recorded struct {
	args []string
	null bool
}

// recordingsDir returns the folder of the recordings.
func recordingsDir() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	return filepath.Join(dir, "limitkv-benchmark")
}

func recordingFile(dir, name string) string { return filepath.Join(dir, name+".txt") }

// write writes the recording to a file.
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

// readRecording reads a file that write has written.
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

// workload returns the replay: each connection repeats the whole conversation, each time with another mark.
func (r *recording) workload(l library) *workload {
	patterns := make([]*pattern, len(r.calls))
	for i, c := range r.calls {
		patterns[i] = marked(c.args)
	}
	return &workload{
		name: l.name, does: l.does + " (recorded)",
		drains: true, // a run ends inside a conversation, so the next one needs an empty server
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

// recordedWorkloads returns the recordings in a folder, and the libraries without one.
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

// handshakes are commands that introduce a client or read the server's state; a replay omits them. It also omits
// subscriptions, as there is nobody to receive messages.
var handshakes = []string{"AUTH", "CLIENT", "CLUSTER", "COMMAND", "CONFIG", "ECHO", "HELLO", "INFO", "PING", "QUIT", "RESET", "ROLE", "SCRIPT", "SELECT", "WAIT"}

// blocking tells whether a command waits; such commands are ordered by their replies.
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
