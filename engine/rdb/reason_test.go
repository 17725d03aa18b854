package rdb

// The errors for damaged payloads: tools search for Redis's words in the log.

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
)

// zsetZiplist is the payload of a sorted set from Redis before 7; its tail offset is 0x1b.
const zsetZiplist = "0c20200000001b000000060000016103c0010004016203c0020004016303c00300ff"

func TestReasons(t *testing.T) {
	for _, x := range []struct{ name, body, find, replace, reason string }{
		{"whole", zsetZiplist, "", "", ""},
		{"tail offset one less", zsetZiplist, "1b0000", "1a0000", "Zset ziplist"},
		{"tail offset one more", zsetZiplist, "1b0000", "1c0000", "Zset ziplist"},
		{"one element more", zsetZiplist, "0600000161", "0700000161", "Zset ziplist"},
		{"a hash's ziplist", "0d" + zsetZiplist[2:], "1b0000", "1a0000", "Hash ziplist"},
		{"a list's ziplist", "0a" + zsetZiplist[2:], "1b0000", "1a0000", "List ziplist"},
		{"a node's ziplist", "0e01" + zsetZiplist[2:], "1b0000", "1a0000", "Ziplist"},
		{"an empty ziplist's tail offset", "0c0b0b0000000b000000" + "0000ff", "", "", "Zset ziplist"},
		{"an intset", "0b14040000000300000090eefeff010000002c010000", "03000000", "04000000", "Intset"},
		{"a set's listpack", "140f0f00000003008161020101816202ff", "816102", "816103", "Set listpack"},
		{"a hash's listpack", "1012120000000400816602817602816e020c01ff", "816602", "826602", "Hash listpack"},
		{"a zipmap", "0907010161010030ff", "0701", "0702", "Zipmap"},
		{"a list's listpack", "120102161600000005008161020101dffb02f2701101048001ff", "16000000", "17000000", "Listpack"},
		{"a stream's listpack", "15011000000000000000010000000000000001c3353c12", "15011000", "15010f00", "Stream listpack"},
	} {
		text := x.body
		if x.find != "" {
			if text = strings.Replace(x.body, x.find, x.replace, 1); text == x.body {
				t.Fatalf("%s: nothing is replaced", x.name)
			}
		}
		body, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(x.name, err)
		}
		v, err := Load(AppendFooter(body), limits)
		switch {
		case x.reason == "" && err != nil:
			t.Errorf("%s: %v", x.name, err)
		case x.reason == "":
			check(t, v)
		case !errors.Is(err, ErrFormat) || !strings.HasSuffix(err.Error(), ": "+x.reason+" integrity check failed"):
			t.Errorf("%s: %v, want %s", x.name, err, x.reason)
		}
	}
}

// TestDeadlineMax checks the deadline of a field at the limit and just above, in the packed form.
func TestDeadlineMax(t *testing.T) {
	for at, ok := range map[string]bool{"ffffffffffff0000": true, "0000000000000100": false, "ffffffffffffff7f": false, "ffffffffffffffff": false} {
		lp := "0000000003008166028176" + "02f4" + at + "09ff"
		b, _ := hex.DecodeString(lp)
		b[0] = byte(len(b))
		body := append([]byte{typeHashPackedDue1, byte(len(b))}, b...)
		v, err := Load(AppendFooter(body), limits)
		if (err == nil) != ok {
			t.Errorf("the deadline %s: %v", at, err)
		}
		if err == nil {
			check(t, v)
		}
	}
}

// TestUnchecked checks that Limits.Unchecked ignores checksums, and nothing else.
func TestUnchecked(t *testing.T) {
	payload := AppendDump(nil, entry(load(t, AppendFooter([]byte{typeString, 1, 'x'}), limits)), format)
	payload[len(payload)-1] ^= 1
	lim := limits
	if _, err := Load(payload, lim); !errors.Is(err, ErrChecksum) {
		t.Errorf("a wrong checksum: %v", err)
	}
	lim.Unchecked = true
	if v, err := Load(payload, lim); err != nil || string(v.String) != "x" {
		t.Errorf("a checksum that is not looked at: %v", err)
	}
	for _, short := range [][]byte{nil, {}, bytes.Repeat([]byte{0}, FooterBytes-1)} {
		if _, err := Load(short, lim); !errors.Is(err, ErrChecksum) {
			t.Errorf("%d bytes: %v", len(short), err)
		}
	}
	later := bytes.Clone(payload)
	later[len(later)-FooterBytes] = Version + 1
	if _, err := Load(later, lim); !errors.Is(err, ErrChecksum) {
		t.Errorf("a later version: %v", err)
	}
}
