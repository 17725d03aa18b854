package journal

// Reading one file of the log, command by command, in memory bounded by its largest group.

import (
	"bytes"
	"cmp"
	"fmt"
	"hash/crc32"
	"io"
)

// chunk is how many bytes are read at once.
const chunk = 256 << 10

// sector is the unit that a disk writes atomically: a torn append lacks whole sectors, which read as zeros.
const sector = 512

// Damage says where a file differs from what was written.
type Damage struct {
	File string
	// Good is the offset up to which the file is whole, and where it would be cut.
	Good int64
	// At is the offset where the damage shows.
	At int64
	// LSN is the place in the log after the last whole group, 0 if the file has no marks.
	LSN LSN
	// Torn means that the file ends, or has holes, as after a write that a crash of the machine or of the process
	// interrupted, and that nothing proves that the data was ever synced. Otherwise the file is rotten, or is no log.
	Torn bool
	// Multi means that the file ends between MULTI and EXEC.
	Multi  bool
	Reason string
	// Size is the file's size.
	Size int64
}

func (d *Damage) Error() string {
	what := "damaged"
	if d.Torn {
		what = "torn"
	}
	return fmt.Sprintf("%s is %s at offset %d (whole up to offset %d, LSN %d, of %d bytes): %s", d.File, what, d.At, d.Good, d.LSN, d.Size, d.Reason)
}

// Reader reads a file of the log. It verifies a group with a mark before it returns anything of it.
type Reader struct {
	name string
	from io.ReaderAt
	size int64
	parser

	step int // how many bytes are read at once
	buf  []byte
	base int64 // offset of buf[0]
	pos  int   // in buf: the next byte to parse
	end  int   // in buf: where a verified group ends, 0 outside of one

	good    int64 // up to here everything is whole
	loose   bool  // commands were read that no mark covers
	covered int64 // marks cover the bytes up to here
	crc     uint32
	crcAt   int64 // crc covers the bytes from covered to here
	group   mark  // the last mark
	facts   Facts
}

// Facts are what was found in a file so far.
type Facts struct {
	Commands, Units int64
	// Marks is the number of marks, Verified the number of bytes that they cover.
	Marks, Verified int64
	// First and Last are the places in the log after the first and the last group, 0 if there is none.
	First, Last LSN
	// Micros is the latest time of a group, LastMicros the time of the last group, both in Unix microseconds.
	Micros, LastMicros int64
	// Synced is the offset up to which the file had been synced, as its marks say.
	Synced int64
	// Closed says that the file ends with a mark of being closed.
	Closed bool
}

// NewReader returns a reader of a file from an offset on: the end of its RDB part, if it has one. stopAt, unless 0, ends
// the log before the first time stamp that is later, in Unix seconds.
func NewReader(name string, file io.ReaderAt, offset, size, stopAt int64) *Reader {
	r := &Reader{step: chunk, name: name, from: file, size: size, base: offset, good: offset, covered: offset, crcAt: offset}
	r.stopAt = stopAt
	return r
}

// Facts are what was found so far.
func (r *Reader) Facts() Facts { return r.facts }

// Good is the offset after the last whole unit.
func (r *Reader) Good() int64 { return r.good }

// Stopped reports that the reader ended at a time stamp, with more after it.
func (r *Reader) Stopped() bool { return r.stopped }

func (r *Reader) offset() int64 { return r.base + int64(r.pos) }

// Next returns the next unit, which is valid until the next call. It returns io.EOF at the end, a *Damage if the file is
// damaged, and errors of reading.
func (r *Reader) Next() (*Unit, error) {
	for !r.stopped {
		if r.end > 0 {
			if u, err := r.inGroup(); u != nil || err != nil {
				return u, err
			}
			continue
		}
		if err := r.fill(1); err != nil {
			return nil, err
		}
		if r.pos == len(r.buf) {
			return nil, io.EOF
		}
		b := r.buf[r.pos:]
		if b[0] == '#' {
			if err := r.line(); err != nil {
				return nil, err
			}
			continue
		}
		n, o := r.unit(b)
		if u, err := r.got(n, o); u != nil || err != nil {
			return u, err
		}
	}
	return nil, io.EOF
}

// got ends the reading of a unit outside of groups.
func (r *Reader) got(n int, o outcome) (*Unit, error) {
	switch {
	case o == bad:
		return nil, r.damage(r.offset()+int64(r.badAt), r.reason)
	case o == partial:
		return nil, r.more()
	case r.stopped:
		return nil, io.EOF
	}
	at := r.offset()
	r.pos += n
	r.good = r.offset()
	r.loose = true
	r.facts.Closed = false
	return r.counted(at), nil
}

