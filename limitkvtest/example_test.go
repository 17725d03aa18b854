package limitkvtest_test

// The package's Example, which a test runs.

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/limitkv/limitkv/limitkvtest"
)

// t is the running test's.
var t *testing.T

// In a test with the variable t: a limiter refuses the third request in a minute, and grants it a minute later.
func Example() {
	s := limitkvtest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: s.Addr})
	defer client.Close()

	s.Freeze()
	take := func() int64 {
		reply, err := client.Do(context.Background(), "RL.ACQUIRE", "api:42", "FIXED", 2, 60_000).Slice()
		if err != nil {
			t.Fatal(err)
		}
		return reply[0].(int64)
	}
	for i, want := range []int64{0, 0, 1} {
		if got := take(); got != want {
			t.Errorf("request %d: %d", i, got)
		}
	}
	s.Advance(time.Minute)
	if got := take(); got != 0 {
		t.Errorf("a minute later: %d", got)
	}
}

func TestExample(test *testing.T) {
	t = test
	Example()
}
