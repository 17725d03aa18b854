package rdb

// Files: written keys are read back, also in small pieces; files that are cut or damaged; values longer than one read.

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/delayqueue"
	"github.com/limitkv/limitkv/engine/set"
)

const databases = 16

// fill fills a keyspace with keys of all kinds in several databases, and returns their number.
func fill(ks *engine.Keyspace, rng *rand.Rand, n int) int {
	v := all(ks)
	for i := range n {
		v.DB = rng.IntN(3) * 5
		key := fmt.Appendf(nil, "key:%d", i)
		at := int64(0)
		if rng.IntN(3) == 0 {
			at = v.Now/1000 + 1e9 + rng.Int64N(1e9)
		}
		// In the form that it has after reading: a value that was once larger may have another form.
		value, err := Load(AppendDump(nil, entry(randomValue(rng)), format), limits)
		if err != nil {
			panic(err)
		}
		Put(v, key, value, at)
	}
	return n
}

// all returns a view with the locks of all shards.
func all(ks *engine.Keyspace) *engine.View {
	v := &engine.View{KS: ks, Now: ks.Clock.Now()}
	v.Held.AddAll()
	v.Held.AddAll()
	return v
}

// write writes a file of a keyspace.
func write(t testing.TB, ks *engine.Keyspace, f Format) []byte {
	t.Helper()
	var b bytes.Buffer
	w := NewWriter(&b, f, true)
	v := all(ks)
	w.Origin(Origin{Version: "8.0.6", NowMicros: v.Now, UsedMemory: 1 << 20, More: [][2]string{{"more", "fact"}}})
	w.Library("#!lua name=lib\n")
	tally := v.Tally()
	for v.DB = 0; v.DB < ks.Databases(); v.DB++ {
		if st := &tally.DBs[v.DB]; st.Keys > 0 {
			w.Database(v.DB, st.Keys, st.Expires)
			v.Each(func(e engine.Entry) bool { return w.Entry(v, e) == nil })
		}
	}
	if err := w.End(); err != nil {
		t.Fatal(err)
	}
	if w.Written() != int64(b.Len()) {
		t.Fatalf("%d bytes written, %d said", b.Len(), w.Written())
	}
	return b.Bytes()
}

// read reads a file into a keyspace of its own.
func read(from io.Reader, o LoadOptions) (*engine.Keyspace, *Loader, error) {
	ks := engine.New(engine.NewClock(), databases)
	ks.LFU.Store(true)
	into := Into{KS: ks}
	o.Limits, o.Databases, o.Enter = limits, databases, into.Enter
	l := NewLoader(from, o)
	err := l.Load()
	into.Done()
	return ks, l, err
}

// contents describes all keys.
func contents(ks *engine.Keyspace) string {
	v := all(ks)
	var lines []string
	for v.DB = 0; v.DB < ks.Databases(); v.DB++ {
		v.EachStored(func(e engine.Entry) {
			payload := AppendDump(nil, e, Format{AppendScore: appendScore})
			if t := payload[0]; t == typeSet || t == typeHash || t == typeHashDue {
				payload = histogram(payload[:len(payload)-FooterBytes]) // in any order
			}
			lines = append(lines, fmt.Sprintf("%d %q %d %x", v.DB, e.Key(), e.Deadline(), payload))
		})
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}

// histogram counts how often each byte occurs in b.
func histogram(b []byte) []byte {
	var counts [256]int
	for _, c := range b {
		counts[c]++
	}
	return fmt.Append(nil, counts)
}

func random(t *testing.T) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 2))
}

