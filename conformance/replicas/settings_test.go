package replicas

// Settings of the link, each beside Redis: as whom a replica logs in, where it says that it is, and how long either side waits.

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
)

// both are limitkv and Redis, as primaries and as replicas.
var both = map[string]func(t *testing.T, args ...string) *peer.Server{
	"limitkv": primary,
	"redis": func(t *testing.T, args ...string) *peer.Server {
		return kinds["redis"](t, append([]string{"--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1"}, args...)...)
	},
}

// pairs runs a test with limitkv and Redis in both roles, but not with Redis in both.
func pairs(t *testing.T, run func(t *testing.T, leads, follows func(t *testing.T, args ...string) *peer.Server)) {
	for leads, startPrimary := range both {
		for follows, startReplica := range both {
			if leads != "redis" || follows != "redis" {
				t.Run(follows+" of "+leads, func(t *testing.T) { t.Parallel(); run(t, startPrimary, startReplica) })
			}
		}
	}
}

func TestLogsIn(t *testing.T) {
	pairs(t, func(t *testing.T, leads, follows func(t *testing.T, args ...string) *peer.Server) {
		p := leads(t)
		for _, rule := range []string{"copier on >secret +psync +replconf +ping", "weak on >secret +ping +replconf", "away off >secret +@all"} {
			p.Must(t, append([]string{"ACL", "SETUSER"}, strings.Fields(rule)...)...)
		}
		admin := p.Dial(t)
		if v, err := admin.Do("CONFIG", "SET", "requirepass", "default's"); err != nil || v.Text != "OK" {
			t.Fatal(v, err)
		}
		for _, test := range []struct{ user, password, says string }{
			{"copier", "secret", ""},
			{"copier", "wrong", "WRONGPASS"},
			{"nobody", "secret", "WRONGPASS"},
			{"away", "secret", "WRONGPASS"},
			{"weak", "secret", "NOPERM"},
			{"copier", "", "NOAUTH"}, // a user without a password is not sent
			{"", "", "NOAUTH"},
			{"", "secret", "WRONGPASS"},
			{"", "default's", ""},
			{"default", "default's", ""},
			{"copier", strings.Repeat("p", 16<<10), "WRONGPASS"},
			{"copier", strings.Repeat("p", 16<<10+1), "unauthenticated bulk length"},
			{strings.Repeat("u", 1_000_000), "secret", "sync started"}, // the link ends before or while that is sent
		} {
			name := fmt.Sprintf("%.20q %.20q", test.user, test.password)
			r := follows(t)
			r.Must(t, "CONFIG", "SET", "masteruser", test.user, "masterauth", test.password)
			peer.Follow(t, r, p.Addr)
			if test.says == "" {
				peer.Eventually(t, name+": the link", func() bool { return r.Info(t, "master_link_status") == "up" })
				continue
			}
			r.Says(t, test.says)
			if got := r.Info(t, "master_link_status"); got != "down" {
				t.Errorf("%s: the link is %s", name, got)
			}
			r.Must(t, "CONFIG", "SET", "masteruser", "copier", "masterauth", "secret")
			peer.Eventually(t, name+": the link by the right user", func() bool { return r.Info(t, "master_link_status") == "up" })
			r.Stop()
		}
	})
}

// What a replica announces is what its primary tells others.
func TestAnnounces(t *testing.T) {
	pairs(t, func(t *testing.T, leads, follows func(t *testing.T, args ...string) *peer.Server) {
		p := leads(t)
		r := follows(t, "--replica-announce-ip", "10.9.8.7", "--replica-announce-port", "1")
		_, own, _ := net.SplitHostPort(r.Addr)
		peer.Follow(t, r, p.Addr)
		for i, test := range [][2]string{{"10.9.8.7", "1"}, {"replica.example", "65534"}, {"::1", "65535"}, {"", "0"}} {
			ip, port := test[0], test[1]
			if i > 0 {
				r.Must(t, "CONFIG", "SET", "replica-announce-ip", ip, "replica-announce-port", port)
				p.Must(t, "CLIENT", "KILL", "TYPE", "replica")
			}
			if ip == "" {
				ip = "127.0.0.1"
			}
			if port == "0" {
				port = own
			}
			peer.Eventually(t, "INFO says "+ip+" "+port, func() bool {
				return strings.HasPrefix(p.Info(t, "slave0"), fmt.Sprintf("ip=%s,port=%s,state=online,", ip, port))
			})
			role := p.Must(t, "ROLE")
			if len(role.Items) != 3 || len(role.Items[2].Items) != 1 {
				t.Fatalf("ROLE: %v", role)
			}
			if it := role.Items[2].Items[0].Items; it[0].Text != ip || it[1].Text != port {
				t.Errorf("ROLE has %v, want %s %s", it, ip, port)
			}
		}
		for _, port := range []string{"-1", "65536", "1000000"} {
			if v := r.Must(t, "CONFIG", "SET", "replica-announce-port", port); !v.IsError() {
				t.Errorf("port %s: %v", port, v)
			}
		}
	})
}

