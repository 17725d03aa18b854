package main

// The files from which a container image is built: the Containerfile, the binaries, and an empty folder for data that belongs
// to the server's user. An image from scratch contains no tool that could make the folder.

import (
	"archive/tar"
	"bytes"
	"os"
)

// nobody is the ID of the server's user and group in a container.
const nobody = 65534

func (r *release) container() error {
	text, err := os.ReadFile("packages/container/Containerfile")
	if err != nil {
		return err
	}
	if err := r.write("container/Containerfile", r.fill(text)); err != nil {
		return err
	}
	texts, err := r.texts()
	if err != nil {
		return err
	}
	for _, p := range r.platforms {
		if p.os != "linux" {
			continue
		}
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, f := range append([]file{{"data/", 0o700, nil}, {"limitkv", 0o755, r.binaries[p]}}, texts...) {
			h := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: int64(f.mode), Size: int64(len(f.data)), ModTime: r.time, Format: tar.FormatUSTAR}
			if f.data == nil {
				h.Typeflag, h.Uid, h.Gid = tar.TypeDir, nobody, nobody
			}
			if err := w.WriteHeader(h); err != nil {
				return err
			}
			if _, err := w.Write(f.data); err != nil {
				return err
			}
		}
		if err := w.Close(); err != nil {
			return err
		}
		if err := r.write("container/root-"+p.arch+".tar", b.Bytes()); err != nil {
			return err
		}
	}
	return nil
}
