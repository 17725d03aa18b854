package command

// Writing INFO.

import (
	"fmt"
	"strings"

	"github.com/limitkv/limitkv/engine"
)

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
