package replicas

// Links with TLS, where both sides show a certificate: a replica that has none is not let in.

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
)

// certified writes a certificate for 127.0.0.1, which signs itself, with its key, and returns the settings that name them.
func certified(t *testing.T) []string {
	t.Helper()
	cert, key := peer.Certificate(t)
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, text := range map[string][]byte{certFile: cert, keyFile: key} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return []string{"--tls-cert-file", certFile, "--tls-key-file", keyFile, "--tls-ca-cert-file", certFile, "--tls-auth-clients", "yes"}
}

func TestTLS(t *testing.T) {
	port, err := peer.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	ours := certified(t)
	p := primary(t, append([]string{"--tls-port", port}, ours...)...)
	p.Must(t, "SET", "before", "1")
	r := primary(t, append([]string{"--tls-replication", "yes"}, ours...)...)
	peer.Follow(t, r, "127.0.0.1:"+port)
	p.Must(t, "DQ.ADD", "queue", "DELAY", "100000", "job")
	same(t, p, r)
	// The link breaks, and goes on where it was.
	p.Must(t, "CLIENT", "KILL", "TYPE", "replica")
	p.Must(t, "SET", "after", "1")
	same(t, p, r)
	if partial := p.Info(t, "sync_partial_ok"); partial != "1" {
		t.Errorf("%s partial synchronisations", partial)
	}
	// Whoever shows another certificate, or speaks without TLS, gets nothing.
	stranger := primary(t, append([]string{"--tls-replication", "yes"}, certified(t)...)...)
	open := primary(t)
	peer.Follow(t, stranger, "127.0.0.1:"+port)
	peer.Follow(t, open, "127.0.0.1:"+port)
	time.Sleep(2 * time.Second) // for two tries
	for _, s := range []*peer.Server{stranger, open} {
		if status, keys := s.Info(t, "master_link_status"), s.Must(t, "DBSIZE").Text; status != "down" || keys != "0" {
			t.Errorf("the link is %s, there are %s keys", status, keys)
		}
	}
	p.Must(t, "SET", "last", "1")
	same(t, p, r)
}
