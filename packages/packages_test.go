package main

// The properties of packages that Go alone can check: the same bytes each time, and the requirements of each format. Whether
// they install and work is tested by the install-test of each language.

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/server"
)

// made makes all kinds of packages except those that need other tools, with placeholder bytes for binaries.
func made(t *testing.T) (dir string) {
	t.Helper()
	r := &release{version: "1.2.3-rc.4", time: time.Unix(1_700_000_000, 0).UTC(), out: t.TempDir(), platforms: platforms,
		binaries: map[platform][]byte{}, licences: []byte("licences\n")}
	for _, p := range platforms {
		r.binaries[p] = []byte("the program for " + p.String())
	}
	for _, k := range kinds {
		if k.name == "java" {
			continue // it needs a compiler, and is tested by its install-test
		}
		if err := k.make(r); err != nil {
			t.Fatalf("%s: %v", k.name, err)
		}
	}
	if err := r.sums(); err != nil {
		t.Fatal(err)
	}
	return r.out
}

func TestMain(m *testing.M) {
	if err := os.Chdir(".."); err != nil { // the program's working directory
		panic(err)
	}
	os.Exit(m.Run())
}

func TestSameBytes(t *testing.T) {
	a, b := made(t), made(t)
	var sums [2][]byte
	for i, dir := range []string{a, b} {
		text, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
		if err != nil {
			t.Fatal(err)
		}
		sums[i] = text
	}
	if !bytes.Equal(sums[0], sums[1]) {
		t.Errorf("two runs differ:\n%s\n%s", sums[0], sums[1])
	}
	lines := strings.Split(strings.TrimSpace(string(sums[0])), "\n")
	if len(lines) < 3*len(platforms) {
		t.Errorf("only %d files were made", len(lines))
	}
	for _, line := range lines {
		sum, name, _ := strings.Cut(line, "  ")
		data, err := os.ReadFile(filepath.Join(a, name))
		if got := sha256.Sum256(data); err != nil || hex.EncodeToString(got[:]) != sum {
			t.Errorf("%s: %v, or not what SHA256SUMS says", name, err)
		}
	}
}

// A wheel's RECORD has each file with its checksum, its name has its tags, and the program is executable.
func TestWheels(t *testing.T) {
	dir := made(t)
	for _, p := range platforms {
		name := filepath.Join(dir, "python", "limitkv-1.2.3rc4-py3-none-"+p.wheel+".whl")
		z, err := zip.OpenReader(name)
		if err != nil {
			t.Fatal(err)
		}
		files := map[string]string{}
		for _, f := range z.File {
			in, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			data, err := io.ReadAll(in)
			if err != nil {
				t.Fatal(err)
			}
			if program := strings.HasPrefix(f.Name, "limitkv/bin/"); program != (f.Mode()&0o111 != 0) {
				t.Errorf("%s: %s has the mode %v", name, f.Name, f.Mode())
			}
			files[f.Name] = string(data)
		}
		z.Close()
		const info = "limitkv-1.2.3rc4.dist-info/"
		want := ""
		for line := range strings.Lines(files[info+"RECORD"]) {
			file, _, _ := strings.Cut(line, ",")
			sum := sha256.Sum256([]byte(files[file]))
			if file != info+"RECORD" {
				want += fmt.Sprintf("%s,sha256=%s,%d\n", file, base64.RawURLEncoding.EncodeToString(sum[:]), len(files[file]))
			}
		}
		want += info + "RECORD,,\n"
		if files[info+"RECORD"] != want || strings.Count(want, "\n") != len(files) {
			t.Errorf("%s: RECORD is %q, want %q", name, files[info+"RECORD"], want)
		}
		if files["limitkv/bin/"+p.program()] != "the program for "+p.String() {
			t.Errorf("%s has another program", name)
		}
		if !strings.Contains(files[info+"METADATA"], "\nVersion: 1.2.3rc4\n") || !strings.Contains(files["limitkv/__init__.py"], `"1.2.3rc4"`) {
			t.Errorf("%s has another version", name)
		}
		if got := strings.Count(files[info+"WHEEL"], "Tag: py3-none-"); got != 1+strings.Count(p.wheel, ".") {
			t.Errorf("%s has %d tags", name, got)
		}
	}
}

