// Disks that fail: full ones, small enough to fill in a moment, and directories that are gone, read-only, in use or
// damaged.
package crash

import (
	"math/rand/v2"
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

// smallDisk mounts a file system of so many bytes, or skips the test where that is not allowed.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("mounting a small disk is refused here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fill takes all of a disk's room with a file.
func fill(t *testing.T, dir string) (file string) {
	t.Helper()
	file = filepath.Join(dir, "ballast")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, n := range []int{64 << 10, 4 << 10, 1} {
		for b := make([]byte, n); ; {
			if _, err := f.Write(b); err != nil {
				break
			}
		}
	}
	return file
}

// TestFullDisk: under load the disk gets full, and later has room again. Meanwhile writes are refused, reads go on, and
// after kill -9 and a start all is there that was acknowledged, before and after.
func TestFullDisk(t *testing.T) {
	for _, policy := range []string{"always", "everysec", "no"} {
		t.Run(policy, func(t *testing.T) {
			dir := smallDisk(t, "8m")
			args := []string{"--appendonly", "yes", "--appendfsync", policy, "--auto-aof-rewrite-percentage", "0"}
			s := start(t, dir, args...)
			c := s.Dial(t)
			value := strings.Repeat("v", 2000)
			write := func(from int) (n int) { // until the first refusal, or none within 200
				for n = from; n < from+200; n++ {
					_ = c.Send("SET", "key:"+strconv.Itoa(n), value)
					v, err := c.ReceiveWithin(10 * time.Second)
					if err != nil {
						// It waits for the disk: what it is answered is not known, so that it counts as not acknowledged.
						c = s.Dial(t)
						return n
					}
					if v.IsError() {
						if !strings.HasPrefix(v.Text, "MISCONF Errors writing to the AOF file: ") || !strings.Contains(v.Text, "No space left on device") {
							t.Fatalf("SET: %v", v)
						}
						return n
					}
				}
				return n
			}
			acked := write(0)
			if acked != 200 {
				t.Fatalf("%d writes succeed on a disk with room", acked)
			}
			for range 3 {
				ballast := fill(t, dir)
				acked = write(acked)
				refused := time.Now().Add(60 * time.Second)
				for v := c.Must(t, "SET", "other", "1"); !v.IsError(); v = c.Must(t, "SET", "other", "1") {
					if time.Now().After(refused) {
						t.Fatal("writes are not refused on a full disk")
					}
					time.Sleep(10 * time.Millisecond)
				}
				// With always, a read is kept back only where it would tell of a write that is not safe yet.
				reader, reads, wait := s.Dial(t), 0, 0
				for i := 0; i < acked; i += 17 {
					_ = reader.Send("GET", "key:"+strconv.Itoa(i))
					v, err := reader.ReceiveWithin(300 * time.Millisecond)
					if reads++; err != nil {
						wait++
						reader = s.Dial(t)
					} else if policy == "always" && strings.HasPrefix(v.Text, "MISCONF ") {
						wait++ // and was answered that the disk fails
					} else if v.Text != value {
						t.Fatalf("reads on a full disk: %v", v)
					}
				}
				if wait > reads/5 || wait > 0 && policy != "always" {
					t.Errorf("%d of %d reads are kept back on a full disk", wait, reads)
				}
				if v := reader.Must(t, "INFO", "persistence"); !strings.Contains(v.Text, "aof_last_write_status:err\r\n") {
					t.Error(v.Text)
				}
				if err := os.Remove(ballast); err != nil {
					t.Fatal(err)
				}
				awaitInfo(t, reader, "aof_last_write_status:ok")
				if n := write(acked); n != acked+200 {
					t.Fatalf("with room again %d of 200 writes succeed\n%s", n-acked, s.Output())
				}
				acked += 200
			}
			if policy != "always" {
				awaitInfo(t, s.Dial(t), "aof_buffer_length:0")
				time.Sleep(100 * time.Millisecond) // written, not synced
			}
			s.Kill()
			c = start(t, dir, args...).Dial(t)
			for i := range acked {
				if v := c.Must(t, "GET", "key:"+strconv.Itoa(i)); v.Text != value {
					t.Fatalf("key:%d was acknowledged, and is %.20v", i, v)
				}
			}
		})
	}
}

// TestDiskErrorExit: with disk-error-policy exit and appendfsync always a disk that fails ends the server, and what it had
// acknowledged is there.
func TestDiskErrorExit(t *testing.T) {
	dir := smallDisk(t, "4m")
	s := start(t, dir, "--appendonly", "yes", "--appendfsync", "always", "--disk-error-policy", "exit", "--auto-aof-rewrite-percentage", "0")
	c := s.Dial(t)
	c.Must(t, "SET", "before", "1")
	ballast := fill(t, dir)
	acked := 0
	for ; acked < 10_000; acked++ {
		if v, err := c.Do("SET", "key:"+strconv.Itoa(acked), strings.Repeat("x", 500)); err != nil {
			break
		} else if v.IsError() {
			t.Fatalf("it answers %v", v)
		}
	}
	if acked == 10_000 {
		t.Fatal("it goes on")
	}
	s.Says(t, "Can't recover from AOF write error when the AOF fsync policy is 'always'. Exiting...")
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	c = start(t, dir, "--appendonly", "yes").Dial(t)
	if v := c.Must(t, "GET", "before"); v.Text != "1" {
		t.Error(v)
	}
	for i := range acked {
		if v := c.Must(t, "EXISTS", "key:"+strconv.Itoa(i)); v.Text != "1" {
			t.Fatalf("key:%d is gone", i)
		}
	}
}

// TestTurnedOnFull: a log that is turned on while the disk is full is on when there is room, and says so.
func TestTurnedOnFull(t *testing.T) {
	dir := smallDisk(t, "4m")
	s := start(t, dir, "--appendonly", "no", "--appendfsync", "always")
	c := s.Dial(t)
	c.Must(t, "SET", "before", strings.Repeat("x", 100_000))
	ballast := fill(t, dir)
	if v := c.Must(t, "CONFIG", "SET", "appendonly", "yes"); v.IsError() {
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
		turn(t, s, c, "yes")
	} else {
		awaitInfo(t, c, "aof_last_bgrewrite_status:err")
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
	}
	awaitInfo(t, c, "aof_last_bgrewrite_status:ok", "aof_rewrite_scheduled:0", "aof_rewrite_in_progress:0")
	c.Must(t, "SET", "after", "1")
	s.Kill()
	c = start(t, dir, "--appendonly", "yes").Dial(t)
	if v := c.Must(t, "EXISTS", "before", "after"); v.Text != "2" {
		t.Error(v)
	}
}

// TestSnapshotOnFullDisk: a snapshot that fails leaves the one before, and with save points writes are refused until one
// succeeds.
func TestSnapshotOnFullDisk(t *testing.T) {
	dir := smallDisk(t, "2m")
	s := start(t, dir, "--save", "3600 1")
	c := s.Dial(t)
	c.Must(t, "SET", "a", "1")
	if v := c.Must(t, "SAVE"); v.Text != "OK" {
		t.Fatal(v)
	}
	r := rand.New(rand.NewPCG(1, 2))
	large := make([]byte, 1<<20)
	for i := range large {
		large[i] = byte(r.Uint32())
	}
	c.Must(t, "SET", "b", string(large))
	ballast := fill(t, dir)
	if v := c.Must(t, "SAVE"); !v.IsError() {
		t.Fatal(v)
	}
	c.Must(t, "BGSAVE")
	awaitInfo(t, c, "rdb_last_bgsave_status:err", "rdb_bgsave_in_progress:0")
	if v := c.Must(t, "SET", "c", "1"); !strings.HasPrefix(v.Text, "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.") {
		t.Error(v)
	}
	if v := c.Must(t, "GET", "a"); v.Text != "1" {
		t.Error(v)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "temp-*")); len(left) > 0 {
		t.Errorf("the snapshot that failed left %v", left)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	c.Must(t, "BGSAVE")
	awaitInfo(t, c, "rdb_last_bgsave_status:ok", "rdb_bgsave_in_progress:0")
	if v := c.Must(t, "SET", "c", "1"); v.Text != "OK" {
		t.Error(v)
	}
	s.Kill()
	c = start(t, dir, "--save", "3600 1").Dial(t)
	if v := c.Must(t, "EXISTS", "a", "b"); v.Text != "2" {
		t.Error(v)
	}
}

// refused starts a server that must not start, and returns what it says.
func refused(t *testing.T, dir string, args ...string) string {
	t.Helper()
	bin, err := peer.Build()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bin, append([]string{"--port", "0", "--dir", dir, "--appendonly", "yes"}, args...)...)
	timer := time.AfterFunc(60*time.Second, func() { _ = cmd.Process.Kill() })
	out, err := cmd.CombinedOutput()
	if !timer.Stop() || err == nil {
		t.Errorf("it starts: %v\n%s", err, out)
	}
	return string(out)
}

