package journal

// This file writes commands to files that are not the end of the log: a BASE in AOF form, an export.

import (
	"io"
)

// CommandWriter writes commands in the log's form, in groups.
type CommandWriter struct {
	to     io.Writer
	at     int64
	lsn    LSN
	micros int64
	marks  bool
	text   []byte // begins with room for a mark if marks are written
}

// NewCommandWriter returns a writer that starts a file. lsn and micros are the place in the log and the Unix time of the
// file's data. If marks is set it writes marks; if stamp is set the file begins with a time stamp
// (aof-timestamp-enabled).
func NewCommandWriter(to io.Writer, lsn LSN, micros int64, marks, stamp bool) (*CommandWriter, error) {
	c := &CommandWriter{to: to, lsn: lsn, micros: micros, marks: marks}
	if stamp {
		if err := c.write(appendStamp(nil, micros)); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Append adds whole commands, as RESP. Commands that must be applied together, with their MULTI and EXEC, are passed in
// one call.
func (c *CommandWriter) Append(resp []byte) error {
	if c.marks && len(c.text) == 0 {
		c.text = append(c.text, blankMark[:]...)
	}
	c.text = append(c.text, resp...)
	if len(c.text) < groupMax {
		return nil
	}
	return c.Flush()
}

// Flush writes the added commands. It does not sync.
func (c *CommandWriter) Flush() error {
	if len(c.text) == 0 {
		return nil
	}
	if c.marks {
		body := c.text[markSize:]
		m := mark{kind: markGroup, length: int64(len(body)), lsn: c.lsn, micros: c.micros, crc: crcOf(body)}
		m.put(c.text[:markSize], c.at)
	}
	err := c.write(c.text)
	c.text = c.text[:0]
	return err
}

func (c *CommandWriter) write(text []byte) error {
	n, err := c.to.Write(text)
	c.at += int64(n)
	if err == nil && n < len(text) {
		err = io.ErrShortWrite
	}
	return err
}
