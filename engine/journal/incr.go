package journal

// This file creates INCR files. Each is created, synced and put into the manifest before anything depends on it.

import (
	"errors"
	"io"

	"github.com/limitkv/limitkv/engine/vfs"
)

// errUnsure says that the manifest was replaced, but that the replacement may not be on the disk.
var errUnsure = errors.New("the manifest may not be safe")

// newIncr writes a buffer to a new INCR file, syncs it, puts it into the manifest, and continues with it. If it fails,
// nothing has changed, unless the error is errUnsure.
func (w *writer) newIncr(b *buffer, at LSN) error {
	file, size, err := w.newFile(w.files.tempIncr(), b, at)
	if err == nil {
		err = file.Sync()
	}
	if err == nil {
		var name string
		if name, err = w.files.extend(at); err == nil {
			w.closeFile()
			w.begin(file, name, size, at)
			return nil
		}
	}
	if file != nil {
		_ = file.Close()
	}
	return err
}

// begin continues with a file that newFile made.
func (w *writer) begin(file vfs.File, name string, size int64, at LSN) {
	w.file, w.name, w.size, w.safe = file, name, 0, size
	w.grow(int(size))
	if w.o.Checksums && size == 0 {
		w.opening = &mark{kind: markClosed, lsn: at}
	}
}

// openingMark writes the opening mark, which precedes the first group of the buffer up to a place. It opens a new file,
// or covers what another program wrote. It is written only with the first group, so that a log that nobody writes to
// stays unchanged.
//
// The mark is synced before anything follows it, whatever the policy. That distinguishes a first group that a crash of
// the machine tore from one that rotted.
func (w *writer) openingMark(to int, now int64) bool {
	m, text, stamp := w.opening, []byte(nil), 0
	if m.kind != markAdopted { // an adopting mark stands directly after the bytes that it covers
		for _, g := range w.back.groups {
			if g.mark >= w.done && g.end <= to {
				stamp = g.mark - w.done // The time stamp comes first, as in Redis's files.
				break
			}
		}
	}
	text = append(text, w.back.text[w.done:w.done+stamp]...)
	text = append(text, blankMark[:]...)
	m.put(text[stamp:], w.size+int64(stamp))
	if !w.put(text, now) {
		return false
	}
	w.done += stamp
	w.opening = nil
	if w.awaitSync(); w.file == nil {
		return false
	}
	if err := w.sync(w.file, w.name, w.size); err != nil {
		w.files.logf(Warning, "Fail to fsync the AOF file: %s", strerror(err))
		w.breakDown(err)
		return false
	}
	w.safe = w.size
	return true
}

// newFile makes a file with the content of a buffer, after a first mark if marks are written. Without a buffer the file
// is empty.
func (w *writer) newFile(name string, b *buffer, at LSN) (vfs.File, int64, error) {
	file, err := w.files.FS.Create(w.files.path(name))
	if err != nil {
		return nil, 0, err
	}
	var text []byte
	if b != nil {
		if w.o.Checksums {
			m := mark{kind: markClosed, lsn: at}
			text = make([]byte, markSize)
			m.put(text, 0)
		}
		start := len(text)
		text = append(text, b.text...)
		moved := buffer{text: text}
		for _, g := range b.groups {
			g.mark, g.end = g.mark+start, g.end+start
			moved.groups = append(moved.groups, g)
		}
		w.putMarks(&moved, 0, len(text), 0)
	}
	if len(text) > 0 {
		n, err := file.Write(text)
		if err == nil && n < len(text) {
			err = io.ErrShortWrite
		}
		if err != nil {
			_ = file.Close()
			return nil, 0, err
		}
	}
	return file, int64(len(text)), nil
}
