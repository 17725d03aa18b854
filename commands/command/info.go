package command

// Writing INFO.

import (
	"fmt"
	"slices"
	"strings"

	"github.com/limitkv/limitkv/engine"
)

// InfoSection writes one section of INFO.
type InfoSection struct {
	Name    string
	Default bool // shown when no section is asked for
	Write   func(w *InfoWriter)
}

// infoOrder is the order of INFO's sections.
var infoOrder = []string{"server", "clients", "memory", "persistence", "threads", "stats", "replication", "cpu", "modules",
	"commandstats", "errorstats", "latencystats", "cluster", "keyspace", "keysizes", "limitkv"}

// AddInfo adds a section in its place, which infoOrder has.
func (s *Server) AddInfo(section InfoSection) {
	place := func(of InfoSection) int { return slices.Index(infoOrder, of.Name) }
	s.Info = append(s.Info, section)
	slices.SortFunc(s.Info, func(a, b InfoSection) int { return place(a) - place(b) })
}

// InfoWriter collects the lines of INFO.
type InfoWriter struct {
	// View is the keyspace as the command sees it.
	View  *engine.View
	tally *engine.Tally
	b     strings.Builder
}

// Tally is what there is in the keyspace, the same for all sections.
func (w *InfoWriter) Tally() *engine.Tally {
	if w.tally == nil {
		w.tally = w.View.Tally()
	}
	return w.tally
}

// Section begins a section.
func (w *InfoWriter) Section(title string) {
	if w.b.Len() > 0 {
		w.b.WriteString("\r\n")
	}
	w.b.WriteString("# " + title + "\r\n")
}

// Line writes a field.
func (w *InfoWriter) Line(field string, value any) { fmt.Fprintf(&w.b, "%s:%v\r\n", field, value) }

// Linef writes a field with a formatted value.
func (w *InfoWriter) Linef(field, format string, args ...any) {
	fmt.Fprintf(&w.b, "%s:%s\r\n", field, fmt.Sprintf(format, args...))
}

// Bytes writes a number of bytes, and again as people read it.
func (w *InfoWriter) Bytes(field string, n uint64) {
	w.Line(field, n)
	w.Line(field+"_human", humanBytes(n))
}

// humanBytes is a number of bytes as INFO's *_human fields show it.
func humanBytes(n uint64) string {
	units := "BKMGTP"
	if n < 1024 {
		return fmt.Sprintf("%dB", n)
	}
	x := float64(n)
	i := 0
	for x >= 1024 && i < len(units)-1 {
		x /= 1024
		i++
	}
	return fmt.Sprintf("%.2f%c", x, units[i])
}

// String is what was written.
func (w *InfoWriter) String() string { return w.b.String() }