func says(t *testing.T, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%s", want, text)
		}
	}
}

// TestDirectories: directories that cannot be used are refused, by name and reason; a second server on one as well.
func TestDirectories(t *testing.T) {
	dir := t.TempDir()
	says(t, refused(t, filepath.Join(dir, "missing")), "missing", "no such file or directory")
	start(t, dir, "--appendonly", "yes")
	says(t, refused(t, dir), dir, "in use by another process")

	readOnly := smallDisk(t, "1m")
	s := start(t, readOnly, "--appendonly", "yes", "--appendfsync", "always")
	s.Dial(t).Must(t, "SET", "a", "1")
	s.Kill()
	if err := syscall.Mount("", readOnly, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	says(t, strings.ToLower(refused(t, readOnly)), "read-only file system")
	if err := syscall.Mount("", readOnly, "", syscall.MS_REMOUNT, ""); err != nil {
		t.Fatal(err)
	}
	if v := start(t, readOnly, "--appendonly", "yes").Dial(t).Must(t, "GET", "a"); v.Text != "1" {
		t.Error(v)
	}
}

// TestDamage: a file of the log that is damaged or missing is refused, with its name, the place and what to do. Nothing is
// changed by that, so that what is mended loads.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir, "--appendonly", "yes", "--appendfsync", "always", "--auto-aof-rewrite-percentage", "0")
	c := s.Dial(t)
	for i := range 300 {
		c.Must(t, "SET", "key:"+strconv.Itoa(i), strings.Repeat("v", 100))
	}
	s.Kill()
	log := filepath.Join(dir, "appendonlydir")
	incr, base := filepath.Join(log, "appendonly.aof.1.incr.aof"), filepath.Join(log, "appendonly.aof.1.base.rdb")
	manifest := filepath.Join(log, "appendonly.aof.manifest")
	whole, err := os.ReadFile(incr)
	if err != nil {
		t.Fatal(err)
	}
	put := func(b []byte) {
		t.Helper()
		if err := os.WriteFile(incr, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rotten := append([]byte(nil), whole...)
	rotten[len(rotten)/2] ^= 0x10
	put(rotten)
	says(t, refused(t, dir), "appendonly.aof.1.incr.aof", "offset", "limitkv check --fix")
	if b, _ := os.ReadFile(incr); string(b) != string(rotten) {
		t.Error("the damaged file was changed")
	}
	put(whole)
	for _, name := range []string{incr, base, manifest} {
		if err := os.Rename(name, name+".away"); err != nil {
			t.Fatal(err)
		}
		if name != manifest {
			says(t, refused(t, dir), filepath.Base(name), "No such file or directory", "limitkv check "+log)
		}
		if err := os.Rename(name+".away", name); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(manifest, []byte("file what\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	says(t, refused(t, dir), "appendonly.aof.manifest", "line 1", "limitkv check "+log)
	if err := os.WriteFile(manifest, text, 0o600); err != nil {
		t.Fatal(err)
	}

	put(append([]byte("*1\r\n$3\r\nFOO\r\n"), whole...))
	says(t, refused(t, dir), "appendonly.aof.1.incr.aof: offset 0: unknown command 'FOO'", "limitkv check "+log)

	// A torn end: the last command goes, all before it stay. Without aof-load-truncated it is refused.
	put(whole[:len(whole)-7])
	says(t, refused(t, dir, "--aof-load-truncated", "no"), "Unexpected end of file", "aof-load-truncated", "limitkv check --fix")
	s = start(t, dir, "--appendonly", "yes")
	s.Says(t, "!!! Truncating the AOF appendonly.aof.1.incr.aof at offset ")
	if v := s.Dial(t).Must(t, "DBSIZE"); v.Text != "299" {
		t.Errorf("of 300 keys there are %v", v)
	}
}
