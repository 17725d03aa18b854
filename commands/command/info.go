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
	View *engine.View
	b    strings.Builder
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

// String is what was written.
func (w *InfoWriter) String() string { return w.b.String() }
