package luavm

// A real Redis to compare with: REDIS_SERVER names its binary. Without it, tests use the recorded replies.

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// oracle is a connection to a Redis that runs for one test.
type oracle struct {
	conn net.Conn
	in   *bufio.Reader
}

func oracleNamed() bool { return os.Getenv("REDIS_SERVER") != "" }

// startOracle starts the server, or skips the test if there is none.
func startOracle(t testing.TB) *oracle {
	binary := os.Getenv("REDIS_SERVER")
	if binary == "" {
		t.Skip("REDIS_SERVER names no redis-server to compare with")
	}
	dir := t.TempDir()
	socket := filepath.Join(dir, "s")
	cmd := exec.Command(binary, "--port", "0", "--unixsocket", socket, "--save", "", "--dir", dir, "--busy-reply-threshold", "0")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	for range 200 {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			t.Cleanup(func() { conn.Close() })
			o := &oracle{conn, bufio.NewReader(conn)}
			if got := o.do("PING"); got == "+PONG\r\n" {
				return o
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("the server does not answer")
	return nil
}

// do sends a command and returns the raw reply.
func (o *oracle) do(args ...string) string {
	b := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, a := range args {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(a), a)
	}
	o.conn.SetDeadline(time.Now().Add(time.Minute)) // on a machine that is busy
	if _, err := o.conn.Write(b); err != nil {
		panic(err)
	}
	return string(o.reply(nil))
}

func (o *oracle) reply(b []byte) []byte {
	line, err := o.in.ReadBytes('\n')
	if err != nil {
		panic(err)
	}
	b = append(b, line...)
	n, _ := strconv.Atoi(string(line[1 : len(line)-2]))
	switch line[0] {
	case '$', '=':
		if n >= 0 {
			body := make([]byte, n+2)
			if _, err := io.ReadFull(o.in, body); err != nil {
				panic(err)
			}
			b = append(b, body...)
		}
	case '*', '~':
		for range n {
			b = o.reply(b)
		}
	case '%':
		for range 2 * n {
			b = o.reply(b)
		}
	}
	return b
}

// eval runs a script on an empty database.
func (o *oracle) eval(script string, keys, args []string) string {
	o.do("FLUSHALL")
	o.do("SCRIPT", "FLUSH")
	all := append([]string{"EVAL", script, strconv.Itoa(len(keys))}, keys...)
	return o.do(append(all, args...)...)
}
