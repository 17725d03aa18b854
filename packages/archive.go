package main

// Archives whose bytes depend only on their files: callers sort these, and all have the same time and belong to root.

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// zipEpoch is 1980-01-02: a zip has no time before 1980, in any time zone.
const zipEpoch = 315619200

// file is a file of an archive. A name that ends in / is a folder.
type file struct {
	name string
	mode fs.FileMode
	data []byte
}

// readFiles reads the files below a folder, sorted, and adds a prefix to their names.
func readFiles(dir, prefix string) (files []file, err error) {
	err = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || strings.HasSuffix(name, ".pyc") {
			return err
		}
		data, err := os.ReadFile(name)
		rel, _ := filepath.Rel(dir, name)
		files = append(files, file{path.Join(prefix, filepath.ToSlash(rel)), 0o644, data})
		return err
	})
	sortFiles(files)
	return files, err
}

func sortFiles(files []file) {
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
}

// zipOf makes a zip archive of files.
func zipOf(files []file, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range files {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: at}
		h.SetMode(f.mode)
		to, err := w.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := to.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// tarOf makes a tar archive of files.
func tarOf(files []file, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: int64(f.mode.Perm()), Size: int64(len(f.data)), ModTime: at, Format: tar.FormatUSTAR}
		if strings.HasSuffix(f.name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// tarGzOf makes a compressed tar archive of files.
func tarGzOf(files []file, at time.Time) ([]byte, error) {
	data, err := tarOf(files, at)
	if err != nil {
		return nil, err
	}
	return gzipOf(data)
}

func gzipOf(data []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// archives writes an archive for each platform with the binary and the licences: a zip for Windows, a tar.gz for the others.
func (r *release) archives() error {
	texts, err := r.texts()
	if err != nil {
		return err
	}
	for _, p := range r.platforms {
		name := "limitkv_" + r.version + "_" + p.os + "_" + p.arch
		files := append(slices.Clone(texts), file{p.program(), 0o755, r.binaries[p]})
		for i := range files {
			files[i].name = name + "/" + files[i].name
		}
		pack, ending := tarGzOf, ".tar.gz"
		if p.os == "windows" {
			pack, ending = zipOf, ".zip"
		}
		data, err := pack(files, r.time)
		if err != nil {
			return err
		}
		if err := r.write(name+ending, data); err != nil {
			return err
		}
	}
	return nil
}

// texts returns the files that accompany each binary: the licences.
func (r *release) texts() ([]file, error) {
	licence, err := os.ReadFile("LICENSE")
	return []file{{"LICENSE", 0o644, licence}, {"THIRD_PARTY_LICENSES", 0o644, r.licences}}, err
}

// sums writes SHA256SUMS, for sha256sum -c.
func (r *release) sums() error {
	files, err := readFiles(r.out, "")
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, f := range files {
		sum := sha256.Sum256(f.data)
		b.WriteString(hex.EncodeToString(sum[:]) + "  " + f.name + "\n")
	}
	return r.write("SHA256SUMS", []byte(b.String()))
}
