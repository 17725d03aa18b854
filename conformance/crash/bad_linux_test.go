// Directories and files that people or other programs have had their hands on.
package crash

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
)

// TestDirectoryGone: somebody removes the log's directory, or puts another one in its place, under a running server. What
// is acknowledged from then on is not in files that nobody can find: writes are refused until all is in new ones.
func TestDirectoryGone(t *testing.T) {
	for name, harm := range map[string]func(log string) error{
		"removed": os.RemoveAll,
		"moved":   func(log string) error { return os.Rename(log, log+".away") },
		"replaced": func(log string) error {
			name, err := incrFile(log)
			if err != nil {
				return err
			}
			return os.Rename(name, name+".away")
		},
		"cut": func(log string) error {
			name, err := incrFile(log)
			if err != nil {
				return err
			}
			return os.Truncate(name, 10)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := start(t, dir, "--appendonly", "yes", "--appendfsync", "always")
			c := s.Dial(t)
			c.Must(t, "SET", "before", "1")
			if err := harm(filepath.Join(dir, "appendonlydir")); err != nil {
				t.Fatal(err)
			}
			acked := 0
			for end := time.Now().Add(60 * time.Second); acked < 20; {
				v := c.Must(t, "SET", "key:"+strconv.Itoa(acked), "v")
				if v.Text == "OK" {
					acked++
				} else if !strings.HasPrefix(v.Text, "MISCONF ") || time.Now().After(end) {
					t.Fatalf("SET: %v\n%s", v, s.Output())
				} else {
					time.Sleep(20 * time.Millisecond)
				}
			}
			s.Kill()
			c = start(t, dir, "--appendonly", "yes").Dial(t)
			if v := c.Must(t, "EXISTS", "before"); v.Text != "1" {
				t.Error("the key of before is gone")
			}
			for i := range acked {
				if v := c.Must(t, "EXISTS", "key:"+strconv.Itoa(i)); v.Text != "1" {
					t.Fatalf("key:%d was acknowledged and is gone", i)
				}
			}
		})
	}
}

// incrFile is the file that the log is written to.
func incrFile(log string) (string, error) {
	names, err := filepath.Glob(log + "/*.incr.aof")
	if err != nil || len(names) != 1 {
		return "", fmt.Errorf("files %v: %v", names, err)
	}
	return names[0], nil
}

// TestFilesGone: somebody removes the manifest or a BASE under a running server. It writes all to new files, also where
// nobody writes, so that the next start has all.
func TestFilesGone(t *testing.T) {
	for name, harm := range map[string]func(log string) error{
		"base": func(log string) error {
			names, err := filepath.Glob(log + "/*.base.rdb")
			if err != nil || len(names) != 1 {
				return fmt.Errorf("files %v: %v", names, err)
			}
			return os.Remove(names[0])
		},
		"manifest":       func(log string) error { return os.Remove(log + "/appendonly.aof.manifest") },
		"empty manifest": func(log string) error { return os.Truncate(log+"/appendonly.aof.manifest", 0) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := start(t, dir, "--appendonly", "yes")
			c := s.Dial(t)
			c.Must(t, "SET", "before", "1")
			log := filepath.Join(dir, "appendonlydir")
			if err := harm(log); err != nil {
				t.Fatal(err)
			}
			manifest := filepath.Join(log, "appendonly.aof.manifest")
			for end := time.Now().Add(60 * time.Second); ; time.Sleep(10 * time.Millisecond) {
				if text, err := os.ReadFile(manifest); err == nil && strings.Contains(string(text), "appendonly.aof.2.base.rdb") {
					break
				}
				if time.Now().After(end) {
					t.Fatalf("no new files\n%s", s.Output())
				}
			}
			for c.Must(t, "SET", "after", "1").Text != "OK" {
				time.Sleep(10 * time.Millisecond)
			}
			s.Kill()
			s = start(t, dir, "--appendonly", "yes")
			if v := s.Dial(t).Must(t, "EXISTS", "before"); v.Text != "1" {
				t.Errorf("the key of before is gone: %v\n%s", v, s.Output())
			}
		})
	}
}

// TestDirectoryOfAnother: the directory is removed and made anew under a running server, and a second server begins in it
// before the first one writes again. The first one does not write over the files of the second one, and goes on when
// that has ended.
func TestDirectoryOfAnother(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	settings := []string{"--appendonly", "yes", "--appendfsync", "always"}
	s := start(t, dir, settings...)
	c := s.Dial(t)
	c.Must(t, "SET", "first", "1")
	err := os.RemoveAll(dir)
	if err == nil {
		err = os.Mkdir(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	s2 := start(t, dir, settings...)
	c2 := s2.Dial(t)
	for end := time.Now().Add(60 * time.Second); !strings.Contains(s.Output(), "in use by another process"); time.Sleep(10 * time.Millisecond) {
		if v := c.Must(t, "SET", "first", "2"); v.Text == "OK" {
			t.Fatalf("the first server writes where the second one does\n%s", s.Output())
		} else if time.Now().After(end) {
			t.Fatalf("%v\n%s", v, s.Output())
		}
		if v := c2.Must(t, "SET", "second", "1"); v.Text != "OK" {
			t.Fatalf("the second server: %v\n%s", v, s2.Output())
		}
	}
	s2.Kill()
	for end := time.Now().Add(60 * time.Second); c.Must(t, "SET", "first", "3").Text != "OK"; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it does not go on\n%s", s.Output())
		}
	}
	s.Kill()
	if v := start(t, dir, settings...).Dial(t).Must(t, "GET", "first"); v.Text != "3" {
		t.Errorf("what was acknowledged is gone: %v", v)
	}
}

