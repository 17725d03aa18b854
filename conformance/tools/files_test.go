// Files that tools are given: scripts, and a certificate that signs itself and serves for all parties.
package tools

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/limitkv/limitkv/conformance/peer"
)

func writeFile(tb testing.TB, path, text string) {
	tb.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
}

// certificates writes ca.crt, and server and client, each with .crt and .key.
func certificates(tb testing.TB, dir string) {
	tb.Helper()
	cert, key := peer.Certificate(tb)
	for _, name := range []string{"ca", "server", "client"} {
		writeFile(tb, filepath.Join(dir, name+".crt"), string(cert))
		writeFile(tb, filepath.Join(dir, name+".key"), string(key))
	}
}
