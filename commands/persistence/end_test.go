package persistence_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/limitkv/limitkv/server/command"
)

// TestServedAtTheEnd: a waiting client may be served by a deadline after the last snapshot was written, and gets its reply.
// The change is in the files all the same.
func TestServedAtTheEnd(t *testing.T) {
	const now, soon, patience = 1_700_000_000_000, 20, 10 * time.Second
	for _, test := range []struct{ before, waits, after, want string }{
		{"DQ.ADD q DELAY 10 ID i x", "DQ.POP q BLOCK 0", "EXISTS q", ":0"},
		{"RL.ACQUIRE r ID a LEASE 10 CONC 1", "RL.ACQUIRE r ID b LEASE 60000 BLOCK 0 CONC 1", "RL.SETTLE r b", ":1"},
	} {
		t.Run(test.waits, func(t *testing.T) {
			t.Chdir(t.TempDir())
			v, err := serve(t, nil, now, "save", "3600 1")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { v.close() }()
			if got := v.do(t, test.before, patience); got == "" || got[0] == '-' {
				t.Fatal(got)
			}
			v.do(t, test.waits, 0)
			for end := time.Now().Add(patience); v.s.BlockedClients.Load() == 0; time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatal("nobody waits")
				}
			}
			if err := v.s.Prepare(command.End{How: command.EndAsConfigured}); err != nil {
				t.Fatal(err)
			}
			v.s.Keyspace.Sched.Advance(soon * 1000)
			_ = v.conn.SetReadDeadline(time.Now().Add(patience))
			if got := v.reply(); got == "" || got[0] == '-' {
				t.Fatalf("served: %q", got)
			}
			v.close()
			if v, err = serve(t, nil, now+soon, "save", "3600 1"); err != nil {
				t.Fatal(err)
			}
			if got := v.do(t, test.after, patience); got != test.want {
				t.Errorf("after the start %s: %s, want %s", test.after, got, test.want)
			}
		})
	}
}

// TestNothingBeginsAtTheEnd: a rewrite that waits for a snapshot does not begin when the server's end cancels that snapshot.
func TestNothingBeginsAtTheEnd(t *testing.T) {
	const now, patience = 1_700_000_000_000, 10 * time.Second
	t.Chdir(t.TempDir())
	v, err := serve(t, nil, now, "save", "3600 1", "rdb-key-save-delay", "10000000")
	if err != nil {
		t.Fatal(err)
	}
	defer v.close()
	for _, line := range []string{"SET k v", "BGSAVE", "BGREWRITEAOF"} {
		if got := v.do(t, line, patience); got == "" || got[0] == '-' {
			t.Fatalf("%s: %s", line, got)
		}
	}
	if err := v.s.Prepare(command.End{How: command.EndAsConfigured}); err != nil {
		t.Fatal(err)
	}
	const ticks = 4 * 100 * time.Millisecond
	time.Sleep(ticks)
	if _, err := os.Stat("appendonlydir"); !os.IsNotExist(err) {
		t.Errorf("a rewrite has begun: %v", err)
	}
	if _, err := os.Stat("dump.rdb"); err != nil {
		t.Error(err)
	}
}

// TestSaveAtTheEnd: the server has to end while a SAVE writes its snapshot. Both snapshots are written, the later one last.
func TestSaveAtTheEnd(t *testing.T) {
	const now, patience = 1_700_000_000_000, 10 * time.Second
	t.Chdir(t.TempDir())
	d := newDisk()
	v, err := serve(t, d, now, "save", "3600 1")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { v.close() }()
	if got := v.do(t, "SET k v", patience); got != "+OK" {
		t.Fatal(got)
	}
	d.stop()
	v.do(t, "SAVE", 0)
	for end := time.Now().Add(patience); d.asking.Load() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("SAVE does not come to its sync")
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- v.s.Prepare(command.End{How: command.EndSaving}) }()
	time.Sleep(50 * time.Millisecond) // by then it usually waits for SAVE
	d.let()
	if err := <-ended; err != nil {
		t.Errorf("the end: %v", err)
	}
	v.close()
	if left, _ := filepath.Glob("temp-*"); len(left) > 0 {
		t.Errorf("files are left: %v", left)
	}
	if v, err = serve(t, nil, now, "save", "3600 1"); err != nil {
		t.Fatal(err)
	}
	if got := v.do(t, "GET k", patience); got != "v" {
		t.Errorf("after the start: %s", got)
	}
}
