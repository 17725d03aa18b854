// Package conformance proves that limitkv behaves as the real Redis 8 does. Everything here talks TCP to the built
// binary: recorded conversations that need no Redis (recorded_test.go), random commands sent to both servers
// (random_test.go), the users' scripts (scripts_test.go) and input that no good client sends (badinput_test.go).
//
// "make test" replays what is recorded; "make conformance" also compares with a live Redis 8.0.
package conformance

import (
	"flag"
	"testing"

	"github.com/limitkv/limitkv/conformance/peer"
)

var (
	record   = flag.Bool("record", false, "ask the real Redis for the replies of testdata and write them down")
	thorough = flag.Bool("thorough", false, "run the tests that take long as well")
	required = flag.Bool("oracle-required", false, "fail, rather than skip, where there is no real Redis to compare with")
)

// pending are families of random commands with differences that are known and rare. Of Lua's: which of 0 and -0 a constant
// is, where a script has both, and signs of NaNs.
var (
	pending     = []string{"lua"}
	withPending = flag.Bool("pending", false, "run what is pending as well")
)

func TestMain(m *testing.M) { peer.Main(m) }

// onlyThorough skips a test that takes long.
func onlyThorough(t *testing.T) {
	t.Helper()
	if !*thorough {
		t.Skip("takes long: make conformance runs it")
	}
}

// redis starts the real Redis, or skips the test.
func redis(tb testing.TB, args ...string) *peer.Server {
	tb.Helper()
	return peer.Redis(tb, *required, args...)
}

//go:generate go run ./generate
