package main

import (
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestLeast sends requests to the server that always sends the same reply, over two connections, also in pipelines, and closes
// one.
func TestLeast(t *testing.T) {
	for _, args := range [][]string{nil, {"x"}, {"1", "2"}} {
		if err := runLeast(args); err == nil {
			t.Error(args)
		}
	}
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- runLeast([]string{strconv.Itoa(port)}) }()
	ask := func(c net.Conn, n int) {
		t.Helper()
		answer := make([]byte, 5*n)
		_ = c.SetDeadline(time.Now().Add(10 * time.Second))
		if _, err := c.Write([]byte(strings.Repeat("*2\r\n$3\r\nGET\r\n$1\r\na\r\n", n))); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, answer); err != nil || string(answer) != strings.Repeat("$-1\r\n", n) {
			t.Fatalf("%q, %v", answer, err)
		}
	}
	dial := func() (c net.Conn) {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
			if c, err = net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
				return c
			}
			if time.Now().After(end) {
				t.Fatal(err)
			}
		}
	}
	first, second := dial(), dial()
	ask(first, 1)
	ask(second, 16)
	_ = first.Close()
	ask(second, 1)
	_ = second.Close()
	select {
	case err := <-ended:
		t.Fatal(err)
	default:
	}
}