func TestFileRoundTrip(t *testing.T) {
	rng := random(t)
	for _, n := range []int{0, 1, 500} {
		ks := engine.New(engine.NewClock(), databases)
		fill(ks, rng, n)
		for _, f := range []Format{format, {AppendScore: appendScore, Usage: IdleUsage}, {AppendScore: appendScore, Usage: FreqUsage}} {
			file := write(t, ks, f)
			var aux, code []string
			o := LoadOptions{
				Size:    int64(len(file)),
				Aux:     func(name, value []byte) error { aux = append(aux, string(name)+"="+string(value)); return nil },
				Library: func(b []byte) error { code = append(code, string(b)); return nil },
			}
			again, l, err := read(bytes.NewReader(file), o)
			if err != nil {
				t.Fatal(err)
			}
			if a, b := contents(ks), contents(again); a != b {
				t.Fatalf("%d keys are not what they were:\n%.300s\n%.300s", n, a, b)
			}
			if l.Keys() != int64(n) {
				t.Errorf("%d keys, of %d", l.Keys(), n)
			}
			if len(aux) != 6 || aux[0] != "redis-ver=8.0.6" || aux[3] != "used-mem=1048576" || aux[4] != "more=fact" || aux[5] != "aof-base=0" {
				t.Errorf("facts %v", aux)
			}
			if len(code) != 1 || code[0] != "#!lua name=lib\n" {
				t.Errorf("libraries %q", code)
			}
		}
	}
}

func TestUsage(t *testing.T) {
	ks := engine.New(engine.NewClock(), 1)
	v := all(ks)
	v.PutString([]byte("k"), []byte("v"), 0).SetLastAccess(v.Now/1e6 - 100)
	v.SetFreq(v.Find([]byte("k")), 77)
	for _, usage := range []Usage{IdleUsage, FreqUsage} {
		file := write(t, ks, Format{AppendScore: appendScore, Usage: usage})
		again := engine.New(ks.Clock, 1)
		again.LFU.Store(usage == FreqUsage)
		into := Into{KS: again}
		if err := NewLoader(bytes.NewReader(file), LoadOptions{Limits: limits, Databases: 1, Enter: into.Enter}).Load(); err != nil {
			t.Fatal(err)
		}
		w := all(again)
		e := w.Find([]byte("k"))
		if idle := w.Now/1e6 - e.LastAccess(); usage == IdleUsage && (idle < 99 || idle > 102) {
			t.Errorf("idle for %d s", idle)
		}
		if freq := w.Freq(e); usage == FreqUsage && freq != 77 {
			t.Errorf("a counter of %d", freq)
		}
	}
}

