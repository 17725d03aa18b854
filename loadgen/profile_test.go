package main

// The file names that are removed from a profile.

import (
	"bytes"
	"compress/gzip"
	"io"
	"runtime/pprof"
	"testing"
	"time"
)

func TestWithoutPaths(t *testing.T) {
	var profile bytes.Buffer
	if err := pprof.StartCPUProfile(&profile); err != nil {
		t.Skip(err) // the tests are profiled
	}
	for began, n := time.Now(), 0; time.Since(began) < 200*time.Millisecond; n++ {
		_ = shaOf("some work")
	}
	pprof.StopCPUProfile()
	before := unpacked(t, profile.Bytes())
	kept, err := withoutPaths(profile.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	after := unpacked(t, kept)
	if !bytes.Contains(before, []byte("profile_test.go")) {
		t.Fatal("the profile names no file")
	}
	if bytes.Contains(after, []byte("profile_test.go")) {
		t.Error("the name of a file is left")
	}
	if function := []byte("loadgen.shaOf"); !bytes.Contains(after, function) || bytes.Count(after, function) != bytes.Count(before, function) {
		t.Error("the functions are not what they were")
	}
	for _, bad := range []string{"", "no gzip"} {
		if _, err := withoutPaths([]byte(bad)); err == nil {
			t.Errorf("%q is no profile", bad)
		}
	}
	var cut bytes.Buffer
	w := gzip.NewWriter(&cut)
	if _, err := w.Write(before[:len(before)-1]); err != nil || w.Close() != nil {
		t.Fatal("gzip")
	}
	if _, err := withoutPaths(cut.Bytes()); err == nil {
		t.Error("a profile that was cut off is none")
	}
}

func unpacked(t *testing.T, b []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
