// Package orders tests what an order's time-out and a login's limit do, without waiting for them. In Go the server is in the
// test's own process.
package orders

import (
	"context"
	"testing"
	"time"

	"github.com/limitkv/limitkv/limitkvtest"
	"github.com/redis/go-redis/v9"
)

func TestAnOrderIsOverAfter15Minutes(t *testing.T) {
	server := limitkvtest.Start(t)
	server.Freeze()
	ctx, client := context.Background(), redis.NewClient(&redis.Options{Addr: server.Addr})
	client.Do(ctx, "DQ.ADD", "orders", "DELAY", 900_000, "ID", "order:7", "ann")
	server.Advance(15*time.Minute - time.Millisecond)
	if got := client.Do(ctx, "DQ.POP", "orders").Val(); got != nil {
		t.Errorf("it is over early: %v", got)
	}
	server.Advance(time.Millisecond)
	if got, err := client.Do(ctx, "DQ.POP", "orders").Slice(); err != nil || len(got) != 1 {
		t.Errorf("it is not over: %v %v", got, err)
	}
}

func TestTheFourthLoginInAMinuteIsRefused(t *testing.T) {
	server := limitkvtest.Start(t)
	server.Freeze()
	ctx, client := context.Background(), redis.NewClient(&redis.Options{Addr: server.Addr})
	refused := func() bool {
		reply, err := client.Do(ctx, "RL.ACQUIRE", "login:ann", 1, "LOG", 3, 60_000).Int64Slice()
		if err != nil {
			t.Fatal(err)
		}
		return reply[0] == 1
	}
	for i, want := range []bool{false, false, false, true} {
		if refused() != want {
			t.Errorf("login %d: refused %v", i+1, !want)
		}
	}
	server.Advance(time.Minute)
	if refused() {
		t.Error("refused a minute later")
	}
}
