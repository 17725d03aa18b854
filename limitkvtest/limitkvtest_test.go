package limitkvtest_test

// The package as its users use it, with go-redis.

import (
	"context"
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
