package resp

// Replies written and read back, and bytes that are no replies.

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"
)

// everyReply writes one reply of each kind.
func everyReply(w *Writer) (count int) {
	w.Int(-42)
	w.Bulk([]byte("a\r\nb"))
	w.BulkString("")
	w.BulkInt(math.MinInt64)
	w.Status("OK\r\nno")
	w.OK()
	w.Error("ERR it\nis")
	w.Null()
	w.NullArray()
	w.Array(2)
	w.Int(1)
	w.Array(0)
	w.Map(1)
	w.BulkString("k")
	w.Set(1)
	w.Double(3.25)
	w.Push(1)
	w.Bool(true)
	w.Double(math.Inf(-1))
	w.Double(math.NaN())
	w.DoubleText([]byte("0.1"))
	w.Bool(false)
	w.BigNumber("-12345678901234567890")
	w.Verbatim("txt", "Some\r\ntext")
	w.Verbatim("x", "")
	w.Raw([]byte(":7\r\n"))
	return 20
}

const everyReply2 = ":-42\r\n$4\r\na\r\nb\r\n$0\r\n\r\n$20\r\n-9223372036854775808\r\n+OK  no\r\n+OK\r\n-ERR it is\r\n" +
	"$-1\r\n*-1\r\n*2\r\n:1\r\n*0\r\n*2\r\n$1\r\nk\r\n*1\r\n$4\r\n3.25\r\n*1\r\n:1\r\n$4\r\n-inf\r\n$3\r\nnan\r\n" +
	"$3\r\n0.1\r\n:0\r\n$21\r\n-12345678901234567890\r\n$10\r\nSome\r\ntext\r\n$0\r\n\r\n:7\r\n"

const everyReply3 = ":-42\r\n$4\r\na\r\nb\r\n$0\r\n\r\n$20\r\n-9223372036854775808\r\n+OK  no\r\n+OK\r\n-ERR it is\r\n" +
	"_\r\n_\r\n*2\r\n:1\r\n*0\r\n%1\r\n$1\r\nk\r\n~1\r\n,3.25\r\n>1\r\n#t\r\n,-inf\r\n,nan\r\n,0.1\r\n#f\r\n" +
	"(-12345678901234567890\r\n=14\r\ntxt:Some\r\ntext\r\n=4\r\nx  :\r\n:7\r\n"

func TestWriterForms(t *testing.T) {
	for proto, want := range map[int]string{0: everyReply2, 2: everyReply2, 3: everyReply3} {
		w := Writer{Proto: proto}
		count := everyReply(&w)
		if string(w.Buf) != want {
			t.Errorf("RESP%d:\n%q, want\n%q", proto, w.Buf, want)
		}
		r := NewReader(w.Buf)
		n := 0
		for ; !r.Done(); n++ {
			if err := r.Skip(); err != nil {
				t.Fatalf("RESP%d: reply %d: %v", proto, n, err)
			}
		}
		if n != count {
			t.Errorf("RESP%d: %d replies were read, want %d", proto, n, count)
		}
	}
}

func TestCut(t *testing.T) {
	var w Writer
	w.OK()
	mark := w.Mark()
	w.Array(5)
	w.Int(1)
	w.Cut(mark)
	w.Error("ERR no")
	if string(w.Buf) != "+OK\r\n-ERR no\r\n" {
		t.Errorf("%q", w.Buf)
	}
}

func TestReaderValues(t *testing.T) {
	r := NewReader([]byte("|1\r\n+ttl\r\n:5\r\n%1\r\n,1.5\r\n#t\r\n=6\r\nmkd:hi\r\n!5\r\nERR x\r\n$-1\r\n*-1\r\n_\r\n"))
	want := []Value{
		{Kind: KindAttribute, N: 2}, {Kind: KindStatus, Data: []byte("ttl")}, {Kind: KindInt, Data: []byte("5")},
		{Kind: KindMap, N: 2}, {Kind: KindDouble, Data: []byte("1.5")}, {Kind: KindBool, Data: []byte("t")},
		{Kind: KindVerbatim, Data: []byte("hi"), Format: []byte("mkd")}, {Kind: KindBulkError, Data: []byte("ERR x")},
		{Kind: KindBulk, Null: true}, {Kind: KindArray, Null: true}, {Kind: KindNull, Null: true},
	}
	for i, w := range want {
		v, err := r.Next()
		if err != nil || v.Kind != w.Kind || v.Null != w.Null || v.N != w.N || !bytes.Equal(v.Data, w.Data) || !bytes.Equal(v.Format, w.Format) {
			t.Errorf("value %d is %+v %v, want %+v", i, v, err, w)
		}
	}
	if v := (Value{Data: []byte("-12")}); v.Int() != -12 || v.Double() != -12 {
		t.Error("Int or Double is wrong")
	}
	if !math.IsNaN(Value{Data: []byte("nan")}.Double()) || !(Value{Data: []byte("t")}).Bool() {
		t.Error("Double or Bool is wrong")
	}
}

