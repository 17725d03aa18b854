package rdb

// Files of whatever bytes, and how fast good ones are written and read.

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/limitkv/limitkv/engine"
)

// FuzzFile: no bytes crash the loader, make it take memory without end, or leave a value that is not whole.
func FuzzFile(f *testing.F) {
	ks := engine.New(engine.NewClock(), databases)
	v := all(ks)
	for i, d := range dumped {
		var payload []byte
		fmt.Sscanf(d.payload, "%x", &payload)
		value, err := Load(payload, forced(d.name))
		if err != nil {
			f.Fatal(err)
		}
		Put(v, fmt.Appendf(nil, "%d", i), value, int64(i)*1e12)
		f.Add([]byte("REDIS0011"+string(payload[0])+"\x01k"+string(payload[1:len(payload)-FooterBytes])+"\xff\x00\x00\x00\x00\x00\x00\x00\x00"), false)
	}
	for i, value := range natives(f) {
		Put(v, fmt.Appendf(nil, "native%d", i), value, 0)
	}
	f.Add(write(f, ks, format), true)
	for _, payload := range contradictory {
		f.Add([]byte("REDIS0012"+payload[:1]+"\x01k"+payload[1:]+"\xff\x00\x00\x00\x00\x00\x00\x00\x00"), true)
	}
	f.Add([]byte("VALKEY080\x16\x01h\x02\x01f\x01v\xff\xff\xff\xff\xff\xff\xff\xff\x01g\x01w\x00\x00\x00\x00\x00\x01\x00\x00\xff\x00\x00\x00\x00\x00\x00\x00\x00"), false)
	f.Add([]byte("REDIS0002\xfd\x01\x02\x03\x04\x09\x01m\x09\x01\x01f\x01\x00v\xff\xff"), true)
	f.Fuzz(func(t *testing.T, file []byte, sized bool) {
		o := LoadOptions{Limits: limits, Databases: databases, NowMillis: 1e12, Workers: 1, Unchecked: true}
		if sized {
			o.Size = int64(len(file))
		}
		o.Enter = func(items []Item) error {
			for _, it := range items {
				check(t, it.Value)
				e := entry(it.Value)
				if again, err := Load(AppendDump(nil, e, format), limits); err != nil || again.Repairs != nil {
					t.Fatalf("%v is read again as %v: %v", it.Value.Kind, again.Repairs, err)
				}
			}
			return nil
		}
		err := NewLoader(bytes.NewReader(file), o).Load()
		var where *FileError
		switch {
		case err == nil:
		case !errors.As(err, &where) || where.Offset < 0 || where.Offset > int64(len(file)):
			t.Fatal(err)
		case errors.Is(err, ErrFormat):
			t.Fatal(err)
		}
	})
}

// contradictory are values of which one part contradicts another, to begin with: a stream that says 120 entries and has one; one
// whose pending entry nobody has.
var contradictory = []string{
	"\x15\x01\x10\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x1d" +
		"\x1d\x00\x00\x00\x0a\x00\x01\x01\x00\x01\x01\x01\x81f\x02\x00\x01\x02\x01\x00\x01\x00\x01\x81v\x02\x04\x01\xff" +
		"\x40\x78\x01\x00\x01\x00\x00\x00\x40\x78\x00",
	"\x15\x01\x10\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x1d" +
		"\x1d\x00\x00\x00\x0a\x00\x01\x01\x00\x01\x01\x01\x81f\x02\x00\x01\x02\x01\x00\x01\x00\x01\x81v\x02\x04\x01\xff" +
		"\x01\x01\x00\x01\x00\x00\x00\x01\x01\x01g\x01\x00\x01\x01" +
		"\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01\x00",
}

// TestContradictory: they are read, and have something to put right.
func TestContradictory(t *testing.T) {
	for i, payload := range contradictory {
		v, err := Load(AppendFooter([]byte(payload)), limits)
		if err != nil || len(v.Repairs) == 0 {
			t.Errorf("%d: %v, %v", i, v.Repairs, err)
		}
	}
}

func BenchmarkWriteFile(b *testing.B) {
	ks := engine.New(engine.NewClock(), 1)
	v := all(ks)
	const n = 200_000
	for i := range n {
		v.PutString(fmt.Appendf(nil, "key:%012d", i), fmt.Appendf(nil, "value:%026d", i), 0)
	}
	b.ReportMetric(0, "ns/op")
	for b.Loop() {
		w := NewWriter(io.Discard, format, true)
		v.Each(func(e engine.Entry) bool { return w.Entry(v, e) == nil })
		_ = w.End()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/key")
}

func BenchmarkReadFile(b *testing.B) {
	ks := engine.New(engine.NewClock(), 1)
	v := all(ks)
	const n = 200_000
	for i := range n {
		v.PutString(fmt.Appendf(nil, "key:%012d", i), fmt.Appendf(nil, "value:%026d", i), 0)
	}
	file := write(b, ks, format)
	for b.Loop() {
		into := Into{KS: engine.New(ks.Clock, 1)}
		if err := NewLoader(bytes.NewReader(file), LoadOptions{Limits: limits, Databases: 1, Enter: into.Enter}).Load(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/key")
}