// The files of packages/integrations/ are published unchanged, for all platforms.
func TestIntegrations(t *testing.T) {
	dir := made(t)
	same := func(path string, got []byte) {
		t.Helper()
		if want, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %v, or another one is published", path, err)
		}
	}
	z, err := zip.OpenReader(filepath.Join(dir, "python", "limitkv_limits-1.2.3rc4-py3-none-any.whl"))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	text := func(name string) []byte {
		f, err := z.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		data, err := io.ReadAll(f)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	same("packages/integrations/python-limits/limitkv_limits.py", text("limitkv_limits.py"))
	const info = "limitkv_limits-1.2.3rc4.dist-info/"
	if w := string(text(info + "WHEEL")); !strings.Contains(w, "Root-Is-Purelib: true\nTag: py3-none-any\n") {
		t.Error(w)
	}
	if m := string(text(info + "METADATA")); !strings.Contains(m, "\nVersion: 1.2.3rc4\n") || !strings.Contains(m, "\nRequires-Dist: limits") {
		t.Error(m)
	}
	if strings.Count(string(text(info+"RECORD")), "\n") != len(z.File) {
		t.Errorf("%d files, RECORD is %s", len(z.File), text(info+"RECORD"))
	}
	data, err := os.ReadFile(filepath.Join(dir, "npm", "limitkv-middleware-1.2.3-rc.4.tgz"))
	if err != nil {
		t.Fatal(err)
	}
	files, _ := contents(t, data)
	for _, name := range []string{"express.js", "fastify.js", "limiter.js"} {
		same("packages/integrations/node/"+name, []byte(files["package/"+name]))
	}
	if m := files["package/package.json"]; !strings.Contains(m, `"version": "1.2.3-rc.4"`) || !json.Valid([]byte(m)) {
		t.Error(m)
	}
}

// contents reads a tar.gz: its files with their modes.
func contents(t *testing.T, data []byte) (files map[string]string, modes map[string]int64) {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	files, modes = map[string]string{}, map[string]int64{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return files, modes
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || !h.ModTime.Equal(time.Unix(1_700_000_000, 0)) {
			t.Errorf("%s is of %d, at %v", h.Name, h.Uid, h.ModTime)
		}
		files[h.Name], modes[h.Name] = string(text), h.Mode
	}
}

// npm's main package depends on the package for each platform, at the same version.
func TestNPM(t *testing.T) {
	dir := made(t)
	type manifest struct {
		Name, Version        string
		OS, CPU              []string
		OptionalDependencies map[string]string
	}
	read := func(name string) (m manifest, files map[string]string, modes map[string]int64) {
		data, err := os.ReadFile(filepath.Join(dir, "npm", name+"-1.2.3-rc.4.tgz"))
		if err != nil {
			t.Fatal(err)
		}
		files, modes = contents(t, data)
		if err := json.Unmarshal([]byte(files["package/package.json"]), &m); err != nil {
			t.Fatal(err)
		}
		if m.Version != "1.2.3-rc.4" {
			t.Errorf("%s has the version %s", name, m.Version)
		}
		return m, files, modes
	}
	of, _, modes := read("limitkv")
	if len(of.OptionalDependencies) != len(platforms) || modes["package/run.js"] != 0o755 {
		t.Errorf("limitkv: %v, %v", of, modes)
	}
	for _, p := range platforms {
		m, files, modes := read("limitkv-" + p.npm)
		if of.OptionalDependencies[m.Name] != m.Version || strings.Join(append(m.OS, m.CPU...), "-") != p.npm {
			t.Errorf("%v: %+v", p, m)
		}
		if program := "package/" + p.program(); files[program] != "the program for "+p.String() || modes[program] != 0o755 {
			t.Errorf("%v has another program", p)
		}
	}
}

func TestArguments(t *testing.T) {
	for _, list := range []string{"", "linux", "plan9/amd64", "linux/amd64,linux/amd64", "linux/amd64,"} {
		if got, err := choose(list); err == nil {
			t.Errorf("platforms %q: %v", list, got)
		}
	}
	if got, err := choose("windows/arm64,linux/amd64"); err != nil || len(got) != 2 || got[0].os != "linux" {
		t.Error(got, err)
	}
	for text, is := range map[string]bool{"1700000000": true, fmt.Sprint(zipEpoch - 1): false, fmt.Sprint(zipEpoch): true, "now": false} {
		t.Setenv("SOURCE_DATE_EPOCH", text)
		if at, err := sourceTime(); (err == nil) != is {
			t.Errorf("SOURCE_DATE_EPOCH %q: %v, %v", text, at, err)
		}
	}
}

// All kinds of packages can express the version, and CHANGELOG and README have the same one.
func TestVersion(t *testing.T) {
	if !regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-(alpha|beta|rc)\.(0|[1-9]\d*))?$`).MatchString(server.Version) {
		t.Errorf("%q is not a version such as 1.2.3 or 1.2.3-rc.1", server.Version)
	}
	for name, says := range map[string]string{"CHANGELOG.md": `(?m)^## (\S+)`, "README.md": `limitkv_(\S+)_amd64\.deb`} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if m := regexp.MustCompile(says).FindSubmatch(text); m == nil || string(m[1]) != server.Version {
			t.Errorf("%s says %q, the server %s", name, m, server.Version)
		}
	}
	out, err := exec.Command("make", "-n", "release").Output()
	if err != nil || !strings.Contains(string(out), "-out dist/"+server.Version+" ") {
		t.Errorf("make release does %s (%v)", out, err)
	}
}
