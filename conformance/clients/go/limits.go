package main

// redis_rate and redsync: limits and locks over go-redis, and over the other clients where they can.

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	redsyncredigo "github.com/go-redsync/redsync/v4/redis/redigo"
	redsyncrueidis "github.com/go-redsync/redsync/v4/redis/rueidis"
	redigo "github.com/gomodule/redigo/redis"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidiscompat"
)

func redisRate() {
	c := client{"redis_rate", "github.com/go-redis/redis_rate/v10"}
	r := redis.NewClient(&redis.Options{Addr: plain})
	defer r.Close()
	limiter := redis_rate.NewLimiter(r)
	c.ways(func(w way, _ int) error {
		r := redis.NewClient(w.goRedis(0))
		defer r.Close()
		res, err := redis_rate.NewLimiter(r).Allow(ctx, "way", redis_rate.PerMinute(100))
		return first(err, want("let in", res != nil && res.Allowed == 1, true))
	})
	c.check("script", "10 of 15 requests a minute are let in", func() error {
		in := 0
		for range 15 {
			res, err := limiter.Allow(ctx, "user", redis_rate.PerMinute(10))
			if err != nil {
				return err
			}
			in += res.Allowed
		}
		return want("let in", in, 10)
	})
	c.check("script", "10 of 40 by 8 goroutines, over a cluster and over a ring", func() error {
		nodes := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{clustered}})
		ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"one": plain, "two": clustered}})
		defer nodes.Close()
		defer ring.Close()
		for _, limiter := range []*redis_rate.Limiter{redis_rate.NewLimiter(nodes), redis_rate.NewLimiter(ring)} {
			var in atomic.Int64
			var failed atomic.Value
			var all sync.WaitGroup
			for range 8 {
				all.Go(func() {
					for range 5 {
						res, err := limiter.Allow(ctx, "many", redis_rate.PerHour(10))
						if err != nil {
							failed.Store(err)
							return
						}
						in.Add(int64(res.Allowed))
					}
				})
			}
			all.Wait()
			err, _ := failed.Load().(error)
			if err := first(err, want("let in", in.Load(), 10)); err != nil {
				return err
			}
		}
		return nil
	})
	c.check("script", "scripts that the server has lost", func() error {
		if err := r.ScriptFlush(ctx).Err(); err != nil {
			return err
		}
		res, err := limiter.Allow(ctx, "lost", redis_rate.PerMinute(1))
		return first(err, want("let in", res.Allowed, 1))
	})
	c.check("features", "AllowN, AllowAtMost, RetryAfter, Reset", func() error {
		l := redis_rate.PerHour(100)
		a, err := limiter.AllowN(ctx, "n", l, 90)
		if err != nil {
			return err
		}
		b, err := limiter.AllowAtMost(ctx, "n", l, 90)
		if err != nil {
			return err
		}
		d, err := limiter.AllowN(ctx, "n", l, 1)
		if err != nil {
			return err
		}
		if d.RetryAfter <= 0 || d.RetryAfter > 37*time.Second {
			return fmt.Errorf("retry after %v", d.RetryAfter)
		}
		if err := limiter.Reset(ctx, "n"); err != nil {
			return err
		}
		e, err := limiter.AllowN(ctx, "n", l, 100)
		return first(err, want("first", a.Allowed, 90), want("at most", b.Allowed, 10), want("refused", d.Allowed, 0), want("after reset", e.Allowed, 100))
	})
}

func redSync() {
	c := client{"redsync", "github.com/go-redsync/redsync/v4"}
	r := redis.NewClient(&redis.Options{Addr: plain})
	defer r.Close()
	locks := redsync.New(goredis.NewPool(r))
	c.ways(func(w way, _ int) error {
		r := redis.NewClient(w.goRedis(0))
		defer r.Close()
		m := redsync.New(goredis.NewPool(r)).NewMutex("redsync:way", redsync.WithTries(1), redsync.WithExpiry(5*time.Second))
		err := m.Lock()
		if err != nil {
			return fmt.Errorf("%w %v", err, r.Ping(ctx).Err()) // redsync says of some failures only that it has no lock
		}
		_, err = m.Unlock()
		return err
	})
	c.check("script", "10 goroutines, one at a time", func() error {
		inside, most, total := int32(0), int32(0), int32(0)
		var all sync.WaitGroup
		var failed atomic.Value
		for range 10 {
			all.Go(func() {
				m := locks.NewMutex("mutex", redsync.WithTries(400), redsync.WithRetryDelay(5*time.Millisecond))
				if err := m.Lock(); err != nil {
					failed.Store(err)
					return
				}
				if n := atomic.AddInt32(&inside, 1); n > most {
					most = n
				}
				total++
				time.Sleep(2 * time.Millisecond)
				atomic.AddInt32(&inside, -1)
				if ok, err := m.Unlock(); !ok || err != nil {
					failed.Store(fmt.Errorf("unlock: %v %v", ok, err))
				}
			})
		}
		all.Wait()
		if err, ok := failed.Load().(error); ok {
			return err
		}
		return first(want("at a time", most, 1), want("in all", total, 10))
	})
	c.check("features", "a majority of 3 servers, one of which is away, over go-redis, redigo and rueidis", func() error {
		r2, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{clustered}})
		if err != nil {
			return err
		}
		defer r2.Close()
		away := &redigo.Pool{Dial: func() (redigo.Conn, error) { return redigo.Dial("tcp", "127.0.0.1:1") }}
		one := goredis.NewPool(r)
		two := redsyncrueidis.NewPool(rueidiscompat.NewAdapter(r2))
		all := redsync.New(one, two, redsyncredigo.NewPool(away))
		m := all.NewMutex("majority", redsync.WithTries(1))
		if err := m.Lock(); err != nil {
			return err
		}
		if all.NewMutex("majority", redsync.WithTries(1)).Lock() == nil {
			return errors.New("a held lock was given")
		}
		if redsync.New(one, redsyncredigo.NewPool(away), redsyncredigo.NewPool(away)).NewMutex("minority", redsync.WithTries(1)).Lock() == nil {
			return errors.New("a lock of a minority was given")
		}
		// With one server away redsync says of a release that it is one, and of the third that it failed.
		if ok, err := m.Unlock(); !ok {
			return fmt.Errorf("unlock: %w", err)
		}
		open := &redigo.Pool{Dial: func() (redigo.Conn, error) { return redigo.Dial("tcp", plain) }}
		defer open.Close()
		again := redsync.New(redsyncredigo.NewPool(open)).NewMutex("majority", redsync.WithTries(1))
		if err := again.Lock(); err != nil {
			return fmt.Errorf("over redigo: %w", err)
		}
		_, err = again.Unlock()
		return err
	})
	c.check("features", "expiry, extending, a foreign lock", func() error {
		a := locks.NewMutex("lock", redsync.WithExpiry(300*time.Millisecond), redsync.WithTries(1))
		b := locks.NewMutex("lock", redsync.WithExpiry(time.Second), redsync.WithTries(1))
		if err := a.Lock(); err != nil {
			return err
		}
		if b.Lock() == nil {
			return errors.New("a held lock was given")
		}
		if ok, err := a.Extend(); !ok || err != nil {
			return fmt.Errorf("extend: %v %v", ok, err)
		}
		time.Sleep(350 * time.Millisecond)
		if err := b.Lock(); err != nil {
			return fmt.Errorf("after expiry: %w", err)
		}
		if ok, _ := a.Unlock(); ok {
			return errors.New("a lock of another was released")
		}
		_, err := b.Unlock()
		return err
	})
}
