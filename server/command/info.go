package command

// Writing INFO.

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/limitkv/limitkv/engine"
)

// InfoSection writes one section of INFO.
type InfoSection struct {
	Name    string
	Default bool // shown when no section is asked for
	Sizes   bool // shows Sizes of the Tally
	Write   func(w *InfoWriter)
}

// infoOrder is the order of INFO's sections.
var infoOrder = []string{"server", "clients", "memory", "persistence", "threads", "stats", "replication", "cpu", "modules",
	"commandstats", "errorstats", "latencystats", "cluster", "keyspace", "keysizes", "limitkv"}

// AddInfo adds a section at its place in infoOrder.
func (s *Server) AddInfo(section InfoSection) {
	place := func(of InfoSection) int { return slices.Index(infoOrder, of.Name) }
	s.Info = append(s.Info, section)
	slices.SortFunc(s.Info, func(a, b InfoSection) int { return place(a) - place(b) })
}

// InfoWriter collects the lines of INFO.
type InfoWriter struct {
	// View is the keyspace of the command.
	View *engine.View
	// Sizes: the Tally must contain sizes.
	Sizes bool
	tally *engine.Tally
	b     []byte
	// begun: a section was begun.
	begun bool
}

// Into sets the buffer to append to.
func (w *InfoWriter) Into(b []byte) { w.b = b }

// Text returns the buffer with all that was written.
func (w *InfoWriter) Text() []byte { return w.b }

// infoBytes is the usual size of INFO.
const infoBytes = 8 << 10

// Tally returns the counts of the keyspace, the same for all sections.
func (w *InfoWriter) Tally() *engine.Tally {
	switch {
	case w.tally != nil:
	case w.Sizes:
		w.tally = w.View.Tally()
	default:
		w.tally = w.View.Totals()
	}
	return w.tally
}

// Section begins a section.
func (w *InfoWriter) Section(title string) {
	if w.begun {
		w.b = append(w.b, "\r\n"...)
	} else {
		w.begun, w.b = true, slices.Grow(w.b, infoBytes)
	}
	w.b = append(append(append(w.b, "# "...), title...), "\r\n"...)
}

func (w *InfoWriter) field(name string) { w.b = append(append(w.b, name...), ':') }

func (w *InfoWriter) end() { w.b = append(w.b, "\r\n"...) }

// Line writes a field whose value is text or an integer. The value does not escape, so that converting it to an interface
// allocates nothing: INFO has about two hundred lines, and monitoring requests it every few seconds.
func (w *InfoWriter) Line(field string, value any) {
	w.field(field)
	switch v := value.(type) {
	case string:
		w.b = append(w.b, v...)
	case int:
		w.b = strconv.AppendInt(w.b, int64(v), 10)
	case int64:
		w.b = strconv.AppendInt(w.b, v, 10)
	case uint64:
		w.b = strconv.AppendUint(w.b, v, 10)
	default:
		panic("INFO: " + field + " is neither text nor an integer")
	}
	w.end()
}

// Linef writes a field with a formatted value.
func (w *InfoWriter) Linef(field, format string, args ...any) {
	w.field(field)
	w.b = fmt.Appendf(w.b, format, args...)
	w.end()
}

// Decimal writes a field with a fraction of so many digits, and a unit.
func (w *InfoWriter) Decimal(field string, value float64, digits int, unit string) {
	w.field(field)
	w.b = append(strconv.AppendFloat(w.b, value, 'f', digits, 64), unit...)
	w.end()
}

// Bytes writes a number of bytes, and the same in a readable form.
func (w *InfoWriter) Bytes(field string, n uint64) {
	w.Line(field, n)
	w.b = append(append(w.b, field...), "_human:"...)
	w.b = appendHumanBytes(w.b, n)
	w.end()
}

// appendHumanBytes appends a number of bytes in the form of INFO's *_human fields.
func appendHumanBytes(b []byte, n uint64) []byte {
	const units = "BKMGTP"
	if n < 1024 {
		return append(strconv.AppendUint(b, n, 10), 'B')
	}
	x := float64(n)
	i := 0
	for x >= 1024 && i < len(units)-1 {
		x /= 1024
		i++
	}
	return append(strconv.AppendFloat(b, x, 'f', 2, 64), units[i])
}

// String returns what was written, if Into was not called.
func (w *InfoWriter) String() string { return string(w.b) }
