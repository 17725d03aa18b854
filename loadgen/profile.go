package main

// The profile for compiling the server, cmd/limitkv/default.pgo. The go command finds it there, and the compiler inlines more
// on hot paths. It is made of all workloads, with equal time for each, so that none is preferred. A profile that is older than
// the code does no harm: changed functions are compiled as without it.

import (
	"bytes"
	"compress/gzip"
	varint "encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// profileWaitMax is how long the server may take to write its profile.
const profileWaitMax = 10 * time.Second

var errNoProfile = errors.New("the server wrote no profile: it has to be built with -tags profile, as make profile does")

func runProfile(args []string) error {
	p := params{connections: 50, pipeline: 16, valueBytes: 32, warmup: 300 * time.Millisecond, threads: max(1, runtime.NumCPU()/2)}
	flags := flag.NewFlagSet("limitkv-benchmark profile", flag.ExitOnError)
	path := flags.String("limitkv", "bin/limitkv-profile", "limitkv's binary, built with -tags profile")
	recordings := flags.String("recordings", recordingsDir(), "where recordings are kept")
	out := flags.String("out", "cmd/limitkv/default.pgo", "file to write")
	flags.DurationVar(&p.duration, "duration", time.Second, "how long to load the server with each workload")
	_ = flags.Parse(args) // it exits on errors
	recorded, missing, err := recordedWorkloads(*recordings)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return fmt.Errorf("there is no recording of %s: limitkv-benchmark record makes them", strings.Join(missing, ", "))
	}
	profile, err := profileOf(*path, slices.Concat(workloads(), recorded), &p)
	if err != nil {
		return err
	}
	return os.WriteFile(*out, profile, 0o644)
}

// profileOf loads a server with workloads in turn and returns its profile.
func profileOf(path string, works []*workload, p *params) ([]byte, error) {
	dir, err := os.MkdirTemp("", "limitkv-profile")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "profile")
	if err := os.Setenv("LIMITKV_PROFILE", file); err != nil {
		return nil, err
	}
	s, err := program{name: "limitkv", path: path, args: serverArgs}.start()
	if err != nil {
		return nil, err
	}
	defer s.stop()
	for _, w := range works {
		if err := s.prepare(w, p); err != nil {
			return nil, err
		}
		r, err := s.run(w, p)
		if err != nil {
			return nil, err
		}
		fmt.Printf("%s: %.0f requests a second\n", w.name, r.PerSecond)
	}
	if err := send(s.pid, syscall.SIGQUIT); err != nil {
		return nil, err
	}
	for began := time.Now(); time.Since(began) < profileWaitMax; time.Sleep(10 * time.Millisecond) {
		if b, err := os.ReadFile(file); err == nil {
			return withoutPaths(b)
		}
	}
	return nil, errNoProfile
}

// stringTable is the number of the field with the strings in a pprof profile.
const stringTable = 6

// withoutPaths removes file names from a profile, which reveal where the sources and the binary are. The compiler needs only
// functions and lines. A profile is a protobuf message; the strings keep their positions, since all else refers to them by
// position.
func withoutPaths(profile []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(profile))
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	for len(b) > 0 {
		tag, n := varint.Uvarint(b)
		v, m := varint.Uvarint(b[max(n, 0):])
		if n <= 0 || m <= 0 || tag&7 != 0 && (tag&7 != 2 || v > uint64(len(b)-n-m)) {
			return nil, errors.New("this is no profile")
		}
		end := n + m
		if tag&7 == 2 {
			end += int(v)
		}
		if text := b[n+m : end]; tag>>3 == stringTable && bytes.HasPrefix(text, []byte("/")) {
			_, err = w.Write(append(slices.Clone(b[:n]), 0))
		} else {
			_, err = w.Write(b[:end])
		}
		if err != nil {
			return nil, err
		}
		b = b[end:]
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