// TestBlocks checks that keys that were encoded in blocks are in their databases.
func TestBlocks(t *testing.T) {
	rng := random(t)
	ks := engine.New(engine.NewClock(), databases)
	fill(ks, rng, 300)
	var b bytes.Buffer
	w := NewWriter(&b, format, true)
	block := NewBlock(format)
	v := all(ks)
	var entries []func()
	for db := range databases {
		v.DB = db
		v.Each(func(e engine.Entry) bool {
			entries = append(entries, func() { v.DB = db; block.Entry(v, e) })
			return true
		})
	}
	rng.Shuffle(len(entries), func(i, j int) { entries[i], entries[j] = entries[j], entries[i] })
	for i, add := range entries {
		add()
		if i%7 == 0 {
			if err := w.Block(block); err != nil || block.Len() != 0 || block.Keys() != 0 {
				t.Fatal(err, block.Len(), block.Keys())
			}
		}
	}
	if err := errors.Join(w.Block(block), w.End()); err != nil || w.Keys() != 300 {
		t.Fatal(err, w.Keys())
	}
	again, _, err := read(&b, LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if contents(ks) != contents(again) {
		t.Error("the keys are not what they were")
	}
}

// TestPieces reads a file a few bytes at a time, with another one after it.
func TestPieces(t *testing.T) {
	rng := random(t)
	ks := engine.New(engine.NewClock(), databases)
	fill(ks, rng, 40)
	file := write(t, ks, format)
	for name, from := range map[string]func(io.Reader) io.Reader{
		"a byte": iotest.OneByteReader, "half": iotest.HalfReader, "the end with data": iotest.DataErrReader,
	} {
		behind := "*1\r\n$4\r\nPING\r\n"
		again, l, err := read(from(io.MultiReader(bytes.NewReader(file), strings.NewReader(behind))), LoadOptions{Workers: 2})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if contents(ks) != contents(again) {
			t.Errorf("%s: the keys are not what they were", name)
		}
		if rest, err := io.ReadAll(l.Rest()); string(rest) != behind || err != nil {
			t.Errorf("%s: behind it is %q, %v", name, rest, err)
		}
	}
	for _, broken := range []io.Reader{iotest.TimeoutReader(iotest.OneByteReader(bytes.NewReader(file))), iotest.ErrReader(iotest.ErrTimeout)} {
		if _, _, err := read(broken, LoadOptions{}); !errors.Is(err, iotest.ErrTimeout) {
			t.Errorf("an error of the reader: %v", err)
		}
	}
}

// TestLong checks values that are longer than what is read ahead, of all types that have elements.
func TestLong(t *testing.T) {
	ks := engine.New(engine.NewClock(), databases)
	v := all(ks)
	text := bytes.Repeat([]byte("0123456789abcdef"), inlineBytes/8)
	rng := random(t)
	for i := range text {
		text[i] = byte(rng.Uint32())
	}
	v.PutString([]byte("string"), text, 0)
	var s set.Set
	q := delayqueue.New()
	for i := range 120_000 {
		s.Add(fmt.Appendf(nil, "member of a large set number %d", i), limits.Set)
		q.Add(0, fmt.Appendf(nil, "id-%d", i), []byte("payload"), int64(i), nil, delayqueue.Put)
	}
	v.PutObject([]byte("set"), engine.KindSet, &s, 0)
	v.PutObject([]byte("queue"), engine.KindDelayQueue, q, 0)
	fill(ks, rng, 100)
	for _, compress := range []bool{true, false} {
		var memory writeSizes
		w := NewWriter(&memory, Format{Compress: compress, AppendScore: appendScore}, true)
		for v.DB = range databases {
			v.Each(func(e engine.Entry) bool { return w.Entry(v, e) == nil })
		}
		if err := w.End(); err != nil {
			t.Fatal(err)
		}
		if long := sort.SearchInts(memory.sizes, 4*gathered); long < len(memory.sizes)-2 {
			t.Errorf("%d writes of more than %d bytes: a value was gathered", len(memory.sizes)-long, 4*gathered)
		}
		file := memory.Bytes()
		for _, size := range []int64{0, int64(len(file))} {
			again, _, err := read(iotest.HalfReader(bytes.NewReader(file)), LoadOptions{Size: size})
			if err != nil {
				t.Fatal(err)
			}
			if contents(ks) != contents(again) {
				t.Error("the keys are not what they were")
			}
		}
		for range 4 {
			cut := 9 + rng.IntN(len(file)-9)
			if _, _, err := read(bytes.NewReader(file[:cut]), LoadOptions{}); err == nil || !strings.Contains(err.Error(), problemShort) {
				t.Errorf("cut at %d of %d: %v", cut, len(file), err)
			}
		}
		file[len(file)-100] ^= 1
		if _, _, err := read(bytes.NewReader(file), LoadOptions{}); err == nil {
			t.Error("a damaged file is read")
		}
	}
}

// writeSizes records the lengths of writes, in order of length.
type writeSizes struct {
	bytes.Buffer
	sizes []int
}

func (w *writeSizes) Write(b []byte) (int, error) {
	i := sort.SearchInts(w.sizes, len(b))
	w.sizes = append(w.sizes[:i], append([]int{len(b)}, w.sizes[i:]...)...)
	return w.Buffer.Write(b)
}

// TestCut checks that a file that is cut anywhere gives an error that says where.
func TestCut(t *testing.T) {
	ks := engine.New(engine.NewClock(), databases)
	rng := random(t)
	fill(ks, rng, 5)
	file := write(t, ks, format)
	var places []int // all offsets in the entries, some of them in values
	for n := range file {
		if n < 200 || n > len(file)-50 || rng.IntN(len(file)) < 300 {
			places = append(places, n)
		}
	}
	read := func(from io.Reader, o LoadOptions) (err error) {
		o.Limits, o.Databases, o.Enter = limits, databases, func([]Item) error { return nil }
		return NewLoader(from, o).Load()
	}
	for _, n := range places {
		err := read(bytes.NewReader(file[:n]), LoadOptions{Size: int64(len(file))})
		var where *FileError
		if !errors.As(err, &where) || where.Offset > int64(n) {
			t.Fatalf("cut after %d bytes: %v", n, err)
		}
		if want := n < 9; errors.Is(err, ErrSignature) != want {
			t.Fatalf("cut after %d bytes: %v", n, err)
		}
	}
	wrong := bytes.Clone(file)
	for _, i := range places {
		wrong[i] ^= 0x10
		if err := read(bytes.NewReader(wrong), LoadOptions{}); err == nil {
			t.Fatalf("byte %d may be changed", i)
		}
		wrong[i] = file[i]
	}
	// Without a checksum, or with Unchecked, only visible damage is found.
	wrong[len(wrong)-1] ^= 1
	if err := read(bytes.NewReader(wrong), LoadOptions{}); !errors.Is(err, ErrFileChecksum) {
		t.Errorf("a wrong checksum: %v", err)
	}
	if err := read(bytes.NewReader(wrong), LoadOptions{Unchecked: true}); err != nil {
		t.Errorf("one that is not looked at: %v", err)
	}
	clear(wrong[len(wrong)-8:])
	if err := read(bytes.NewReader(wrong), LoadOptions{}); err != nil {
		t.Errorf("a file without a checksum: %v", err)
	}
}

// lines makes a file from parts, without a checksum.
func lines(head string, parts ...string) io.Reader {
	return strings.NewReader(head + strings.Join(parts, "") + "\xff" + strings.Repeat("\x00", 8))
}

func millis(n int64) string { return string(binary.LittleEndian.AppendUint64(nil, uint64(n))) }

// TestEntries checks the entries of files besides plain keys.
func TestEntries(t *testing.T) {
	const a, b = "\x00\x01a\x011", "\x00\x01b\x012"
	long := time.Now().UnixMilli() + 1e9
	for _, c := range []struct {
		name, head string
		parts      []string
		want       string // keys with database and deadline, or the error
	}{
		{"nothing", "REDIS0012", nil, ""},
		{"version 1", "REDIS0001", []string{a}, "0 a 0"},
		{"databases", "REDIS0011", []string{a, "\xfe\x05", b}, "0 a 0, 5 b 0"},
		{"no such database", "REDIS0011", []string{"\xfe\x10", b}, "offset 9: database 16, of 16 that there are"},
		{"a deadline", "REDIS0011", []string{"\xfc", millis(long), a, b}, "0 a " + strconv.FormatInt(long, 10) + ", 0 b 0"},
		{"in seconds", "REDIS0003", []string{"\xfd\xff\xff\xff\x7f", a}, "0 a 2147483647000"},
		{"one that has passed", "REDIS0011", []string{"\xfc", millis(1), a, b}, "0 b 0"},
		{"one before 1970", "REDIS0011", []string{"\xfc", millis(-5), a, b}, "0 b 0"},
		{"none, written as -1", "REDIS0011", []string{"\xfc", millis(-1), a}, "0 a 0"},
		{"all before a key", "REDIS0011", []string{"\xf8\x05", "\xf9\x07", "\xfc", millis(long), "\xfe\x01", "\xfb\x02\x01", a}, "1 a " + strconv.FormatInt(long, 10)},
		{"slots", "REDIS0012", []string{"\xf4\x01\x02\x03", a}, "0 a 0"},
		{"data of modules", "REDIS0012", []string{"\xf7\x81", string(binary.BigEndian.AppendUint64(nil, moduleID("ReJSON-RL", 3))), "\x02\x01", "\x01\x05\x00", a},
			"offset 9: data of a module 'ReJSON-RL' that is not there, beside the keys"},
		{"a module's value", "REDIS0012", []string{a, "\x07\x01m\x81", string(binary.BigEndian.AppendUint64(nil, moduleID("ReJSON-RL", 3))), "\x05\x02{}\x00"},
			`offset 14, key "m": a value of type 'ReJSON-RL', which belongs to a module that is not there`},
		{"a later limiter", "REDIS0012", []string{"\x07\x01m\x81", string(binary.BigEndian.AppendUint64(nil, moduleID("lkv-limit", 3))), "\x05\x02{}\x00"},
			`offset 9, key "m": a value of type 'lkv-limit' in the form of a later version of limitkv`},
		{"an old module's value", "REDIS0012", []string{"\x06\x01m"}, "offset 9: a module's value as a release candidate of Redis 4 wrote it"},
		{"old functions", "REDIS0012", []string{"\xf6\x01m"}, "offset 9: functions as a release candidate of Redis 7 wrote them"},
		{"an unknown type", "REDIS0012", []string{"\x22\x01m"}, "offset 9: a value of unknown type 34"},
		{"what a module has written, and may be left out", "REDIS0015", []string{"\xf3\x01\x01\x00\x00\x00\x02\x05\x00", a}, "0 a 0"},
		{"what a module has written", "REDIS0015", []string{"\xf3\x01\x00\x05\x10\x83\x02\x05\x00", a}, "offset 9: what a module 'gxAF' that is not there has written about a key"},
		{"values of a template", "REDIS0015", []string{"\xf2\x05\x02\x01a\x02a2", "\x20\x01h\x05\x01v\x01w"}, "0 h 0"},
		{"packed values of a template", "REDIS0015", []string{"\xf2\x05\x01\x01a", "\x1e\x01h\x0c\x0c\x00\x00\x00\x02\x00\x05\x01\x81v\x02\xff"}, "0 h 0"},
		{"values of another template", "REDIS0015", []string{"\xf2\x05\x02\x01a\x01b", "\x20\x01h\x06\x01v\x01w"}, "offset 16: a hash of a template that is not there"},
		{"too few values of a template", "REDIS0015", []string{"\xf2\x05\x02\x01a\x01b", "\x1e\x01h\x0c\x0c\x00\x00\x00\x02\x00\x05\x01\x81v\x02\xff"}, "offset 16, key \"h\": 1 values of a template with 2 fields"},
		{"a template without order", "REDIS0015", []string{"\xf2\x05\x02\x02aa\x01b"}, "offset 9: the fields of a template are not in order"},
		{"a template without fields", "REDIS0015", []string{"\xf2\x05\x00"}, "offset 9: a template without fields"},
		{"a template twice", "REDIS0015", []string{"\xf2\x05\x01\x01a", "\xf2\x05\x01\x01b"}, "offset 14: a template twice"},
		{"Valkey", "VALKEY080", []string{"\xf3\x01m\x02\x01\x02\x07\x09", "\xfa\x09slot-info\x051,2,3", a}, "0 a 0"},
		{"a type that Redis has and Valkey not", "VALKEY080", []string{"\x18\x01h", millis(1), "\x01\x00\x01f\x01v"}, "offset 9: a value of unknown type 24"},
		{"Valkey's hash", "VALKEY080", []string{"\x16\x01h\x02\x01f\x01v", millis(-1), "\x01g\x01w", millis(long)}, "0 h 0"},
		{"empty values", "REDIS0009", []string{"\x01\x01l\x00", "\x02\x01s\x00", "\x05\x01z\x00", "\x04\x01h\x00", "\x0e\x01q\x00",
			"\x10\x01p\x07\x07\x00\x00\x00\x00\x00\xff", "\x11\x01y\x07\x07\x00\x00\x00\x00\x00\xff", a, "\x14\x01x\x07\x07\x00\x00\x00\x00\x00\xff"}, "0 a 0"},
		{"a key twice", "REDIS0012", []string{a, a}, `offset 9: the key "a" of database 0 is there already`},
		{"the highest version", "REDIS0015", []string{a}, "0 a 0"},
		{"a version too high", "REDIS0016", []string{a}, `offset 0: RDB files of this version cannot be read: "REDIS0016"`},
		{"nobody's version", "VALKEY079", []string{a}, `offset 0: RDB files of this version cannot be read: "VALKEY079"`},
		{"none", "REDIS00x2", []string{a}, `offset 0: RDB files of this version cannot be read: "REDIS00x2"`},
		{"something else", "*1\r\n$4\r\nPING\r\n", nil, "offset 0: this is no RDB file"},
		{"a length of another world", "REDIS0012", []string{"\x00\x82"}, "offset 9: a length begins with byte 130"},
		{"far too long", "REDIS0012", []string{"\x00\x01a\x81\xff\xff\xff\xff\xff\xff\xff\xff"}, "offset 9: unexpected end"},
		{"far too many", "REDIS0012", []string{"\x02\x01a\x81\xff\xff\xff\xff\xff\xff\xff\xff"}, "offset 9: a string is of unknown form 63"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ks, l, err := read(lines(c.head, c.parts...), LoadOptions{NowMillis: time.Now().UnixMilli(), Workers: 1})
			got := ""
			if err != nil {
				got = err.Error()
			} else {
				v := all(ks)
				var keys []string
				for v.DB = range databases {
					v.EachStored(func(e engine.Entry) { keys = append(keys, fmt.Sprintf("%d %s %d", v.DB, e.Key(), e.Deadline())) })
				}
				sort.Strings(keys)
				got = strings.Join(keys, ", ")
			}
			if got != c.want {
				t.Errorf("%s\nis not %s", got, c.want)
			}
			if c.name == "empty values" && l.Empty() != 8 {
				t.Errorf("%d keys were passed over", l.Empty())
			}
			if strings.HasPrefix(c.name, "one ") && l.Expired() != 1 {
				t.Errorf("%d keys had expired", l.Expired())
			}
		})
	}
	// The base of an append-only file keeps all keys: the commands after it may depend on them.
	ks, _, err := read(lines("REDIS0012", "\xfc", millis(1), a), LoadOptions{})
	if n := all(ks).Count(); n != 1 || err != nil {
		t.Errorf("%d keys, %v", n, err)
	}
}

