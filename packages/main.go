// Command packages writes all files of a release: archives with the binary for each platform, and packages for Python, Node,
// Java, Debian and containers that contain it. "make packages" and "make release" run it.
//
// The same tree and version give the same bytes, on any machine with the same versions of Go and Java: files are sorted, and
// have the time of the last commit (or SOURCE_DATE_EPOCH). Formats that are archives with a few text files (wheel, npm
// package, jar, deb) are written here, not by the tools of four languages, each of which would need its own measures for that.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/limitkv/limitkv/server"
)

// release is a release to build.
type release struct {
	version   string // 1.2.3 or 1.2.3-rc.1
	time      time.Time
	out       string // the folder, emptied first
	platforms []platform
	binaries  map[platform][]byte
	licences  []byte // of all code linked into the binary
}

// kind is a kind of package.
type kind struct {
	name string
	make func(r *release) error
}

// kinds are the parts of a release, in the order in which they are made.
var kinds = []kind{
	{"archives", (*release).archives},
	{"python", (*release).wheels},
	{"npm", (*release).npm},
	{"java", (*release).jars},
	{"deb", (*release).debs},
	{"container", (*release).container},
}

func main() {
	r := &release{version: server.Version}
	flag.StringVar(&r.out, "out", "dist", "the folder that gets everything, emptied first")
	of := flag.String("platforms", "all", "those to build for, as linux/amd64,linux/arm64")
	only := flag.String("only", "", "the kinds of package to make, as python,npm; all unless given")
	twice := flag.Bool("twice", false, "build each binary twice, the second time from a copy of the tree without Go's cache, and compare")
	flag.Parse()
	if err := r.run(*of, *only, *twice); err != nil {
		fmt.Fprintln(os.Stderr, "packages:", err)
		os.Exit(1)
	}
}

func (r *release) run(of, only string, twice bool) (err error) {
	if r.platforms, err = choose(of); err != nil {
		return err
	}
	if r.time, err = sourceTime(); err != nil {
		return err
	}
	var names []string
	if only != "" {
		names = strings.Split(only, ",")
	}
	for _, name := range names {
		if !slices.ContainsFunc(kinds, func(k kind) bool { return k.name == name }) {
			return fmt.Errorf("no kind of package is called %q", name)
		}
	}
	if err := os.RemoveAll(r.out); err != nil {
		return err
	}
	if err := r.build(twice); err != nil {
		return err
	}
	for _, k := range kinds {
		if names != nil && !slices.Contains(names, k.name) {
			continue
		}
		if err := k.make(r); err != nil {
			return fmt.Errorf("%s: %w", k.name, err)
		}
	}
	if err := r.bill(); err != nil {
		return err
	}
	return r.sums()
}

// sourceTime returns the time for all files: SOURCE_DATE_EPOCH, or that of the last commit.
func sourceTime() (time.Time, error) {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		out, err := exec.Command("git", "log", "-1", "--format=%ct").Output()
		if err != nil {
			return time.Time{}, errors.New("there is no git history to take the time from: set SOURCE_DATE_EPOCH")
		}
		text = strings.TrimSpace(string(out))
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil || seconds < zipEpoch {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH: %q is not a Unix time since 1980, when zip's times begin", text)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// write writes a file of the release.
func (r *release) write(name string, data []byte) error {
	path := filepath.Join(r.out, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}

// fill replaces the placeholder for the version in a file.
func (r *release) fill(text []byte) []byte {
	return []byte(strings.ReplaceAll(string(text), "@VERSION@", r.version))
}
