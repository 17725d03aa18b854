package rdb

// The loader reads Redis's files of versions 1 to 15, and Valkey's, up to 11 and 80.
//
// One goroutine reads the file, finds where keys begin and end, and computes the checksum. Workers read the values and
// pass them on in batches. The first goroutine itself reads a key longer than inlineBytes, while its bytes arrive. So
// memory does not depend on the size of the file, but only on its largest value.
//
// Input is not trusted. An error contains the offset of the faulty entry; if there are several, that of the first one in
// the file.

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
)

// Versions of files.
const (
	// versionChecked is the first version with a checksum at the end.
	versionChecked = 5
	// VersionValkey is the version of Valkey 9. Versions between VersionMost and it are unknown.
	VersionValkey = 80
)

// inlineBytes is the length from which a key is not passed to a worker.
const inlineBytes = 4 << 20

// batchKeys is how many keys are passed to Enter together.
const batchKeys = 128

// Item is a key that was read.
type Item struct {
	DB    int
	Key   []byte // valid until Enter returns, like the bytes of Value.String
	Value Value
	// ExpireMillis is when the key expires in Unix milliseconds, 0 for never.
	ExpireMillis int64
	// IdleSeconds is how long the key was idle, Freq its LFU counter; -1 if the
	// file does not say.
	IdleSeconds, Freq int64
}

// LoadOptions say how to load a file.
type LoadOptions struct {
	// Limits decide the form of values. MaxString is ignored: a file may contain all that its server had.
	Limits Limits
	// Databases is the number of databases.
	Databases int
	// Size is the size of the file, 0 if unknown.
	Size int64
	// Unchecked skips the verification of the checksum (rdbchecksum no).
	Unchecked bool
	// NowMillis omits keys that have expired by that time. 0 omits none: the commands after the base of an append-only
	// file may depend on them.
	NowMillis int64
	// Workers is how many goroutines read values, 0 for one per processor.
	Workers int

	// Enter receives the keys. It is called from several goroutines at once; the order of keys is lost. An error ends
	// the loading.
	Enter func(items []Item) error
	// Library receives the code of each library of functions, Aux each fact about the file's origin, Resize how many
	// keys of a database follow. All are called from one goroutine, in the file's order, and may be nil.
	Library func(code []byte) error
	Aux     func(name, value []byte) error
	Resize  func(db int, keys, expires uint64)
	// Passed receives keys that are skipped because their values are empty, as old bugs of Redis wrote them. It may be
	// nil, and is called from several goroutines.
	Passed func(db int, key []byte)
	// Repaired receives keys whose values were faulty, as old bugs of Redis wrote them, and could be repaired, with the
	// faults. It may be nil, and is called from several goroutines.
	Repaired func(db int, key []byte, repairs []string)
	// Expired receives keys that are omitted because they have expired. It may be nil, and is called from several
	// goroutines.
	Expired func(db int, key []byte)
}

// FileError describes a faulty file.
type FileError struct {
	Offset int64  // where the faulty entry begins
	Key    string // the key, if the entry is one
	Err    error
}

func (e *FileError) Error() string {
	if e.Key != "" {
		return fmt.Sprintf("offset %d, key %.200q: %v", e.Offset, e.Key, e.Err)
	}
	return fmt.Sprintf("offset %d: %v", e.Offset, e.Err)
}

func (e *FileError) Unwrap() error { return e.Err }

// Errors of files.
var (
	// ErrSignature is returned for a file without the signature of an RDB file.
	ErrSignature = errors.New("this is no RDB file")
	// ErrVersion is returned for a file of an unknown version.
	ErrVersion = errors.New("RDB files of this version cannot be read")
	// ErrFileChecksum is returned for a file whose checksum is wrong: it could be read, but differs from what was
	// written.
	ErrFileChecksum = errors.New("RDB CRC error: the checksum is wrong")
)

// Loader reads a file.
type Loader struct {
	o       LoadOptions
	src     source
	buf     []byte // what was read; the bytes before start were passed on
	start   int
	version int
	valkey  bool

	// The database and the attributes of the next key, now and at start.
	db, startDB           int
	templates             templates
	pending, startPending attributes

	regions chan region
	free    chan []byte
	stopped atomic.Bool
	mu      sync.Mutex
	err     *FileError

	keys, expired, empty, verified atomic.Int64
	summed                         bool
}

// attributes are the entries that precede a key.
type attributes struct {
	expire, idle, freq int64
}

