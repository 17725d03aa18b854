package journal

// The next INCR file: made, synced and put into the manifest before anything depends on it.

import (
	"errors"
	"io"

	"github.com/limitkv/limitkv/engine/vfs"
)

// errUnsure says that a new manifest is there, but that it is not known whether that is safe.
var errUnsure = errors.New("the manifest may not be safe")

// newIncr begins a new INCR file with what a buffer holds, synced, puts it into the manifest, and goes on with it. Where
// it fails everything is as before, unless the error is errUnsure.
func (w *Writer) newIncr(b *buffer, at LSN) error {
	file, size, err := w.newFile(w.files.tempIncr(), b, at)
	if err == nil {
		err = file.Sync()
	}
	if err == nil {
		var name string
		if name, err = w.files.extend(at); err == nil {
			w.closeFile()
			w.file, w.name, w.size, w.safe = file, name, 0, size
			w.grow(int(size))
			return nil
		}
	}
	if file != nil {
		_ = file.Close()
	}
	return err
}

// newFile makes a file that holds a mark, where marks are written, and then what a buffer holds.
func (w *Writer) newFile(name string, b *buffer, at LSN) (vfs.File, int64, error) {
	file, err := w.files.FS.Create(w.files.path(name))
	if err != nil {
		return nil, 0, err
	}
	var text []byte
	if w.o.Checksums {
		m := mark{kind: markClosed, lsn: at}
		text = make([]byte, markSize)
		m.put(text, 0)
	}
	if b != nil {
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
