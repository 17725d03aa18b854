package peer

import (
	"os"
	"testing"
)

// Long skips a test that takes more than some fifteen seconds, unless all are to run (make test LONG=1). It is a variable
// and no flag, so that go test keeps the results of the packages that do not ask for it.
func Long(t testing.TB) {
	t.Helper()
	if os.Getenv("LIMITKV_LONG") == "" {
		t.Skip("takes long: make test LONG=1")
	}
}
