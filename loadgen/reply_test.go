package main

// Replies are scanned correctly, however they are split.

import (
	"strings"
	"testing"
)

func TestScan(t *testing.T) {
	for _, c := range []struct {
		text string
		want reply
	}{
		{"+OK\r\n", reply{kind: '+'}},
		{"-ERR no\r\n", reply{kind: '-'}},
		{":-42\r\n", reply{kind: ':', n: -42}},
		{"$5\r\nhe\r\nl\r\n", reply{kind: '$', n: 5}},
		{"$0\r\n\r\n", reply{kind: '$'}},
		{"$-1\r\n", reply{kind: '$', n: -1, null: true}},
		{"*-1\r\n", reply{kind: '*', n: -1, null: true}},
		{"_\r\n", reply{kind: '_', null: true}},
		{"*0\r\n", reply{kind: '*'}},
		{"*5\r\n:1\r\n:10\r\n:0\r\n:99\r\n:7\r\n", reply{kind: '*', n: 5, first: 1}},
		{"*2\r\n*2\r\n$1\r\na\r\n*1\r\n:3\r\n$-1\r\n", reply{kind: '*', n: 2}},
		{"%1\r\n+a\r\n*2\r\n,1.5\r\n#t\r\n", reply{kind: '%', n: 1}},
	} {
		var r reply
		n := scan([]byte(c.text+"+next\r\n"), &r)
		if r.text = nil; n != len(c.text) || r.kind != c.want.kind || r.n != c.want.n || r.first != c.want.first || r.null != c.want.null {
			t.Errorf("%q: %d bytes, %+v; want %d, %+v", c.text, n, r, len(c.text), c.want)
		}
		for i := range len(c.text) {
			if n := scan([]byte(c.text[:i]), &r); n != 0 {
				t.Errorf("%q: %d bytes although it is not complete", c.text[:i], n)
			}
		}
	}
	for _, text := range []string{"?x\r\n", "HTTP/1.1\r\n\r\n", ":1\rx"} {
		var r reply
		if n := scan([]byte(text), &r); n != malformed {
			t.Errorf("%q: %d, although it is no reply", text, n)
		}
	}
}

func TestPattern(t *testing.T) {
	p := command("SET", "{a:###}:b", "###-##", strings.Repeat("v", 11))
	want := "*4\r\n$3\r\nSET\r\n$9\r\n{a:007}:b\r\n$6\r\n123-45\r\n$11\r\nvvvvvvvvvvv\r\n"
	if got := string(p.append([]byte("x"), 7, 123, 45)); got != "x"+want {
		t.Errorf("%q, want %q", got, want)
	}
	if n := testing.AllocsPerRun(100, func() { p.append(make([]byte, 0, 100), 7, 123, 45) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzScan(f *testing.F) {
	f.Add([]byte("*2\r\n$1\r\na\r\n:1\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var r reply
		if n := scan(b, &r); n > len(b) || n < malformed {
			t.Fatalf("%d of %d bytes", n, len(b))
		}
	})
}
