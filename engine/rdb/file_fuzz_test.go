package rdb

// Files of any bytes, and the speed of writing and reading valid ones.

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"testing"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/stream"
)

// FuzzFile checks that no bytes crash the loader, make it allocate without limit, or give an invalid value.
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
	for _, c := range contradictory() {
		f.Add([]byte("REDIS0012"+c.body[:1]+"\x01k"+c.body[1:]+"\xff\x00\x00\x00\x00\x00\x00\x00\x00"), true)
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
				again, err := Load(AppendDump(nil, e, format), limits)
				if err != nil || again.Repairs != nil {
					t.Fatalf("%v is read again as %v: %v", it.Value.Kind, again.Repairs, err)
				}
				s, is := again.Object.(*stream.Stream)
				if !is {
					continue
				}
				exercise(t, s)
				if again, err := Load(AppendDump(nil, entry(again), format), limits); err != nil || again.Repairs != nil && s.EntriesAdded() <= math.MaxInt64 {
					t.Fatalf("a stream that was written to is read again as %v: %v", again.Repairs, err)
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
