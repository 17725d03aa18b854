package replicas

// What min-replicas-to-write promises: a primary that is cut off from its replicas takes writes for a while that is known, and
// these are all that is lost when a replica takes its place.

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
)

// lagMaxSeconds is min-replicas-max-lag. A replica says once a second how far it is, its silence is counted in whole seconds,
// and looked at once a second: so writes end within two seconds more.
const (
	lagMaxSeconds = 1
	lagBound      = (lagMaxSeconds + 2) * time.Second
	lagSlack      = time.Second // of a machine that is busy
)

func TestLagBoundsLoss(t *testing.T) {
	settings := []string{"--min-replicas-to-write", "1", "--min-replicas-max-lag", fmt.Sprint(lagMaxSeconds), "--repl-diskless-sync-delay", "0"}
	for _, cut := range []string{"closed", "stopped"} {
		for name, p := range map[string]*peer.Server{"limitkv": primary(t, settings...), "redis": peer.Redis(t, inCI, settings...)} {
			t.Run(name+" "+cut, func(t *testing.T) {
				link, err := peer.NewLink(p.Addr)
				if err != nil {
					t.Fatal(err)
				}
				defer link.Close()
				r := peer.LimitKV(t)
				peer.Follow(t, r, "127.0.0.1:"+link.Port())
				c := p.Dial(t)
				write := func(n int) string {
					t.Helper()
					v, err := c.Do("SET", fmt.Sprint("k", n), "1")
					if err != nil {
						t.Fatal(err)
					}
					return v.Text
				}
				peer.Eventually(t, "writes are taken", func() bool { return write(0) == "OK" })
				n, before := 0, 0
				for began := time.Now(); time.Since(began) < 500*time.Millisecond; time.Sleep(time.Millisecond) {
					if n++; write(n) != "OK" {
						t.Fatal("a write is refused while the replica is there")
					}
				}
				same(t, p, r)
				before = n
				if cut == "stopped" { // the connection stays, and nothing comes by it
					if err := r.Signal(peer.SIGSTOP); err != nil {
						t.Fatal(err)
					}
					defer func() { _ = r.Signal(peer.SIGCONT) }()
				} else {
					link.Set(true)
				}
				cutAt, last := time.Now(), time.Now()
				refused := ""
				for refused == "" {
					switch got := write(n + 1); {
					case got == "OK":
						n, last = n+1, time.Now()
					case strings.HasPrefix(got, "NOREPLICAS"):
						refused = got
					default:
						t.Fatal(got)
					}
					if time.Since(cutAt) > 2*lagBound {
						t.Fatalf("writes are taken %v after the cut", time.Since(cutAt))
					}
					time.Sleep(time.Millisecond)
				}
				if took := last.Sub(cutAt); took > lagBound+lagSlack {
					t.Errorf("writes were taken for %v, at most %v is promised", took, lagBound)
				}
				time.Sleep(500 * time.Millisecond)
				if got := write(n + 1); got != refused {
					t.Errorf("and then: %s", got)
				}
				if cut == "stopped" {
					if n == before {
						t.Error("no write was taken after the replica fell silent: that shows nothing")
					}
					return
				}
				r.Must(t, "REPLICAOF", "NO", "ONE")
				if got := r.Must(t, "DBSIZE").Text; got != fmt.Sprint(before+1) {
					t.Errorf("the replica has %s keys, %d were written before the cut", got, before+1)
				}
				t.Logf("%d writes in %v after the cut are lost, and %d before it are not", n-before, last.Sub(cutAt), before)
			})
		}
	}
}
