package config

// Loading a file, or all files of a folder, and loading again whenever one has changed.

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Source says where the configuration is.
type Source struct {
	// Path is a file, or a folder with files named *.yaml or *.yml. Files whose names begin with a dot are ignored.
	Path string
	// Merge allows several files to have parts of one domain.
	Merge bool
}

// fileMax is the largest size of a file. One with a hundred thousand descriptors has about 15 MB.
const fileMax = 256 << 20

// Text is the content of a file.
type Text struct {
	Name string
	Data []byte
}

// Parse makes a configuration from files.
func Parse(files []Text, merge bool) (*Config, error) {
	c := &Config{domains: map[string]*node{}, Files: len(files)}
	for _, f := range files {
		p := &parser{name: f.Name}
		if err := p.parse(f.Data, c.domains, merge); err != nil {
			return nil, err
		}
		c.Warnings = append(c.Warnings, p.warnings...)
		c.Limits += p.limits
	}
	return c, nil
}

// read reads all files, in the order of their names.
func (s Source) read() ([]Text, error) {
	info, err := os.Stat(s.Path)
	if err != nil {
		return nil, err
	}
	names := []string{s.Path}
	if info.IsDir() {
		entries, err := os.ReadDir(s.Path)
		if err != nil {
			return nil, err
		}
		names = nil
		for _, e := range entries {
			name := filepath.Join(s.Path, e.Name())
			ext := filepath.Ext(name)
			if strings.HasPrefix(e.Name(), ".") || ext != ".yaml" && ext != ".yml" {
				continue
			}
			// Ignore folders with such a name; follow links to files.
			if info, err := os.Stat(name); err != nil {
				return nil, err
			} else if !info.IsDir() {
				names = append(names, name)
			}
		}
		if len(names) == 0 {
			return nil, fmt.Errorf("%s: no file *.yaml or *.yml", s.Path)
		}
		slices.Sort(names)
	}
	var files []Text
	for _, name := range names {
		if info, err := os.Stat(name); err != nil {
			return nil, err
		} else if info.Size() > fileMax {
			return nil, fmt.Errorf("%s: larger than %d MB", name, fileMax>>20)
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		files = append(files, Text{name, data})
	}
	return files, nil
}

// sum returns a hash of the files' names and contents.
func sum(files []Text) [sha256.Size]byte {
	h := sha256.New()
	for _, f := range files {
		fmt.Fprintf(h, "%d %s %d ", len(f.Name), f.Name, len(f.Data))
		h.Write(f.Data)
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// Load reads the configuration once.
func (s Source) Load() (*Config, error) {
	files, err := s.read()
	if err != nil {
		return nil, err
	}
	return Parse(files, s.Merge)
}

// Watch reads the configuration at once, then at each interval and at each signal on now, until ctx is done. It calls fn with
// each new content, or with the error if that is invalid. It calls fn with a read error whenever the error's text changes. A
// new content must be read twice before it is used, since a half-written file can be valid too; after a signal on now once is
// enough.
//
// Watch polls, because file events differ between systems, mounts and replaced links.
func (s Source) Watch(ctx context.Context, every time.Duration, now <-chan os.Signal, fn func(*Config, error)) {
	var taken, pending [sha256.Size]byte
	said := ""
	tick := time.NewTicker(every)
	defer tick.Stop()
	for sure := true; ; {
		files, err := s.read()
		switch got := sum(files); {
		case err != nil && said != err.Error():
			said = err.Error()
			fn(nil, err)
		case err != nil || got == taken && said == "":
		case !sure && got != pending:
			pending = got
		default:
			taken, said = got, ""
			fn(Parse(files, s.Merge))
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			sure = false
		case <-now:
			sure = true
		}
	}
}
