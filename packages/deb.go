package main

// Debian packages: an ar archive with a version number, the control files and the files. They are written here; lintian checks
// them in the install-test. Rejected: nfpm. It also gives the same bytes each time, but needs 38 modules with 194 packages
// instead of these hundred lines, while the server has nine modules. Also rejected: a module for ar alone; it has not been
// maintained since 2019, and would save ten lines.

import (
	"archive/tar"
	"bytes"
	"crypto/md5"
	"fmt"
	"os"
	"strings"
)

// debFiles are the files of the package except the binary, and their sources below packages/debian.
var debFiles = []struct {
	name, from string
}{
	{"etc/limitkv/limitkv.conf", "limitkv.conf"},
	{"usr/lib/systemd/system/limitkv.service", "limitkv.service"},
	{"usr/share/doc/limitkv/copyright", "copyright"},
	{"usr/share/man/man1/limitkv.1.gz", "limitkv.1"},
}

// debVersion returns the version in Debian's order: 1.2.3~rc.1 sorts before 1.2.3.
func debVersion(version string) string { return strings.Replace(version, "-", "~", 1) }

func (r *release) debs() error {
	const from = "packages/debian/"
	changelog, err := gzipOf(fmt.Appendf(nil, "limitkv (%s) unstable; urgency=medium\n\n  * See CHANGELOG.md of the source.\n\n"+
		" -- The limitkv authors <limitkv@users.noreply.github.com>  %s\n", debVersion(r.version), r.time.Format("Mon, 02 Jan 2006 15:04:05 -0700")))
	if err != nil {
		return err
	}
	for _, p := range r.platforms {
		if p.deb == "" {
			continue
		}
		files := []file{{"usr/bin/limitkv", 0o755, r.binaries[p]}, {"usr/share/doc/limitkv/changelog.gz", 0o644, changelog},
			{"usr/share/doc/limitkv/THIRD_PARTY_LICENSES", 0o644, r.licences}}
		for _, f := range debFiles {
			data, err := os.ReadFile(from + f.from)
			if err == nil && strings.HasSuffix(f.name, ".gz") {
				data, err = gzipOf(r.fill(data))
			}
			if err != nil {
				return err
			}
			files = append(files, file{f.name, 0o644, data})
		}
		sortFiles(files)
		size, sums := 0, ""
		for _, f := range files {
			size += (len(f.data) + 1023) / 1024
			if !strings.HasPrefix(f.name, "etc/") {
				sums += fmt.Sprintf("%x  %s\n", md5.Sum(f.data), f.name)
			}
		}
		data, err := r.debTar(files)
		if err != nil {
			return err
		}
		control := []file{{"conffiles", 0o644, []byte("/etc/limitkv/limitkv.conf\n")}, {"md5sums", 0o644, []byte(sums)}}
		text, err := os.ReadFile(from + "control")
		if err != nil {
			return err
		}
		control = append(control, file{"control", 0o644, []byte(strings.NewReplacer("@VERSION@", debVersion(r.version), "@ARCH@", p.deb,
			"@SIZE@", fmt.Sprint(size)).Replace(string(text)))})
		for _, name := range []string{"postinst", "prerm", "postrm"} {
			script, err := os.ReadFile(from + name)
			if err != nil {
				return err
			}
			control = append(control, file{name, 0o755, script})
		}
		meta, err := r.debTar(control)
		if err != nil {
			return err
		}
		var b bytes.Buffer
		b.WriteString("!<arch>\n")
		for _, f := range []file{{"debian-binary", 0, []byte("2.0\n")}, {"control.tar.gz", 0, meta}, {"data.tar.gz", 0, data}} {
			fmt.Fprintf(&b, "%-16s%-12d0     0     100644  %-10d`\n", f.name, r.time.Unix(), len(f.data))
			b.Write(f.data)
			if len(f.data)%2 != 0 {
				b.WriteByte('\n')
			}
		}
		if err := r.write("deb/limitkv_"+debVersion(r.version)+"_"+p.deb+".deb", b.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// debTar makes a tar.gz for dpkg: names begin with ./, and each folder comes before its files.
func (r *release) debTar(files []file) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	seen := map[string]bool{}
	add := func(h *tar.Header, data []byte) error {
		h.ModTime, h.Format, h.Uname, h.Gname = r.time, tar.FormatGNU, "root", "root"
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		_, err := w.Write(data)
		return err
	}
	for _, f := range files {
		dir := "./"
		for part := range strings.SplitAfterSeq("./"+f.name, "/") {
			if !strings.HasSuffix(part, "/") {
				break
			}
			if part != "./" {
				dir += part
			}
			if !seen[dir] {
				seen[dir] = true
				if err := add(&tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: 0o755}, nil); err != nil {
					return nil, err
				}
			}
		}
		h := &tar.Header{Typeflag: tar.TypeReg, Name: "./" + f.name, Mode: int64(f.mode), Size: int64(len(f.data))}
		if err := add(h, f.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return gzipOf(b.Bytes())
}
