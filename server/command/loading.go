package command

// Loading: while the server reads its files, it runs commands that need no keys, and replies an error to all others, as Redis
// does.

import (
	"io"
	"sync/atomic"
)

// ErrLoading is the reply to a command that needs the keys while they are being loaded.
const ErrLoading = "LOADING Redis is loading the dataset in memory"

// LoadProgress is whether the server loads, and its progress.
type LoadProgress struct {
	state              atomic.Int32
	began, total, read atomic.Int64
	memory, until      atomic.Int64
}

// The states of loading.
const (
	loadsNot int32 = iota
	loads
	loadsBeside
)

// Begin begins loading, at a Unix time in microseconds. With beside, the old keys are served meanwhile.
func (l *LoadProgress) Begin(nowMicros int64, beside bool) {
	l.began.Store(nowMicros / 1e6)
	l.total.Store(0)
	l.read.Store(0)
	if beside {
		l.state.Store(loadsBeside)
	} else {
		l.state.Store(loads)
	}
}

// End ends loading.
func (l *LoadProgress) End() { l.state.Store(loadsNot) }

// On tells whether the server loads and serves no keys.
func (l *LoadProgress) On() bool { return l.state.Load() == loads }

// Beside tells whether the server loads other keys, which will replace those it serves.
func (l *LoadProgress) Beside() bool { return l.state.Load() == loadsBeside }

// Keeps tells whether a command with these flags is refused while the server loads.
func (l *LoadProgress) Keeps(flags Flags) bool {
	switch l.state.Load() {
	case loads:
		return flags&Loading == 0
	case loadsBeside:
		return flags&NoAsyncLoading != 0
	}
	return false
}

// Error returns the error for such a command, "" if there is none.
func (l *LoadProgress) Error() string {
	if l.On() {
		return ErrLoading
	}
	return ""
}

// Expect sets how many bytes will be read.
func (l *LoadProgress) Expect(bytes int64) { l.total.Store(bytes) }

// Took sets how many bytes of memory the keys used when the file was written.
func (l *LoadProgress) Took(bytes int64) { l.memory.Store(bytes) }

// Until sets the last time in the file, in Unix microseconds.
func (l *LoadProgress) Until(micros int64) { l.until.Store(micros) }

// Last returns the last time in the files that were read, 0 if they have none.
func (l *LoadProgress) Last() int64 { return l.until.Load() }

// Progress sets how many bytes were read.
func (l *LoadProgress) Progress(bytes int64) { l.read.Store(bytes) }

// Reader wraps a file and updates the progress. It fails with the error that stop returns, if any.
func (l *LoadProgress) Reader(from io.Reader, stop func() error) io.Reader {
	return &loadReader{l: l, from: from, stop: stop}
}

type loadReader struct {
	l    *LoadProgress
	from io.Reader
	stop func() error
	read int64
}

func (r *loadReader) Read(b []byte) (int, error) {
	if err := r.stop(); err != nil {
		return 0, err
	}
	n, err := r.from.Read(b)
	r.read += int64(n)
	r.l.Progress(r.read)
	return n, err
}

// Info writes the fields of INFO persistence that are shown while the server loads.
func (l *LoadProgress) Info(w *InfoWriter, nowMicros int64) {
	if l.state.Load() == loadsNot {
		return
	}
	began, total, read := l.began.Load(), l.total.Load(), l.read.Load()
	left, percent := int64(1), 0.0
	if total > 0 {
		left = max(total-read, 0)
		percent = float64(read) / float64(total) * 100
	}
	eta := int64(1) // as in Redis if it is unknown
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
