package journal

// The manifest is the list of the log's files, in Redis's grammar, one file a line:
//
//	file appendonly.aof.2.base.rdb seq 2 type b
//	file appendonly.aof.4.incr.aof seq 4 type i startoffset 1200
//
// The BASE file (b) contains everything before a cut. The INCR files (i) contain everything after it, in the order of
// their lines. HISTORY files (h) wait to be removed. startoffset and endoffset are the places in the log where an INCR
// file begins and where it was closed.

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/limitkv/limitkv/resp/words"
)

// FileType is the type of a file of the manifest.
type FileType byte

// The types of files.
const (
	Base    FileType = 'b'
	Incr    FileType = 'i'
	History FileType = 'h'
)

// Entry is one file of the manifest.
type Entry struct {
	Name string
	Seq  int64
	Type FileType
	// Start and End are places in the log, -1 if unknown.
	Start, End int64
}

// Manifest is the list of files. Its zero value has none.
type Manifest struct {
	Base    *Entry
	History []Entry
	Incr    []Entry
	// BaseSeq and IncrSeq are the highest numbers given so far.
	BaseSeq, IncrSeq int64
}

// manifestLineMax is the longest line, its end included. Redis cannot read a longer one.
const manifestLineMax = 1024

// manifestMax is how many bytes of a manifest are read: far more than any has.
const manifestMax = 16 << 20

// ManifestError says why a manifest is invalid.
type ManifestError struct {
	Reason string
	Line   int    // from 1
	Text   string // the line, if it could be read
}

func (e *ManifestError) Error() string {
	if e.Text == "" {
		return e.Reason
	}
	return fmt.Sprintf("%s: line %d: %s", e.Reason, e.Line, e.Text)
}

// LogLines are the lines that Redis logs for the error.
func (e *ManifestError) LogLines() []string {
	lines := []string{"*** FATAL AOF MANIFEST FILE ERROR ***"}
	if e.Text != "" {
		lines = append(lines, fmt.Sprintf("Reading the manifest file, at line %d", e.Line), fmt.Sprintf(">>> '%s'", e.Text))
	}
	return append(lines, e.Reason)
}

const (
	badManifest  = "Invalid AOF manifest file format"
	longManifest = "The AOF manifest file contains too long line"
)

// ParseManifest reads a manifest. Its errors are *ManifestError, in Redis's words.
func ParseManifest(text []byte) (*Manifest, error) {
	m := &Manifest{}
	if len(text) == 0 {
		return nil, &ManifestError{Reason: "Found an empty AOF manifest"}
	}
	for n := 1; len(text) > 0; n++ {
		// As in Redis, a line is read in pieces of at most manifestLineMax bytes: the rest of a long comment is a line.
		end := bytes.IndexByte(text[:min(len(text), manifestLineMax)], '\n') + 1
		if end == 0 {
			end = min(len(text), manifestLineMax)
		}
		line := text[:end]
		text = text[end:]
		if line[0] == '#' {
			continue
		}
		if line[len(line)-1] != '\n' || bytes.IndexByte(line, 0) >= 0 {
			return nil, &ManifestError{Reason: longManifest, Line: n}
		}
		trimmed := string(bytes.Trim(line, " \t\r\n"))
		e, reason := parseEntry(trimmed)
		if reason == "" {
			reason = m.add(e)
		}
		if reason != "" {
			return nil, &ManifestError{reason, n, trimmed}
		}
	}
	return m, nil
}

// parseEntry reads a line: pairs of a word and a value. It ignores unknown words.
func parseEntry(line string) (e Entry, reason string) {
	pairs, ok := words.Split(line)
	if !ok || len(pairs) < 6 || len(pairs)%2 != 0 {
		return e, badManifest
	}
	e.Start, e.End = -1, -1
	for i := 0; i < len(pairs); i += 2 {
		value := pairs[i+1]
		switch strings.ToLower(pairs[i]) {
		case "file":
			if strings.ContainsAny(value, `/\`) {
				return e, "File can't be a path, just a filename"
			}
			e.Name = value
		case "seq":
			e.Seq = leadingInt(value)
		case "type":
			e.Type = 0
			if value != "" {
				e.Type = FileType(value[0])
			}
		case "startoffset":
			e.Start = leadingInt(value)
		case "endoffset":
			e.End = leadingInt(value)
		}
	}
	if e.Name == "" || e.Name == "." || e.Name == ".." || strings.IndexByte(e.Name, 0) >= 0 || e.Seq == 0 || e.Type == 0 {
		return e, badManifest
	}
	return e, ""
}

// add adds a file to the manifest.
func (m *Manifest) add(e Entry) (reason string) {
	switch e.Type {
	case Base:
		if m.Base != nil {
			return "Found duplicate base file information"
		}
		m.Base, m.BaseSeq = &e, e.Seq
	case History:
		m.History = append(m.History, e)
	case Incr:
		if e.Seq <= m.IncrSeq {
			return "Found a non-monotonic sequence number"
		}
		m.Incr, m.IncrSeq = append(m.Incr, e), e.Seq
	default:
		return "Unknown AOF file type"
	}
	return ""
}

// leadingInt is the number that a text begins with, as C's atoll reads it; 0 if it begins with none.
func leadingInt(s string) int64 {
	end := 0
	for end < len(s) && (s[end] >= '0' && s[end] <= '9' || end == 0 && (s[end] == '-' || s[end] == '+')) {
		end++
	}
	n, err := strconv.ParseInt(s[:end], 10, 64)
	if errors.Is(err, strconv.ErrRange) {
		if s[0] == '-' {
			return math.MinInt64
		}
		return math.MaxInt64
	}
	return n
}

// Text is the manifest as written to its file.
func (m *Manifest) Text() []byte {
	var out []byte
	if m.Base != nil {
		out = m.Base.append(out)
	}
	for _, e := range m.History {
		out = e.append(out)
	}
	for _, e := range m.Incr {
		out = e.append(out)
	}
	return out
}

func (e Entry) append(out []byte) []byte {
	out = append(out, "file "...)
	out = appendName(out, e.Name)
	out = fmt.Appendf(out, " seq %d type %c", e.Seq, e.Type)
	if e.Start != -1 {
		out = fmt.Appendf(out, " startoffset %d", e.Start)
		if e.End != -1 {
			out = fmt.Appendf(out, " endoffset %d", e.End)
		}
	}
	return append(out, '\n')
}

// clone copies a manifest, so that a change that could not be written is dropped.
func (m *Manifest) clone() *Manifest {
	c := *m
	if m.Base != nil {
		base := *m.Base
		c.Base = &base
	}
	c.History = append([]Entry(nil), m.History...)
	c.Incr = append([]Entry(nil), m.Incr...)
	return &c
}

// Empty reports whether there are no data files.
func (m *Manifest) Empty() bool { return m.Base == nil && len(m.Incr) == 0 }

// Parts are the files to load, in their order.
func (m *Manifest) Parts() []Entry {
	var parts []Entry
	if m.Base != nil {
		parts = append(parts, *m.Base)
	}
	return append(parts, m.Incr...)
}