var noAttributes = attributes{0, -1, -1}

// region is a part of the file that consists of whole entries.
type region struct {
	buf        []byte // reused by the loader
	begin, end int
	offset     int64 // of begin, in the file
	db         int
	pending    attributes
}

// NewLoader returns a loader for a file.
func NewLoader(from io.Reader, o LoadOptions) *Loader {
	if o.Workers == 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	o.Limits.MaxString = math.MaxInt
	l := &Loader{
		o: o, src: source{from: from, size: o.Size, check: !o.Unchecked}, pending: noAttributes, startPending: noAttributes,
		regions: make(chan region, o.Workers), free: make(chan []byte, 2*o.Workers+1),
	}
	if o.Size == 0 {
		l.src.size = -1
	}
	return l
}

// Keys is how many keys were passed to Enter. It may be called at any time, like the other counters.
func (l *Loader) Keys() int64 { return l.keys.Load() }

// Summed reports whether the loaded file has a checksum. Files of old versions have none, nor files that were written
// with rdbchecksum no.
func (l *Loader) Summed() bool { return l.summed }

// Expired is how many keys were omitted because they had expired.
func (l *Loader) Expired() int64 { return l.expired.Load() }

// Empty is how many keys were skipped because their values were empty.
func (l *Loader) Empty() int64 { return l.empty.Load() }

// Verified is how many structures were verified and taken over unchanged (INFO's dump_payload_sanitizations).
func (l *Loader) Verified() int64 { return l.verified.Load() }

// Rest returns what follows the file: the commands of an append-only file that begins with an RDB file. It is called
// after Load has returned.
func (l *Loader) Rest() io.Reader {
	return io.MultiReader(bytes.NewReader(l.buf[l.start:]), l.src.from)
}

// Load reads the file. Its error is a *FileError that wraps the error of the reader or of a callback, if it comes from
// one.
func (l *Loader) Load() error {
	var workers sync.WaitGroup
	for range l.o.Workers {
		workers.Go(func() {
			w := worker{l: l, items: make([]Item, 0, batchKeys)}
			for r := range l.regions {
				w.region(r)
				l.giveBack(r.buf)
			}
		})
	}
	l.walk()
	close(l.regions)
	workers.Wait()
	if l.err != nil {
		return l.err
	}
	return nil
}

// fail records an error, unless one for an earlier offset is recorded.
func (l *Loader) fail(offset int64, key []byte, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil || offset < l.err.Offset {
		l.err = &FileError{offset, string(key), err}
	}
	l.stopped.Store(true)
}

// offset is the file offset of a place in the buffer.
func (l *Loader) offset(at int) int64 { return l.src.begun - int64(len(l.buf)-at) }

// giveBack keeps a buffer for reuse if it has the usual size.
func (l *Loader) giveBack(b []byte) {
	if cap(b) == chunkBytes {
		select {
		case l.free <- b[:0]:
		default:
		}
	}
}

// passOn passes the whole entries that end at a place of the buffer to the workers, and keeps the bytes after them.
func (l *Loader) passOn(end int) {
	rest := l.buf[end:]
	var next []byte
	if 2*len(rest) > chunkBytes {
		next = make([]byte, 0, 2*len(rest))
	} else {
		select {
		case next = <-l.free:
		default:
			next = make([]byte, 0, chunkBytes)
		}
	}
	next = append(next, rest...)
	whole := l.buf[l.start:end]
	l.src.use(whole)
	if len(whole) > 0 {
		l.regions <- region{l.buf, l.start, end, l.offset(l.start), l.startDB, l.startPending}
	} else {
		l.giveBack(l.buf)
	}
	l.buf, l.start, l.startDB, l.startPending = next, 0, l.db, l.pending
}

// more calls passOn and then reads more. It returns io.EOF like any other error.
func (l *Loader) more(end int) (err error) {
	l.passOn(end)
	l.buf, err = l.src.read(l.buf)
	return err
}

// walk reads the file and passes its entries on.
func (l *Loader) walk() {
	if !l.header() {
		return
	}
	f := frame{valkey: l.valkey, templates: &l.templates}
	for at := l.start; !l.stopped.Load(); {
		f.b, f.at, f.short = l.buf, at, false
		op := f.byte()
		if !f.short {
			l.entry(&f, op, at)
		}
		switch {
		case f.problem != "":
			l.fail(l.offset(at), nil, errors.New(f.problem))
		case !f.short && op == opEnd:
			l.end(f.at)
			return
		case !f.short:
			at = f.at
		case len(l.buf)-at >= inlineBytes && isValue(op):
			l.inline(at)
			at = l.start
		default:
			offset := l.offset(at)
			if err := l.more(at); err != nil {
				if errors.Is(err, io.EOF) {
					err = errShort
				}
				l.fail(offset, nil, err)
			}
			at = 0
		}
	}
}

