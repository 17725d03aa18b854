package rdb

import (
	"encoding/hex"
	"strings"
	"testing"
)

// What Redis 8.0.6 answered to DUMP of strings in all their forms.
var dumped = []struct{ value, payload string }{
	{"7", "00c0070c00bfbb7c62798150db"},
	{"-300", "00c1d4fe0c000db2b2e304944067"},
	{"123456", "00c240e201000c0088507334b933ecca"},
	{"hello", "000568656c6c6f0c00a804ebb69f1ebe43"},
	{strings.Repeat("abc", 60), "00c30b40b40361626361e0a5020162630c00e02d5f6c960c5d24"},
	{strings.Repeat("x", 100), "00c3094064017878e057000178780c0096c1c2a34122fc16"},
	{"#!lua name=a\nredis.register_function(\"f\", function() return 1 end)",
		"f5404223216c7561206e616d653d610a72656469732e72656769737465725f66756e6374696f6e282266222c2066756e6374696f6e28292072657475726e203120656e64290c00be49667bcc425399"},
}

func TestReadsRedis(t *testing.T) {
	for _, d := range dumped {
		payload, _ := hex.DecodeString(d.payload)
		body, ok := CheckFooter(payload)
		if !ok {
			t.Fatalf("%q: the footer is refused", d.value)
		}
		r := NewReader(body)
		if _, err := r.Type(); err != nil {
			t.Fatal(err)
		}
		got, err := r.String()
		if err != nil || string(got) != d.value || r.More() {
			t.Errorf("got %q, %v; want %q", got, err, d.value)
		}
		for i := range payload {
			wrong := append([]byte(nil), payload...)
			wrong[i] ^= 1
			if _, ok := CheckFooter(wrong); ok {
				t.Errorf("%q: byte %d may be changed", d.value, i)
			}
		}
	}
}

func TestWritesAsRedis(t *testing.T) {
	for _, i := range []int{3, 6} { // those that Redis leaves as they are
		payload, _ := hex.DecodeString(dumped[i].payload)
		got := AppendFooter(AppendString(payload[:1:1], dumped[i].value))
		if hex.EncodeToString(got) != dumped[i].payload {
			t.Errorf("%q: %x", dumped[i].value, got)
		}
	}
}

func TestLengths(t *testing.T) {
	for _, n := range []int{0, 1, 63, 64, 1<<14 - 1, 1 << 14, 1<<32 - 1, 1 << 32} {
		r := NewReader(AppendLength(nil, n))
		if got, err := r.Length(); err != nil || got != uint64(n) || r.More() {
			t.Errorf("%d: %d, %v", n, got, err)
		}
	}
}

// FuzzString: nothing that claims to be a string does harm.
func FuzzString(f *testing.F) {
	for _, d := range dumped {
		payload, _ := hex.DecodeString(d.payload)
		f.Add(payload[1:])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if s, err := NewReader(b).String(); err == nil && len(s) > 20+len(b)*lzfGrowthMax {
			t.Fatalf("%d bytes of %d", len(s), len(b))
		}
	})
}
