package replicas

// repl-disable-tcp-nodelay, seen at the primary's own socket.

import (
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
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
				must(t, p, "CONFIG", "SET", "repl-disable-tcp-nodelay", disabled)
				r := p.Dial(t) // who was there before stays as it was
				if err := r.Send("PSYNC", "?", "-1"); err != nil {
					t.Fatal(err)
				}
				eventually(t, "the replica is online", func() bool { return strings.Contains(field(t, p, "slave0"), "state=online") })
				_, line, _ := strings.Cut(must(t, p, "CLIENT", "LIST", "TYPE", "replica").Text, " fd=")
				text, _, _ := strings.Cut(line, " ")
				fd, err := strconv.Atoi(text)
				if err != nil {
					t.Fatal(err)
				}
				if got := noDelay(t, p.Pid(), fd); got != (disabled == "no") {
					t.Errorf("repl-disable-tcp-nodelay %s: TCP_NODELAY is %v", disabled, got)
				}
				r.Close()
				eventually(t, "the replica is gone", func() bool { return field(t, p, "connected_slaves") == "0" })
			}
		})
	}
}
