package command

// Loading: while the server reads what is on disk, it answers what it can answer
// without, and all else with an error, as Redis does.

import "sync/atomic"

// ErrLoading is the reply to what needs the keys while they are being read.
const ErrLoading = "LOADING Redis is loading the dataset in memory"

// LoadProgress is whether the server loads, and how far that has come.
type LoadProgress struct {
	on                 atomic.Bool
	began, total, read atomic.Int64
	memory             atomic.Int64
}

// Begin says that loading begins at a Unix time in microseconds.
func (l *LoadProgress) Begin(nowMicros int64) {
	l.began.Store(nowMicros / 1e6)
	l.total.Store(0)
	l.read.Store(0)
	l.on.Store(true)
}

// End says that all is there.
func (l *LoadProgress) End() { l.on.Store(false) }

// On tells whether the server loads.
func (l *LoadProgress) On() bool { return l.on.Load() }

// Error is the text of the error for what has to wait, "" for none.
func (l *LoadProgress) Error() string {
	if l.On() {
		return ErrLoading
	}
	return ""
}

// Expect says how many bytes are to be read.
func (l *LoadProgress) Expect(bytes int64) { l.total.Store(bytes) }

// Took says how many bytes of memory the keys took where the file was written.
func (l *LoadProgress) Took(bytes int64) { l.memory.Store(bytes) }

// Progress says how many of them were read.
func (l *LoadProgress) Progress(bytes int64) { l.read.Store(bytes) }

// Info writes the fields of INFO persistence that are there while the server loads.
func (l *LoadProgress) Info(w *InfoWriter, nowMicros int64) {
	if !l.On() {
		return
	}
	began, total, read := l.began.Load(), l.total.Load(), l.read.Load()
	left, percent := int64(1), 0.0
	if total > 0 {
		left = max(total-read, 0)
		percent = float64(read) / float64(total) * 100
	}
	eta := int64(1) // as Redis says where it does not know
	if elapsed := nowMicros/1e6 - began; elapsed > 0 {
		eta = elapsed * left / (read + 1)
	}
	w.Line("loading_start_time", began)
	w.Line("loading_total_bytes", total)
	w.Line("loading_rdb_used_mem", l.memory.Load())
	w.Line("loading_loaded_bytes", read)
	w.Linef("loading_loaded_perc", "%.2f", percent)
	w.Line("loading_eta_seconds", eta)
}