// TestNoPermission: a server that may not write where it is told to says so.
func TestNoPermission(t *testing.T) {
	bin, err := peer.Build()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	program, data := filepath.Join(dir, "limitkv"), filepath.Join(dir, "data")
	text, err := os.ReadFile(bin)
	if err == nil {
		err = os.WriteFile(program, text, 0o755)
	}
	if err == nil {
		err = os.Mkdir(data, 0o555)
	}
	for d := dir; err == nil && d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		err = os.Chmod(d, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "--port", "0", "--dir", data, "--appendonly", "yes")
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(60*time.Second, func() { _ = cmd.Process.Kill() })
	if err := cmd.Wait(); !timer.Stop() || err == nil {
		t.Errorf("it starts: %v", err)
	}
	says(t, strings.ToLower(out.String()), "permission denied", "appendonlydir")
}

// TestManifest: a manifest that is missing is not taken for a new beginning; one that an editor of another system saved
// is read; one that cannot be read is refused with the line.
func TestManifest(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir, "--appendonly", "yes", "--appendfsync", "always")
	s.Dial(t).Must(t, "SET", "a", "1")
	s.Kill()
	log := filepath.Join(dir, "appendonlydir")
	manifest := filepath.Join(log, "appendonly.aof.manifest")
	text, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	before := listing(t, log)
	if err := os.Remove(manifest); err != nil {
		t.Fatal(err)
	}
	says(t, refused(t, dir), "the manifest appendonly.aof.manifest is missing", "limitkv check ")
	put := func(text string) {
		t.Helper()
		if err := os.WriteFile(manifest, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, bad := range []string{"", "file what\n", "file appendonly.aof.1.base.rdb seq 1 type x\n", string(text) + string(text), "file ../x seq 1 type b\n", string(text[:len(text)-1])} {
		put(bad)
		says(t, refused(t, dir), "AOF MANIFEST FILE ERROR", "appendonly.aof.manifest")
	}
	put(string(text))
	if after := listing(t, log); after != before {
		t.Errorf("there was\n%s\nand is\n%s", before, after)
	}
	put(strings.ReplaceAll(string(text), "\n", "\r\n"))
	s = start(t, dir, "--appendonly", "yes")
	if v := s.Dial(t).Must(t, "GET", "a"); v.Text != "1" {
		t.Error(v)
	}
}

// listing is what a directory holds.
func listing(t *testing.T, dir string) string {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString(f.Name() + " " + strconv.Quote(string(text)) + "\n")
	}
	return b.String()
}

// TestForeignFiles: a snapshot, or a base, that is damaged or of a version to come is refused with the file, the place
// and the command that tells more; nothing of it is served, and it stays as it is.
func TestForeignFiles(t *testing.T) {
	for _, logs := range []string{"yes", "no"} {
		dir := t.TempDir()
		args := []string{"--appendonly", logs}
		s := start(t, dir, args...)
		c := s.Dial(t)
		for i := range 100 {
			c.Must(t, "SET", "key:"+strconv.Itoa(i), strings.Repeat("v", 100))
		}
		file := filepath.Join(dir, "dump.rdb")
		if logs == "yes" {
			c.Must(t, "BGREWRITEAOF")
			awaitInfo(t, c, "aof_rewrites:1", "aof_rewrite_in_progress:0")
			file = filepath.Join(dir, "appendonlydir", "appendonly.aof.2.base.rdb")
		} else {
			c.Must(t, "SAVE")
		}
		s.Kill()
		whole, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		rotten := bytes.Clone(whole)
		rotten[len(rotten)/2] ^= 0x10
		version := bytes.Clone(whole)
		copy(version[5:], "0099")
		checksum := bytes.Clone(whole)
		checksum[len(checksum)-1] ^= 1
		for what, b := range map[string][]byte{"rotten": rotten, "of version 99": version, "checksum": checksum, "cut": whole[:len(whole)-20], "empty": nil} {
			if what == "empty" && logs == "yes" {
				continue // as in Redis, an empty base has nothing
			}
			if err := os.WriteFile(file, b, 0o600); err != nil {
				t.Fatal(err)
			}
			out := refused(t, dir, args...)
			says(t, out, filepath.Base(file), "limitkv check ")
			if what != "checksum" {
				says(t, out, "offset")
			}
			if now, _ := os.ReadFile(file); !bytes.Equal(now, b) {
				t.Errorf("%s: the file was changed", what)
			}
		}
		if err := os.WriteFile(file, whole, 0o600); err != nil {
			t.Fatal(err)
		}
		if v := start(t, dir, args...).Dial(t).Must(t, "DBSIZE"); v.Text != "100" {
			t.Error(v)
		}
	}
}
