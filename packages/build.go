package main

// The binaries, the licences of their parts, and the check that two builds give the same bytes.

import (
	"bytes"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
)

// build compiles the server for all platforms. A binary depends on nothing of the machine: no paths, no time, no C compiler,
// no state of the checkout.
func (r *release) build(twice bool) error {
	r.binaries = map[platform][]byte{}
	tmp, err := os.MkdirTemp("", "limitkv-packages-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	for _, p := range r.platforms {
		binary, err := r.compile(p, ".", filepath.Join(tmp, p.program()), nil)
		if err != nil {
			return err
		}
		r.binaries[p] = binary
	}
	if r.licences, err = licences(r.binaries[r.platforms[0]]); err != nil || !twice {
		return err
	}
	elsewhere := filepath.Join(tmp, "elsewhere")
	if out, err := exec.Command("git", "clone", "--quiet", "--no-tags", ".", elsewhere).CombinedOutput(); err != nil {
		return fmt.Errorf("git clone: %s", out)
	}
	for _, p := range r.platforms {
		again, err := r.compile(p, elsewhere, filepath.Join(tmp, p.program()), []string{"GOCACHE=" + filepath.Join(tmp, "cache")})
		if err != nil {
			return err
		}
		if !bytes.Equal(again, r.binaries[p]) {
			return fmt.Errorf("%v: two builds differ: is everything committed?", p)
		}
		fmt.Printf("%v: built twice, the same %d bytes\n", p, len(again))
	}
	return nil
}

func (r *release) compile(p platform, source, target string, env []string) ([]byte, error) {
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags", "-s -w -buildid=", "-o", target, "./cmd/limitkv")
	cmd.Dir = source
	// Variables that change the instructions used are set to Go's defaults.
	cmd.Env = append(append(os.Environ(), "GOOS="+p.os, "GOARCH="+p.arch, "CGO_ENABLED=0", "GOFLAGS=-mod=readonly", "GOAMD64=v1", "GOARM64=v8.0",
		"GOEXPERIMENT=", "GOWORK=off"), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go build for %v: %s", p, out)
	}
	return os.ReadFile(target)
}

// licences returns the licence texts of Go and of all modules linked into a binary. Whoever distributes the binary must
// distribute them too.
func licences(binary []byte) ([]byte, error) {
	info, err := buildinfo.Read(bytes.NewReader(binary))
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString("limitkv is under the MIT licence, see LICENSE. It contains the following.\n")
	add := func(name, dir string) error {
		text, err := licence(dir)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		fmt.Fprintf(&b, "\n%s\n%s\n\n%s\n", strings.Repeat("=", 72), name, bytes.TrimSpace(text))
		return nil
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, err
	}
	if err := add("Go's standard library, "+runtime.Version(), strings.TrimSpace(string(root))); err != nil {
		return nil, err
	}
	for _, m := range info.Deps {
		dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", m.Path).Output()
		if err != nil {
			return nil, fmt.Errorf("go list -m %s: %w", m.Path, err)
		}
		if err := add(path.Join(m.Path)+" "+m.Version, strings.TrimSpace(string(dir))); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// licence returns the licence text in a module's folder, under one of the usual names.
func licence(dir string) ([]byte, error) {
	for _, name := range []string{"LICENSE", "LICENSE.txt", "LICENSE.md", "COPYING"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if !errors.Is(err, os.ErrNotExist) {
			return text, err
		}
	}
	return nil, errors.New("it has no licence")
}
