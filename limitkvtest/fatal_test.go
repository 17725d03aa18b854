package limitkvtest

// A server that cannot continue ends the process of the tests, and names the test that started it.

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestServerThatDiesSaysWhose(t *testing.T) {
	const inside = "LIMITKV_TEST_DIES"
	if os.Getenv(inside) != "" {
		s := Start(t)
		go s.server.Die("a test says so")
		time.Sleep(time.Minute)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), inside+"=1")
	out, err := cmd.CombinedOutput()
	const want = "panic: limitkvtest: the server of TestServerThatDiesSaysWhose: fatal: a test says so"
	if err == nil || !strings.Contains(string(out), want) {
		t.Errorf("%v, without %q:\n%s", err, want, out)
	}
}
