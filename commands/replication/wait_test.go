package replication_test

// A wait without keys can end while it is still being set up: nothing delays its time-out or CLIENT UNBLOCK. The race
// detector checks that.

import (
	"testing"

	"github.com/limitkv/limitkv/commands/livetest"
)

func TestWaitTimeouts(t *testing.T) {
	a := livetest.Start(t).Client()
	for _, command := range [][]any{{"WAIT", 1}, {"WAITAOF", 0, 1}} {
		for timeout, want := range map[string]string{
			"-1": "-ERR timeout is negative", "9223372036854775807": "-ERR timeout is out of range",
			"9223372036854775808": "-ERR timeout is not an integer or out of range",
		} {
			if got := a.Do(append(command, timeout)...); got != want {
				t.Errorf("%v %s: %s, want %s", command, timeout, got, want)
			}
		}
	}
}

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