// A primary that says nothing for repl-timeout is left, and gone on with when it speaks again.
func TestSilentPrimary(t *testing.T) {
	pairs(t, func(t *testing.T, leads, follows func(t *testing.T, args ...string) *peer.Server) {
		p := leads(t)
		hasty, patient := follows(t, "--repl-timeout", "2"), follows(t, "--repl-timeout", "2147483647")
		for _, r := range []*peer.Server{hasty, patient} {
			peer.Follow(t, r, p.Addr)
			peer.CaughtUp(t, p, r)
		}
		before := p.Info(t, "sync_full") // on a loaded machine the hasty one may have been too hasty at first
		if err := p.Signal(peer.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		stopped := time.Now()
		goesOn := func() { _ = p.Signal(peer.SIGCONT) }
		defer goesOn()
		peer.Eventually(t, "the link ends", func() bool { return hasty.Info(t, "master_link_status") == "down" })
		if after := time.Since(stopped); after < 500*time.Millisecond { // the last ping came about a second before, at most
			t.Errorf("the link ended after %v", after)
		}
		hasty.Says(t, "MASTER timeout: no data nor PING received...")
		if got := patient.Info(t, "master_link_status"); got != "up" {
			t.Errorf("with the longest timeout the link is %s", got)
		}
		goesOn()
		p.Must(t, "SET", "k", "v")
		same(t, p, hasty)
		same(t, p, patient)
		if full, partial := p.Info(t, "sync_full"), p.Info(t, "sync_partial_ok"); full != before || partial == "0" {
			t.Errorf("%s full synchronisations, %s before, %s partial ones", full, before, partial)
		}
	})
}

// A replica that reads and says nothing is let go after repl-timeout, which CONFIG SET changes.
func TestSilentReplica(t *testing.T) {
	for name, start := range both {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, "--repl-timeout", "2147483647")
			c := p.Dial(t)
			if err := c.Send("PSYNC", "?", "-1"); err != nil {
				t.Fatal(err)
			}
			peer.Eventually(t, "the replica is online", func() bool { return strings.Contains(p.Info(t, "slave0"), "state=online") })
			if c.Closed(2500 * time.Millisecond) {
				t.Fatal("it is let go before its time")
			}
			p.Must(t, "CONFIG", "SET", "repl-timeout", "3")
			if !c.Closed(patience) {
				t.Fatal("it is kept for ever")
			}
			p.Says(t, "Disconnecting timedout replica (streaming sync)")
			if got := p.Info(t, "connected_slaves"); got != "0" {
				t.Errorf("%s replicas", got)
			}
		})
	}
}

// Where nothing happens pings come as often as they are to.
func TestPings(t *testing.T) {
	const of = 3
	for name, start := range both {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t)
			for _, period := range []int{1, 2} {
				p.Must(t, "CONFIG", "SET", "repl-ping-replica-period", fmt.Sprint(period))
				c := p.Dial(t)
				if err := c.Send("PSYNC", "?", "-1"); err != nil {
					t.Fatal(err)
				}
				offset := func() (n int) { _, _ = fmt.Sscan(p.Info(t, "master_repl_offset"), &n); return n }
				const ping = len("*1\r\n$4\r\nPING\r\n")
				first := offset()
				peer.Eventually(t, "the first ping", func() bool { return offset() > first })
				first, began := offset(), time.Now()
				peer.Eventually(t, "the last ping", func() bool { return offset() >= first+of*ping })
				if took, most := time.Since(began), time.Duration(of*period)*time.Second; took > most*3/2+time.Second || took < most-1500*time.Millisecond {
					t.Errorf("%d pings every %d s took %v", of, period, took)
				}
				c.Close()
			}
		})
	}
}
