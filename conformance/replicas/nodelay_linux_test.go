package replicas

// repl-disable-tcp-nodelay, seen at the primary's own socket.

import (
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/limitkv/limitkv/conformance/peer"
)

// noDelay tells whether a process sends what it writes to a descriptor at once.
func noDelay(t *testing.T, pid, fd int) bool {
	t.Helper()
	process, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Skip(err)
	}
	defer unix.Close(process)
	own, err := unix.PidfdGetfd(process, fd, 0)
	if err != nil {
		t.Skip(err) // not everybody may
	}
	defer unix.Close(own)
	n, err := unix.GetsockoptInt(own, unix.IPPROTO_TCP, unix.TCP_NODELAY)
	if err != nil {
		t.Fatal(err)
	}
	return n != 0
}

func TestNoDelay(t *testing.T) {
	for name, start := range both {
		t.Run(name, func(t *testing.T) {
			p := start(t)
			for _, disabled := range []string{"no", "yes", "no", "yes"} {
				p.Must(t, "CONFIG", "SET", "repl-disable-tcp-nodelay", disabled)
				r := p.Dial(t) // who was there before stays as it was
				if err := r.Send("PSYNC", "?", "-1"); err != nil {
					t.Fatal(err)
				}
				peer.Eventually(t, "the replica is online", func() bool { return strings.Contains(p.Info(t, "slave0"), "state=online") })
				_, line, _ := strings.Cut(p.Must(t, "CLIENT", "LIST", "TYPE", "replica").Text, " fd=")
				text, _, _ := strings.Cut(line, " ")
				fd, err := strconv.Atoi(text)
				if err != nil {
					t.Fatal(err)
				}
				if got := noDelay(t, p.Pid(), fd); got != (disabled == "no") {
					t.Errorf("repl-disable-tcp-nodelay %s: TCP_NODELAY is %v", disabled, got)
				}
				r.Close()
				peer.Eventually(t, "the replica is gone", func() bool { return p.Info(t, "connected_slaves") == "0" })
			}
		})
	}
}