// TestErrors checks that an error of a callback ends the reading, and an error of the file the writing.
func TestErrors(t *testing.T) {
	ks := engine.New(engine.NewClock(), databases)
	fill(ks, random(t), 500)
	file := write(t, ks, format)
	no := errors.New("no")
	fails := []LoadOptions{
		{Enter: func([]Item) error { return no }},
		{Enter: func([]Item) error { return nil }, Aux: func(_, _ []byte) error { return no }},
		{Enter: func([]Item) error { return nil }, Library: func([]byte) error { return no }},
	}
	for i, o := range fails {
		o.Limits, o.Databases = limits, databases
		if err := NewLoader(bytes.NewReader(file), o).Load(); !errors.Is(err, no) {
			t.Errorf("%d: %v", i, err)
		}
	}
	for room := range 3 {
		w := NewWriter(&limited{room: room * 40_000}, format, true)
		v := all(ks)
		var err error
		v.Each(func(e engine.Entry) bool { err = w.Entry(v, e); return err == nil })
		if again := w.End(); !errors.Is(again, errFull) || err != nil && !errors.Is(err, errFull) {
			t.Errorf("%v, %v", err, again)
		}
	}
}

var errFull = errors.New("full")

type limited struct{ room int }

func (l *limited) Write(b []byte) (int, error) {
	if n := min(l.room, len(b)); n < len(b) {
		l.room = 0
		return n, errFull
	}
	l.room -= len(b)
	return len(b), nil
}