var errShort = errors.New(problemShort)

// header reads the signature and the version.
func (l *Loader) header() bool {
	const headerBytes = 9
	for len(l.buf) < headerBytes {
		if err := l.more(0); err != nil {
			if errors.Is(err, io.EOF) {
				err = ErrSignature
			}
			l.fail(0, nil, err)
			return false
		}
	}
	head := l.buf[:headerBytes]
	digits, isRedis := bytes.CutPrefix(head, []byte("REDIS"))
	if !isRedis {
		if digits, l.valkey = bytes.CutPrefix(head, []byte("VALKEY")); !l.valkey {
			l.fail(0, nil, ErrSignature)
			return false
		}
	}
	version, err := strconv.ParseUint(string(digits), 10, 32)
	if l.version = int(version); err != nil || l.valkey && version != VersionValkey || isRedis && (version < 1 || version > uint64(VersionMost)) {
		l.fail(0, nil, fmt.Errorf("%w: %q", ErrVersion, head))
		return false
	}
	l.src.check = l.src.check && version >= versionChecked
	l.src.use(head)
	l.start = headerBytes
	return true
}

// entry moves f past an entry that begins at a place of the buffer, if the entry is complete, and applies it. Workers
// read the values.
func (l *Loader) entry(f *frame, op byte, at int) {
	if f.entry(op); !f.ok() {
		return
	}
	r := Reader{rest: l.buf[at+1 : f.at], maxString: math.MaxInt}
	switch op {
	case opDue, opDueMillis, opFreq, opIdle:
		l.pending.read(&r, op)
	case opSelect:
		n := r.Len()
		if n >= uint64(l.o.Databases) {
			f.problem = fmt.Sprintf("database %d, of %d that there are", n, l.o.Databases)
			return
		}
		l.db = int(n)
	case opResize:
		if l.o.Resize != nil {
			l.o.Resize(l.db, r.Len(), r.Len())
		}
	case opAux:
		if l.o.Aux != nil {
			name, value := r.String(), r.String()
			l.called(f, &r, func() error { return l.o.Aux(name, value) })
		}
	case Function:
		if l.o.Library != nil {
			code := r.String()
			l.called(f, &r, func() error { return l.o.Library(code) })
		}
	case opTemplate:
		if !l.valkey {
			l.templates.read(&r)
			f.problem = r.problem
		}
	case opSlot, opSlotImport, opEnd:
	default:
		l.pending = noAttributes
	}
}

// read reads an attribute of the next key.
func (a *attributes) read(r *Reader, op byte) {
	switch op {
	case opDue:
		a.expire = expiry(int64(int32(r.uint32())) * 1000)
	case opDueMillis:
		a.expire = expiry(r.millis())
	case opFreq:
		a.freq = int64(r.Byte())
	case opIdle:
		a.idle = int64(min(r.Len(), math.MaxInt64))
	}
}

// called calls fn, unless r has failed.
func (l *Loader) called(f *frame, r *Reader, fn func() error) {
	if r.Failed() {
		f.problem = r.problem
	} else if err := fn(); err != nil {
		l.fail(l.offset(f.at), nil, err)
	}
}

// expiry converts a time for Item. Redis writes -1 for none; other times before 1970 have expired as well.
func expiry(millis int64) int64 {
	if millis == -1 {
		return 0
	}
	return max(millis, 1)
}

// end reads the checksum. The file's last entry ends at a place of the buffer.
func (l *Loader) end(at int) {
	l.passOn(at)
	if l.version < versionChecked {
		return
	}
	offset := l.offset(0)
	for len(l.buf) < 8 {
		if err := l.more(0); err != nil {
			l.fail(offset, nil, errShort)
			return
		}
	}
	want := (&Reader{rest: l.buf}).uint64()
	l.start = 8
	l.summed = want != 0
	if l.src.check && want != 0 && want != l.src.sum {
		l.fail(offset, nil, fmt.Errorf("%w: %016x, not %016x", ErrFileChecksum, l.src.sum, want))
	}
}
