package limitkvtest_test

// The package as its users use it, with go-redis.

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/limitkv/limitkv/limitkvtest"
)

func client(t *testing.T, s *limitkvtest.Server, password string) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: s.Addr, Password: password})
	t.Cleanup(func() { c.Close() })
	return c
}

func TestClockIsTheTests(t *testing.T) {
	s := limitkvtest.Start(t)
	c, ctx := client(t, s, ""), context.Background()
	s.FreezeAt(time.UnixMilli(1_700_000_000_000))
	if now := c.Time(ctx).Val().UnixMilli(); now != 1_700_000_000_000 {
		t.Errorf("the time is %d", now)
	}
	if err := c.Set(ctx, "k", "v", time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	s.Advance(59 * time.Second)
	if ttl := c.PTTL(ctx, "k").Val(); ttl != time.Second {
		t.Errorf("%v to live", ttl)
	}
	s.Advance(2 * time.Second)
	if n := c.DBSize(ctx).Val(); n != 0 {
		t.Errorf("%d keys after their time", n)
	}
	s.Resume()
	if year := c.Time(ctx).Val().Year(); year < 2024 {
		t.Errorf("the clock runs in %d", year)
	}
}

func TestServersAreApart(t *testing.T) {
	one, two := limitkvtest.Start(t), limitkvtest.Start(t, "--requirepass", "secret")
	ctx := context.Background()
	a, b := client(t, one, ""), client(t, two, "secret")
	for _, c := range []*redis.Client{a, b} {
		if err := c.Incr(ctx, "n").Err(); err != nil {
			t.Fatal(err)
		}
	}
	one.FlushAll()
	if n := a.Exists(ctx, "n").Val(); n != 0 {
		t.Error("flushed and still there")
	}
	if n := b.Get(ctx, "n").Val(); n != "1" {
		t.Errorf("the other server has %q", n)
	}
	if err := client(t, two, "wrong").Ping(ctx).Err(); err == nil {
		t.Error("a wrong password was accepted")
	}
	if reply := two.Do("GET", "n"); reply != "$1\r\n1\r\n" {
		t.Errorf("Do replied %q", reply)
	}
}

func TestSnapshotIsBroughtBack(t *testing.T) {
	s := limitkvtest.Start(t)
	c, ctx := client(t, s, ""), context.Background()
	s.FreezeAt(time.UnixMilli(1_700_000_000_000))
	c.Set(ctx, "fixture", "v", time.Minute)
	for _, name := range []string{"one", "two"} {
		t.Run(name, func(t *testing.T) {
			restore := s.Snapshot(t)
			for range 2 {
				if keys := c.Keys(ctx, "*").Val(); !slices.Equal(keys, []string{"fixture"}) {
					t.Fatalf("begins with %q", keys)
				}
				c.Set(ctx, "fixture", "changed", 0)
				c.Set(ctx, "more", "v", 0)
				s.Advance(time.Hour)
				restore()
			}
			c.FlushAll(ctx)
		})
	}
	if v, ttl := c.Get(ctx, "fixture").Val(), c.TTL(ctx, "fixture").Val(); v != "v" || ttl != time.Minute {
		t.Errorf("ends with %q, %v to live", v, ttl)
	}
	if reply := s.Do("LKV.SNAPSHOT", "LIST"); reply != "*0\r\n" {
		t.Errorf("left %q", reply)
	}
}

func TestNamespacesAreApart(t *testing.T) {
	server := limitkvtest.Start(t)
	ctx := context.Background()
	t.Run("group", func(t *testing.T) {
		for _, name := range []string{"one", "two", "three"} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := server.Namespace(t)
				c := client(t, s, "")
				s.Snapshot(t)
				s.Record()
				if n := c.Incr(ctx, "n").Val(); n != 1 {
					t.Errorf("counted to %d", n)
				}
				if reply := s.Do("GET", "n"); reply != "$1\r\n1\r\n" {
					t.Errorf("Do replied %q", reply)
				}
				s.FailNext("get", 1, "ERR "+name)
				if err := c.Get(ctx, "n").Err(); err == nil || err.Error() != "ERR "+name {
					t.Errorf("GET: %v", err)
				}
				if got := s.Received("incr"); len(got) != 1 {
					t.Errorf("received %q", got)
				}
				s.FlushAll()
				if n := c.DBSize(ctx).Val(); n != 0 {
					t.Errorf("%d keys", n)
				}
			})
		}
	})
	if reply := server.Do("LKV.NAMESPACE", "LIST"); reply != "*0\r\n" {
		t.Errorf("left %q", reply)
	}
}

func TestSeedRepeats(t *testing.T) {
	s := limitkvtest.Start(t)
	c, ctx := client(t, s, ""), context.Background()
	draw := func() []string {
		s.FlushAll()
		s.Seed(42)
		c.SAdd(ctx, "s", "a", "b", "c", "d", "e", "f", "g", "h")
		return c.SPopN(ctx, "s", 4).Val()
	}
	first, second := draw(), draw()
	if len(first) != 4 || len(second) != 4 {
		t.Fatalf("drew %v and %v", first, second)
	}
	for i := range first {
		if first[i] != second[i] {
			t.Fatalf("drew %v and %v", first, second)
		}
	}
}

func TestFaultsAndRecord(t *testing.T) {
	s := limitkvtest.Start(t)
	c, ctx := client(t, s, ""), context.Background()
	s.Record()
	s.FailNext("get", 1, "ERR not now")
	if err := c.Get(ctx, "k").Err(); err == nil || err.Error() != "ERR not now" {
		t.Errorf("the first GET: %v", err)
	}
	if err := c.Get(ctx, "k").Err(); err != redis.Nil {
		t.Errorf("the second GET: %v", err)
	}
	s.DisconnectNext("SET user:*", 1)
	if err := c.Set(ctx, "user:1", "with\r\nlines", 0).Err(); err != nil {
		t.Errorf("the client did not try again: %v", err)
	}
	if got := s.Received("set"); len(got) != 2 || !slices.Equal(got[1], []string{"set", "user:1", "with\r\nlines"}) {
		t.Errorf("received %q", got)
	}
	s.Freeze()
	s.DelayNext("ping", 1, time.Minute)
	done := make(chan error, 1)
	go func() { done <- c.Ping(ctx).Err() }()
	for len(s.Received("ping")) == 0 {
		time.Sleep(time.Millisecond)
	}
	s.Advance(time.Minute)
	if err := <-done; err != nil {
		t.Error(err)
	}
	s.FailNext("*", 100, "ERR all")
	s.ClearFaults()
	if err := c.Ping(ctx).Err(); err != nil {
		t.Error(err)
	}
}