// TestParallel checks that every key arrives once, whichever worker reads it.
func TestParallel(t *testing.T) {
	const n = 200_000
	ks := engine.New(engine.NewClock(), databases)
	v := all(ks)
	for i := range n {
		v.PutString(fmt.Appendf(nil, "key:%d", i), fmt.Appendf(nil, "value:%d", i), 0)
	}
	file := write(t, ks, format)
	var mu sync.Mutex
	seen := make(map[string]bool, n)
	resized := uint64(0)
	l := NewLoader(bytes.NewReader(file), LoadOptions{Limits: limits, Databases: databases, Workers: 4,
		Resize: func(_ int, keys, _ uint64) { resized += keys },
		Enter: func(items []Item) error {
			mu.Lock()
			defer mu.Unlock()
			for _, it := range items {
				if key := string(it.Key); seen[key] || "value"+key[3:] != string(it.Value.String) || it.IdleSeconds != -1 || it.Freq != -1 {
					return fmt.Errorf("%s: %s", key, it.Value.String)
				} else {
					seen[key] = true
				}
			}
			return nil
		}})
	if err := l.Load(); err != nil || len(seen) != n || l.Keys() != n || resized != n {
		t.Errorf("%d keys, %d said, %d announced, %v", len(seen), l.Keys(), resized, err)
	}
}