// counted counts and returns the unit that was read, nil if it has no commands.
func (r *Reader) counted(at int64) *Unit {
	if len(r.ends) == 0 {
		return nil
	}
	r.facts.Units++
	r.facts.Commands += int64(len(r.ends))
	return r.take(at)
}

// more reads what a partial outcome needs, or returns a *Damage at the end of the file.
func (r *Reader) more() error {
	if r.base+int64(r.pos)+int64(r.need) > r.size {
		d := r.torn("the file ends inside a command or a transaction")
		d.Multi = r.multi
		return d
	}
	return r.fill(max(r.need, min(2*(len(r.buf)-r.pos), int(r.size-r.offset()))))
}

// torn returns a *Damage of a file that ends too early.
func (r *Reader) torn(reason string) *Damage {
	d := r.rot(r.good, r.size, reason)
	d.Torn = true
	return d
}

// rot returns a *Damage of a file that differs from what was written.
func (r *Reader) rot(good, at int64, reason string) *Damage {
	return &Damage{File: r.name, Good: good, At: at, LSN: r.facts.Last, Reason: reason, Size: r.size}
}

// fill makes at least need bytes available, or all that the file has.
func (r *Reader) fill(need int) error {
	have := len(r.buf) - r.pos
	if have >= need {
		return nil
	}
	r.sum()
	want := int(min(int64(max(need, r.step)), r.size-r.offset()))
	if want <= have {
		return nil
	}
	into := r.buf
	if cap(into) < want || cap(into) > 64*r.step && want <= r.step {
		into = make([]byte, want)
	}
	into = into[:want]
	copy(into, r.buf[r.pos:])
	r.base, r.pos, r.buf = r.offset(), 0, into
	n, err := r.from.ReadAt(into[have:], r.base+int64(have))
	r.buf = into[:have+n]
	if err == io.EOF && n > 0 {
		err = nil
	}
	if err == io.EOF || err == nil && have+n < want {
		err = io.ErrUnexpectedEOF // The file became shorter under the reader.
	}
	return err
}

// sum adds the bytes up to pos to the checksum of what no mark covers yet.
func (r *Reader) sum() {
	if at := r.offset(); at > r.crcAt {
		r.crc = crc32.Update(r.crc, castagnoli(), r.buf[r.crcAt-r.base:r.pos])
		r.crcAt = at
	}
}

// cover records that marks cover everything up to the present place.
func (r *Reader) cover() {
	r.covered, r.crcAt, r.crc = r.offset(), r.offset(), 0
	r.good, r.loose = r.offset(), false
}

// inGroup continues in a verified group.
func (r *Reader) inGroup() (*Unit, error) {
	if r.pos == r.end {
		r.end = 0
		r.cover()
		r.facts.Last = r.group.lsn
		r.dated(r.group.micros)
		if r.facts.First == 0 {
			r.facts.First = r.group.lsn
		}
		return nil, nil
	}
	b := r.buf[r.pos:r.end]
	at := r.offset()
	if b[0] == '#' {
		n, o := r.comment(b)
		if o == whole && !r.stopped {
			r.pos += n
		}
		return nil, r.asWritten(o)
	}
	n, o := r.unit(b)
	if o != whole || r.stopped {
		return nil, r.asWritten(o)
	}
	r.pos += n
	u := r.counted(at)
	if u != nil {
		u.Marked = true
	}
	return u, nil
}

// asWritten returns a *Damage for a group that cannot be parsed although its checksum is right.
func (r *Reader) asWritten(o outcome) error {
	if o == whole {
		return nil
	}
	return r.rot(r.good, r.offset(), "a group whose checksum is right does not consist of whole commands")
}

// dated takes over the time of a mark, 0 if it has none.
func (r *Reader) dated(micros int64) {
	r.facts.Micros = max(r.facts.Micros, micros)
	r.facts.LastMicros = cmp.Or(micros, r.facts.LastMicros)
}

