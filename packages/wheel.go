package main

// Wheels: for each platform a zip with the Python package, the binary and pip's metadata; and one for all platforms with the
// storage from packages/integrations/.

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"slices"
	"strings"
)

// pythonVersion returns the version in Python's form: 1.2.3rc1 for 1.2.3-rc.1.
func pythonVersion(version string) string {
	return strings.NewReplacer("-alpha.", "a", "-beta.", "b", "-rc.", "rc").Replace(version)
}

// wheels writes all wheels.
func (r *release) wheels() error {
	sources, err := readFiles("packages/python/limitkv", "limitkv")
	if err != nil {
		return err
	}
	for i := range sources {
		sources[i].data = []byte(strings.ReplaceAll(string(sources[i].data), "@VERSION@", pythonVersion(r.version)))
	}
	texts, err := r.texts()
	if err != nil {
		return err
	}
	points, err := os.ReadFile("packages/python/entry_points.txt")
	if err != nil {
		return err
	}
	for _, p := range r.platforms {
		w := wheel{name: "limitkv", tags: p.wheel, about: "packages/python", texts: texts, info: []file{{"entry_points.txt", 0o644, points}}}
		w.files = append(slices.Clone(sources), file{"limitkv/bin/" + p.program(), 0o755, r.binaries[p]})
		if err := r.wheel(w); err != nil {
			return err
		}
	}
	storage, err := os.ReadFile("packages/integrations/python-limits/limitkv_limits.py")
	if err != nil {
		return err
	}
	return r.wheel(wheel{name: "limitkv_limits", tags: "any", about: "packages/python/limits", texts: texts[:1],
		files: []file{{"limitkv_limits.py", 0o644, storage}}})
}

// wheel is a Python package.
type wheel struct {
	name  string
	tags  string // the platforms, "any" if it has no binary
	about string // the folder with METADATA and README.md
	texts []file // the licences
	files []file
	info  []file // further files of .dist-info
}

func (r *release) wheel(w wheel) error {
	version := pythonVersion(r.version)
	metadata, err := os.ReadFile(w.about + "/METADATA")
	if err != nil {
		return err
	}
	readme, err := os.ReadFile(w.about + "/README.md")
	if err != nil {
		return err
	}
	info := w.name + "-" + version + ".dist-info/"
	var kind strings.Builder
	fmt.Fprintf(&kind, "Wheel-Version: 1.0\nGenerator: limitkv\nRoot-Is-Purelib: %t\n", w.tags == "any")
	for tag := range strings.SplitSeq(w.tags, ".") {
		fmt.Fprintf(&kind, "Tag: py3-none-%s\n", tag)
	}
	files := append(slices.Clone(w.files),
		file{info + "METADATA", 0o644, []byte(strings.ReplaceAll(string(metadata), "@VERSION@", version) + "\n" + string(readme))},
		file{info + "WHEEL", 0o644, []byte(kind.String())})
	for _, f := range w.info {
		files = append(files, file{info + f.name, f.mode, f.data})
	}
	for _, t := range w.texts {
		files = append(files, file{info + "licenses/" + t.name, t.mode, t.data})
	}
	var record strings.Builder
	for _, f := range files {
		sum := sha256.Sum256(f.data)
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", f.name, base64.RawURLEncoding.EncodeToString(sum[:]), len(f.data))
	}
	fmt.Fprintf(&record, "%sRECORD,,\n", info)
	data, err := zipOf(append(files, file{info + "RECORD", 0o644, []byte(record.String())}), r.time)
	if err != nil {
		return err
	}
	return r.write("python/"+w.name+"-"+version+"-py3-none-"+w.tags+".whl", data)
}