func TestMalformedReplies(t *testing.T) {
	for _, s := range []string{"\r\n", "\n", "x\r\n", ":\r\n", ":1a\r\n", ":+1\r\n", ":1\n", "$-2\r\n", "$1\r\nab\r\n", "$x\r\n",
		"*-2\r\n", "*x\r\n", "%-1\r\n", "~-1\r\n", "_x\r\n", "#x\r\n", "#\r\n", ",x\r\n", "(1.5\r\n", "(\r\n", "(-\r\n", "=3\r\ntxt\r\n",
		"=4\r\ntxtx\r\n", "!-1\r\n", "*99999999999\r\n", "$99999999999\r\n", "$?\r\n", "\x00\r\n"} {
		if n, err := new(Scanner).Scan([]byte(s)); !errors.Is(err, ErrReply) {
			t.Errorf("%q: %d, %v", s, n, err)
		}
	}
}

func TestScannerInPieces(t *testing.T) {
	all := "|1\r\n+a\r\n:1\r\n" + everyReply3 + "*3\r\n*2\r\n%1\r\n:1\r\n$2\r\nxy\r\n_\r\n:1\r\n*0\r\n"
	var ends []int
	for pos := 0; pos < len(all); {
		n, err := new(Scanner).Scan([]byte(all[pos:]))
		if err != nil {
			t.Fatal(err)
		}
		pos += n
		ends = append(ends, pos)
	}
	if len(ends) != 21 {
		t.Fatalf("%d replies", len(ends))
	}
	var s Scanner
	start, found := 0, 0
	for end := range len(all) + 1 {
		for start < end {
			n, err := s.Scan([]byte(all[start:end]))
			if err != nil {
				if !errors.Is(err, ErrIncomplete) {
					t.Fatalf("%q: %v", all[start:end], err)
				}
				break
			}
			start += n
			if start != ends[found] {
				t.Fatalf("reply %d ends at %d, want %d", found, start, ends[found])
			}
			found++
		}
	}
	if found != len(ends) {
		t.Errorf("%d of %d replies found", found, len(ends))
	}
}

func TestReaderAllocatesNothing(t *testing.T) {
	in := []byte(everyReply3)
	if n := testing.AllocsPerRun(100, func() {
		for r := NewReader(in); !r.Done(); {
			if err := r.Skip(); err != nil {
				t.Fatal(err)
			}
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte(everyReply2))
	f.Add([]byte(everyReply3))
	f.Add([]byte(strings.Repeat("*1\r\n", 1000) + ":1\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var s Scanner
		n, err := s.Scan(b)
		if err != nil {
			return
		}
		if n > len(b) {
			t.Fatalf("%d of %d bytes", n, len(b))
		}
		// The same in two pieces, and nothing before the end is complete.
		for cut := range n {
			var s Scanner
			if _, err := s.Scan(b[:cut]); !errors.Is(err, ErrIncomplete) {
				t.Fatalf("%q: %v", b[:cut], err)
			}
			if k, err := s.Scan(b); k != n || err != nil {
				t.Fatalf("cut at %d: %d, %v, want %d", cut, k, err, n)
			}
			if cut > 200 {
				break
			}
		}
	})
}

func BenchmarkReaderArray(b *testing.B) {
	var w Writer
	w.Array(100)
	for range 100 {
		w.BulkString("member")
	}
	b.ReportAllocs()
	for b.Loop() {
		r := NewReader(w.Buf)
		if err := r.Skip(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkWriterBulk(b *testing.B) {
	var w Writer
	value := bytes.Repeat([]byte("x"), 32)
	for b.Loop() {
		w.Buf = w.Buf[:0]
		w.Bulk(value)
	}
}