// line reads a comment line or a mark.
func (r *Reader) line() error {
	if err := r.fill(markSize); err != nil {
		return err
	}
	b := r.buf[r.pos:]
	if !bytes.HasPrefix(b, []byte(markStem)) {
		n, o := r.comment(b)
		switch {
		case o == bad:
			return r.damage(r.offset()+int64(r.badAt), r.reason)
		case o == partial && r.size == r.base+int64(len(r.buf)):
			return r.torn("the file ends inside a comment")
		case o == partial:
			return r.fill(commentMax)
		case !r.stopped:
			r.pos += n
			r.good = r.offset()
		}
		return nil
	}
	at := r.offset()
	if len(b) > len(markStem) && b[4] > markVersion && b[4] <= '9' {
		return r.rot(r.good, at, "written by a newer version of limitkv")
	}
	m, ok := parseMark(b, at)
	if !ok {
		if len(b) < markSize && !bytes.Contains(b, []byte("\n")) {
			return r.torn("the file ends inside a mark")
		}
		return r.damage(at, "a mark that is damaged")
	}
	return r.mark(m, at)
}

// mark processes a mark: it verifies the bytes that the mark covers.
func (r *Reader) mark(m mark, at int64) error {
	r.sum()
	switch gap := at - r.covered; {
	case m.kind == markAdopted && (m.length != gap || m.crc != r.crc):
		return r.rot(r.covered, at, "bytes that were checked once are not the same")
	case m.kind == markAdopted:
		r.facts.Verified += gap
	case r.loose:
		// Comment lines may precede a mark. Commands precede it only if the mark of their own group rotted.
		return r.rot(r.covered, r.covered, "commands without a mark between commands with marks")
	}
	r.facts.Marks++
	r.facts.Synced = max(r.facts.Synced, m.synced)
	if m.kind != markGroup {
		r.pos += markSize
		r.cover()
		r.facts.Last = max(r.facts.Last, m.lsn)
		r.dated(m.micros)
		r.facts.Closed = m.kind == markClosed
		return nil
	}
	if at+markSize+m.length > r.size {
		return r.torn("the file ends inside a group")
	}
	if err := r.fill(markSize + int(m.length)); err != nil {
		return err
	}
	r.facts.Closed = false
	body := r.buf[r.pos+markSize:][:m.length]
	if crcOf(body) != m.crc {
		return r.damage(at, "the checksum of a group is wrong")
	}
	r.facts.Verified += m.length
	r.pos += markSize
	r.end = r.pos + int(m.length)
	r.group = m
	return nil
}

// damage distinguishes a torn write from rot. It is rot if a later mark says that the place had been synced. It is a
// torn write if a sector is missing. If a group or a mark was expected, this may be any later sector. After commands
// that no mark covers, everything up to the end must be missing.
func (r *Reader) damage(at int64, reason string) error {
	d := r.rot(r.good, at, reason)
	ours := r.facts.Marks > 0 && !r.loose
	text := make([]byte, min(chunk, r.size-d.Good+sector))
	// Pieces overlap by a sector, so that no mark is missed between two, and begin at a sector.
	for from := d.Good / sector * sector; from < r.size; from += chunk - sector {
		n, err := r.from.ReadAt(text, from)
		if err != nil && err != io.EOF {
			return err
		}
		piece := text[:n]
		for i := 0; ; i++ {
			next := bytes.Index(piece[i:], []byte(markStem))
			if next < 0 {
				break
			}
			i += next
			if m, ok := parseMark(piece[i:], from+int64(i)); ok && from+int64(i) > d.Good && m.synced > d.Good {
				d.Torn = false
				d.Reason += fmt.Sprintf("; the mark at offset %d says that it was safely on disk", from+int64(i))
				return d
			}
		}
		if hole(piece, from, d.Good) {
			d.Torn = true
		}
	}
	if !ours {
		// A mark that was meant to adopt them may be torn as well.
		zeros, err := r.zerosFrom(at)
		if err != nil {
			return err
		}
		d.Torn = d.Torn && r.size-d.Good <= markSize || zeros
	}
	return d
}

// hole reports whether a sector of a piece of the file is all zeros. It ignores bytes before good.
func hole(piece []byte, from, good int64) bool {
	for i := 0; i < len(piece); i += sector {
		s := piece[i:min(i+sector, len(piece))]
		if skip := good - from - int64(i); skip > 0 {
			s = s[min(skip, int64(len(s))):]
		}
		if len(s) > 0 && allZero(s) {
			return true
		}
	}
	return false
}

func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// zerosFrom reports whether the file has only zeros from a place on.
func (r *Reader) zerosFrom(at int64) (bool, error) {
	text := make([]byte, min(chunk, r.size-at))
	for ; at < r.size; at += chunk {
		n, err := r.from.ReadAt(text, at)
		if err != nil && err != io.EOF {
			return false, err
		}
		if !allZero(text[:n]) {
			return false, nil
		}
	}
	return true, nil
}
