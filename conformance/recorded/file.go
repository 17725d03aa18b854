// Package recorded, internal to the server's tests, replays conversations with the real Redis that
// are kept as text files: a line is a command in the quoting of redis-cli, the indented lines below
// it are the reply that Redis gave.
//
//	# A comment. Blank lines part one subject from the next.
//	SET k v
//	    +OK
//	HGETALL h
//	    ["a", "1"]
//	  3 %{"a" => "1"}
//
// A file runs twice on an empty server, once in each protocol; "  3 " starts the reply of RESP3 where it differs.
// To add a case, write the command alone and let "make record" ask Redis for the reply. Recording changes no reply that
// still matches, so doing it twice changes nothing.
//
// Before a command may stand:
//
//	@name         the connection to use; the file's first one has no name
//	%unordered    elements in any order; %unordered(2) keeps pairs of a flat array together
//	%near(50)     numbers may differ by 50
//	%int %shape %code         any integer; same kinds and lengths; of an error the first word
//	%any          anything but an error; no reply is written down
//	%save(name)   keeps the reply for later arguments, written $name
//	%send         send only, and wait until the server has it blocked; the reply is read by a later %read
//	%post         send only, and go on
//	%raw          the arguments are sent as raw bytes, one after the other, instead of a command
//
// In place of a command:
//
//	%read         the next reply of the connection
//	%silent       nothing has come on the connection
//	%closed       the server closes the connection
//	%sleep(20)    milliseconds
//	%resp2 %resp3 at the top: this file runs in that protocol alone
//
// Besides redis-cli's quoting, an argument may be "x"*300 (repeated), {1..130:%d,m%d} (a range of arguments),
// <name.lua (a script of testdata/scripts) or <sha:name.lua (its SHA-1).
package recorded

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/limitkv/limitkv/conformance/peer"
)

// File is a parsed conversation.
type File struct {
	Path      string
	Protocols []int // 2, 3 or both
	Scripts   string
	lines     []line
}

// line is a comment or blank (step nil) or a step.
type line struct {
	text string
	step *step
}

// step is one command with what is expected of it.
type step struct {
	number int // line number in the file
	conn   string
	verb   string // "", send, post, read, silent, closed, sleep
	raw    bool
	save   string
	rule   peer.Rule
	ms     int
	args   []string
	want   [4]string // expected reply by protocol, in the notation; "" where none is recorded
}

// Load reads a file. scripts is the folder of the Lua files that <name.lua means.
func Load(path, scripts string) (*File, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f := &File{Path: path, Protocols: []int{2, 3}, Scripts: scripts}
	var last *step
	proto := 2
	for i, text := range strings.Split(strings.TrimRight(string(b), "\n"), "\n") {
		switch {
		case strings.HasPrefix(text, "  3 ") && last != nil:
			proto = 3
			last.want[3] = text[4:]
		case strings.HasPrefix(text, "    ") && last != nil:
			if last.want[proto] != "" {
				last.want[proto] += "\n"
			}
			last.want[proto] += text[4:]
		case text == "" || strings.HasPrefix(text, "#"):
			f.lines = append(f.lines, line{text: text})
		case text == "%resp2" || text == "%resp3":
			f.Protocols = []int{int(text[5] - '0')}
			f.lines = append(f.lines, line{text: text})
		default:
			proto = 2
			last = &step{number: i + 1}
			if err := f.parse(last, text); err != nil {
				return nil, fmt.Errorf("%s:%d: %w", path, i+1, err)
			}
			f.lines = append(f.lines, line{text: text, step: last})
		}
	}
	return f, nil
}

// directive matches "%name" and "%name(argument)".
var directive = regexp.MustCompile(`^%([a-z]+)(?:\(([^)]*)\))?$`)

func (f *File) parse(s *step, text string) error {
	for text != "" {
		head, rest, _ := strings.Cut(text, " ")
		if strings.HasPrefix(head, "@") {
			s.conn = head[1:]
		} else if m := directive.FindStringSubmatch(head); m != nil {
			if err := s.directive(m[1], m[2]); err != nil {
				return err
			}
		} else {
			break
		}
		text = rest
	}
	args, err := f.split(text)
	s.args = args
	if err == nil && (len(args) == 0) == (s.verb == "" || s.verb == "send" || s.verb == "post") {
		err = fmt.Errorf("a command is missing or one too many")
	}
	return err
}

func (s *step) directive(name, arg string) error {
	n, numErr := strconv.ParseFloat(arg, 64)
	switch name {
	case "send", "post", "read", "silent", "closed":
		s.verb = name
	case "sleep":
		s.verb, s.ms = name, int(n)
		return numErr
	case "raw":
		s.raw = true
	case "save":
		s.save = arg
	case "unordered":
		s.rule.Unordered = max(1, int(n))
	case "near":
		s.rule.Near = n
		return numErr
	case "int":
		s.rule.AnyInt = true
	case "shape":
		s.rule.Shape = true
	case "any":
		s.rule.Any = true
	case "code":
		s.rule.ErrorCode = true
	default:
		return fmt.Errorf("unknown directive %%%s", name)
	}
	return nil
}

// replies says whether a step has a reply that is written down. Where anything goes, none is.
func (s *step) replies() bool { return (s.verb == "" || s.verb == "read") && !s.rule.Any }

// Bytes is the file as it is written, with the replies that its steps hold now.
func (f *File) Bytes() []byte {
	var b strings.Builder
	for _, l := range f.lines {
		b.WriteString(l.text + "\n")
		if l.step == nil || !l.step.replies() {
			continue
		}
		two, three := l.step.want[2], l.step.want[3]
		if two == three {
			three = ""
		}
		if two != "" {
			b.WriteString("    " + strings.ReplaceAll(two, "\n", "\n    ") + "\n")
		}
		if three != "" {
			b.WriteString("  3 " + strings.ReplaceAll(three, "\n", "\n    ") + "\n")
		}
	}
	return []byte(strings.TrimRight(b.String(), "\n") + "\n")
}

// Sleeps says whether the file goes by the clock: then a machine that was away for longer makes it say nothing.
func (f *File) Sleeps() bool {
	for _, l := range f.lines {
		if l.step != nil && l.step.verb == "sleep" {
			return true
		}
	}
	return false
}
