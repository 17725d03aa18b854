package follow

// Ledgers: what clients were told is kept, by which it is seen what a change of the primary lost. A replica has the
// beginning of what its primary did, so what is lost is the end of a ledger, and never something in its middle.

import (
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
)

// ledgerDB is a database that nobody else writes to.
const ledgerDB = "9"

// ledger is a client that appends numbers to a list, one by one, at the server that it takes for the primary.
type ledger struct {
	t    *testing.T
	key  string
	lead *atomic.Pointer[member]
	stop chan struct{}
	done sync.WaitGroup

	mu      sync.Mutex // held while a command is under way
	n       int
	told    []int        // the numbers that it was told are there
	past    [][]int      // what told was, each time that its end was lost: an older file may have that
	unknown map[int]bool // those of which it never heard
	fence   int64
	fences  int
}

func openLedger(t *testing.T, key string, lead *atomic.Pointer[member]) *ledger {
	l := &ledger{t: t, key: key, lead: lead, stop: make(chan struct{}), unknown: map[int]bool{}}
	l.done.Go(l.run)
	return l
}

func (l *ledger) close() { close(l.stop); l.done.Wait() }

// ledgerPatience is how long a reply may take: a server may stand still.
const ledgerPatience = 3 * time.Second

func (l *ledger) run() {
	var c *peer.Conn
	var at *member
	defer func() {
		if c != nil {
			c.Close()
		}
	}()
	for {
		select {
		case <-l.stop:
			return
		case <-time.After(2 * time.Millisecond):
		}
		l.mu.Lock()
		lead := l.lead.Load()
		if c == nil || at != lead {
			if c != nil {
				c.Close()
			}
			var err error
			if c, err = peer.Dial(lead.addr); err == nil {
				at = lead
				_ = c.Send("SELECT", ledgerDB)
				_, err = c.ReceiveWithin(ledgerPatience)
			}
			if err != nil {
				c = nil
				l.mu.Unlock()
				continue
			}
		}
		if !l.write(c) {
			c.Close()
			c = nil
		}
		l.mu.Unlock()
	}
}

// write adds a number, and at times takes a lock. It reports whether the connection goes on.
func (l *ledger) write(c *peer.Conn) bool {
	l.n++
	_ = c.Send("RPUSH", l.key, strconv.Itoa(l.n))
	v, err := c.ReceiveWithin(ledgerPatience)
	switch {
	case err != nil:
		l.unknown[l.n] = true
		return false
	case v.Kind == ':':
		l.told = append(l.told, l.n)
	default: // it is a replica by now, or loads
		return false
	}
	if l.n%10 != 0 {
		return true
	}
	owner := fmt.Sprint("o", l.n)
	_ = c.Send("LK.ACQUIRE", "lock:"+l.key, owner, "300")
	if v, err = c.ReceiveWithin(ledgerPatience); err != nil || len(v.Items) != 4 {
		return false
	}
	if v.Items[0].Text == "1" {
		if fence, _ := strconv.ParseInt(v.Items[1].Text, 10, 64); fence <= l.fence {
			l.t.Errorf("%s: the fence is %d, it was %d", l.key, fence, l.fence)
		} else {
			l.fence = fence
			l.fences++
		}
		_ = c.Send("LK.RELEASE", "lock:"+l.key, owner)
		if _, err = c.ReceiveWithin(ledgerPatience); err != nil {
			return false
		}
	}
	return true
}

// check compares with what a server has, which may lack the end of what the client was told, and nothing else. A server
// that came back with an older file may have the beginning of what was lost since. It returns how many of the numbers that
// the client was told of are lost. From then on the client goes by what is there. l.mu is held.
func (l *ledger) check(what string, older bool, v peer.Value) (lost int) {
	l.t.Helper()
	if v.Kind != '*' {
		l.t.Errorf("%s: %s is %v", what, l.key, v)
		return 0
	}
	var got []int
	seen := map[int]bool{}
	for _, item := range v.Items {
		n, err := strconv.Atoi(item.Text)
		if err != nil || seen[n] || n > l.n {
			l.t.Errorf("%s: %s has %q", what, l.key, item.Text)
			return 0
		}
		if seen[n] = true; !l.unknown[n] {
			got = append(got, n)
		}
	}
	histories := [][]int{l.told}
	if older {
		histories = append(histories, l.past...)
	}
	same := 0 // of the history that has most of it
	for _, told := range histories {
		n := 0
		for n < min(len(got), len(told)) && got[n] == told[n] {
			n++
		}
		same = max(same, n)
	}
	if same < len(got) {
		l.t.Errorf("%s: number %d of %s is %d, not what the client was told: it has %d, told were %d", what, same, l.key, got[same], len(got), len(l.told))
		return 0
	}
	for _, n := range l.told {
		if !seen[n] {
			lost++
		}
	}
	if lost > 0 {
		l.past = append(l.past, l.told)
	}
	l.told = got
	return lost
}
