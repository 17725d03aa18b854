package conformance

// The process as those see it who start it: --until-eof, by which it ends with them, and "limitkv ping", by which they ask
// whether it serves.

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
)

// The server ends when its standard input does, as it ends by SIGTERM: what is to be kept is written. What comes in until
// then does nothing.
func TestUntilEOF(t *testing.T) {
	bin, err := peer.Build()
	if err != nil {
		t.Fatal(err)
	}
	for _, save := range []string{"", "3600 1"} {
		dir := t.TempDir()
		cmd := exec.Command(bin, "--until-eof", "--port", "0", "--dir", dir, "--save", save)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		printed := bufio.NewReader(out)
		addr := ""
		for addr == "" {
			line, err := printed.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if _, after, ok := strings.Cut(line, " listens on "); ok {
				addr, _, _ = strings.Cut(after, " ")
			}
		}
		if _, err := in.Write(bytes.Repeat([]byte("SHUTDOWN NOSAVE\r\n"), 10_000)); err != nil {
			t.Fatal(err)
		}
		c, err := peer.Dial(addr)
		if err != nil {
			t.Fatal(err)
		}
		if v, err := c.Do("SET", "k", "v"); err != nil || v.Text != "OK" {
			t.Fatal(v, err)
		}
		c.Close()
		in.Close()
		rest, err := io.ReadAll(printed)
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil || !strings.Contains(string(rest), "Standard input ended") {
			t.Errorf("--save %q: it ends with %v and %q", save, err, rest)
		}
		if _, err := os.Stat(filepath.Join(dir, "dump.rdb")); (err == nil) != (save != "") {
			t.Errorf("--save %q: the snapshot: %v", save, err)
		}
	}
	out, err := exec.Command(bin, "-", "--until-eof").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "standard input is the configuration file") {
		t.Errorf("both on standard input: %v, %q", err, out)
	}
}

func TestPing(t *testing.T) {
	bin, err := peer.Build()
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(t.TempDir(), "s")
	plain := peer.LimitKV(t, "--unixsocket", socket)
	closed := peer.LimitKV(t, "--requirepass", "secret")
	free, err := peer.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	// says is a server that answers everybody the same, "" for nothing.
	says := func(reply string) string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				t.Cleanup(func() { c.Close() })
				_, _ = io.WriteString(c, reply)
			}
		}()
		return l.Addr().String()
	}
	const loading = "LOADING Redis is loading the dataset in memory"
	for _, test := range []struct {
		args    []string
		healthy bool
		prints  string
	}{
		{[]string{plain.Addr}, true, "PONG\n"},
		{[]string{socket}, true, "PONG\n"},
		{[]string{closed.Addr}, true, "NOAUTH Authentication required.\n"},
		{[]string{says("-" + loading + "\r\n")}, false, loading},
		{[]string{says("HTTP/1.1 400 Bad Request\r\n")}, false, "HTTP/1.1 400"},
		{[]string{says(strings.Repeat("x", 1<<20))}, false, "buffer full"},
		{[]string{says("")}, false, "timeout"},
		{[]string{"127.0.0.1:" + free}, false, "refused"},
		{[]string{"nonsense"}, false, "missing port"},
		{[]string{plain.Addr, "more"}, false, "usage"},
	} {
		began := time.Now()
		out, err := exec.Command(bin, append([]string{"ping"}, test.args...)...).CombinedOutput()
		if (err == nil) != test.healthy || !strings.Contains(string(out), test.prints) {
			t.Errorf("ping %q: %v, %q, want %q", test.args, err, out, test.prints)
		}
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("ping %q took %v", test.args, took)
		}
	}
}
