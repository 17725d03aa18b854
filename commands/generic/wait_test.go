package generic_test

// A wait without keys can end while it is still being set up: nothing holds its
// time-out or CLIENT UNBLOCK back. The race detector looks on.

import (
	"testing"

	"github.com/limitkv/limitkv/commands/livetest"
)

func TestWaitEndsWhileItBegins(t *testing.T) {
	s := livetest.Start(t)
	const rounds = 700
	waiter, killer := s.Client(), s.Client()
	id := waiter.Do("CLIENT", "ID")
	done := make(chan int)
	go func() {
		unblocked := 0
		for i := 0; ; i++ {
			select {
			case done <- unblocked:
				return
			default:
			}
			if i%2 == 0 {
				killer.Do("LKV.CLOCK", "ADVANCE", "1")
			} else if killer.Do("CLIENT", "UNBLOCK", id) == "1" {
				unblocked++
			}
		}
	}()
	for range rounds {
		waiter.Want("0", "WAIT", "1", "1")
	}
	unblocked := <-done
	if unblocked == 0 || unblocked == rounds {
		t.Errorf("CLIENT UNBLOCK ended %d of %d waits: both ways of ending were to be tried", unblocked, rounds)
	}
	s.Blocked(0)
}
