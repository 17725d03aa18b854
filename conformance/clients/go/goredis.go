package main

// go-redis, and what is built on it: redis_rate, redsync, asynq.

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

var ctx = context.Background()

func goRedis() {
	c := client{"go-redis", "github.com/redis/go-redis/v9"}
	for protocol, area := range map[int]string{2: "connect", 3: "resp3"} {
		c.check(area, fmt.Sprintf("RESP%d: set, get, hash, sorted set", protocol), func() error {
			r := redis.NewClient(&redis.Options{Addr: plain, Protocol: protocol})
			defer r.Close()
			if err := r.Set(ctx, "k", "v", time.Minute).Err(); err != nil {
				return err
			}
			v, err := r.Get(ctx, "k").Result()
			if err != nil {
				return err
			}
			r.Del(ctx, "h", "z")
			r.HSet(ctx, "h", map[string]any{"a": 1, "b": "two"})
			h, err := r.HGetAll(ctx, "h").Result()
			if err != nil {
				return err
			}
			r.ZAdd(ctx, "z", redis.Z{Score: 1.5, Member: "m"}, redis.Z{Score: 2, Member: "n"})
			z, err := r.ZRangeWithScores(ctx, "z", 0, -1).Result()
			return first(err, want("k", v, "v"), want("h", fmt.Sprint(h), "map[a:1 b:two]"), want("z", fmt.Sprint(z), "[{1.5 m} {2 n}]"))
		})
	}
	r := redis.NewClient(&redis.Options{Addr: plain})
	defer r.Close()
	c.check("auth", "password, and refusal of a wrong one", func() error {
		good := redis.NewClient(&redis.Options{Addr: secret, Password: password})
		bad := redis.NewClient(&redis.Options{Addr: secret, Password: "wrong", MaxRetries: -1})
		defer good.Close()
		defer bad.Close()
		if bad.Ping(ctx).Err() == nil {
			return errors.New("the wrong password was taken")
		}
		return good.Ping(ctx).Err()
	})
	c.check("tls", "server certificate verified", func() error {
		t := redis.NewClient(&redis.Options{Addr: secure, TLSConfig: trusting})
		defer t.Close()
		return t.Ping(ctx).Err()
	})
	c.check("unix", "unix socket", func() error {
		u := redis.NewClient(&redis.Options{Network: "unix", Addr: socket})
		defer u.Close()
		return u.Ping(ctx).Err()
	})
	c.check("pipeline", "1000 commands", func() error {
		cmds, err := r.Pipelined(ctx, func(p redis.Pipeliner) error {
			p.Del(ctx, "n")
			for range 1000 {
				p.Incr(ctx, "n")
			}
			return nil
		})
		if err != nil {
			return err
		}
		return want("n", cmds[1000].(*redis.IntCmd).Val(), 1000)
	})
	c.check("transaction", "WATCH, MULTI, EXEC by 8 clients", func() error {
		r.Set(ctx, "watched", 0, 0)
		var all sync.WaitGroup
		var failed atomic.Value
		for range 8 {
			all.Go(func() {
				for done := 0; done < 20; {
					err := r.Watch(ctx, func(tx *redis.Tx) error {
						n, err := tx.Get(ctx, "watched").Int()
						if err != nil {
							return err
						}
						_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error { return p.Set(ctx, "watched", n+1, 0).Err() })
						return err
					}, "watched")
					switch {
					case err == nil:
						done++
					case !errors.Is(err, redis.TxFailedErr):
						failed.Store(err)
						return
					}
				}
			})
		}
		all.Wait()
		if err, ok := failed.Load().(error); ok {
			return err
		}
		n, err := r.Get(ctx, "watched").Int()
		return first(err, want("watched", n, 160))
	})
	c.check("script", "EVALSHA, NOSCRIPT, EVAL", func() error {
		s := redis.NewScript(`return {redis.call('INCRBY', KEYS[1], ARGV[1]), cjson.encode({a = 1}), struct.pack('>I2', 258)}`)
		r.ScriptFlush(ctx)
		r.Del(ctx, "s")
		for i := range 2 {
			v, err := s.Run(ctx, r, []string{"s"}, 5).Slice()
			if err := first(err, want("reply", fmt.Sprint(v), fmt.Sprint([]any{5 * (i + 1), `{"a":1}`, "\x01\x02"}))); err != nil {
				return err
			}
		}
		found, err := s.Exists(ctx, r).Result()
		return first(err, want("SCRIPT EXISTS", fmt.Sprint(found), "[true]"))
	})
	c.check("pubsub", "channel and pattern", func() error {
		sub := r.PSubscribe(ctx, "news.*")
		defer sub.Close()
		if _, err := sub.Receive(ctx); err != nil {
			return err
		}
		if err := sub.Subscribe(ctx, "direct"); err != nil {
			return err
		}
		if _, err := sub.Receive(ctx); err != nil {
			return err
		}
		r.Publish(ctx, "news.go", "one")
		r.Publish(ctx, "direct", "two")
		messages := sub.Channel()
		one, two := <-messages, <-messages
		return first(want("pattern", one.Pattern+one.Channel+one.Payload, "news.*news.goone"), want("payload", two.Payload, "two"))
	})
	c.check("blocking", "BLPOP, BZPOPMIN and XREAD wake", func() error {
		go func() {
			time.Sleep(50 * time.Millisecond)
			r.RPush(ctx, "list", "a")
			r.ZAdd(ctx, "zs", redis.Z{Score: 1, Member: "b"})
			r.XAdd(ctx, &redis.XAddArgs{Stream: "x", Values: []string{"f", "c"}})
		}()
		a, err := r.BLPop(ctx, 5*time.Second, "list").Result()
		if err != nil {
			return err
		}
		b, err := r.BZPopMin(ctx, 5*time.Second, "zs").Result()
		if err != nil {
			return err
		}
		x, err := r.XRead(ctx, &redis.XReadArgs{Streams: []string{"x", "0"}, Block: 5 * time.Second}).Result()
		if err != nil {
			return err
		}
		_, err = r.BLPop(ctx, time.Second, "nothing").Result()
		return first(want("list", fmt.Sprint(a), "[list a]"), want("zset", b.Member.(string), "b"), want("stream", fmt.Sprint(x[0].Messages[0].Values), "map[f:c]"),
			want("timed out", errors.Is(err, redis.Nil), true))
	})
	c.check("features", "RL.ACQUIRE and DQ.POP by Do", func() error {
		v, err := r.Do(ctx, "RL.ACQUIRE", "api", 1, "GCRA", 1, 60000).Int64Slice()
		if err != nil {
			return err
		}
		w, err := r.Do(ctx, "RL.ACQUIRE", "api", 1).Int64Slice()
		if err != nil {
			return err
		}
		r.Do(ctx, "DQ.ADD", "jobs", "DELAY", 0, "ID", "a", "payload")
		job, err := r.Do(ctx, "DQ.POP", "jobs").Slice()
		return first(err, want("granted", v[0], 0), want("refused", w[0], 1), want("job", fmt.Sprint(job[0].([]any)[:2]), "[a payload]"))
	})
	c.check("features", "streams with consumer groups", func() error {
		r.XGroupCreateMkStream(ctx, "sg", "g", "0")
		id := r.XAdd(ctx, &redis.XAddArgs{Stream: "sg", Values: []string{"f", "v"}}).Val()
		got, err := r.XReadGroup(ctx, &redis.XReadGroupArgs{Group: "g", Consumer: "c", Streams: []string{"sg", ">"}}).Result()
		if err != nil {
			return err
		}
		pending, err := r.XPending(ctx, "sg", "g").Result()
		return first(err, want("id", got[0].Messages[0].ID, id), want("pending", pending.Count, 1), want("acked", r.XAck(ctx, "sg", "g", id).Val(), 1))
	})
}

func redisRate() {
	c := client{"redis_rate", "github.com/go-redis/redis_rate/v10"}
	r := redis.NewClient(&redis.Options{Addr: plain})
	defer r.Close()
	limiter := redis_rate.NewLimiter(r)
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

func asynqChecks() {
	c := client{"asynq", "github.com/hibiken/asynq"}
	opt := asynq.RedisClientOpt{Addr: plain, DB: 3}
	c.check("features", "now, delayed, retried, unique and failing tasks", func() error {
		queue := asynq.NewClient(opt)
		defer queue.Close()
		var mu sync.Mutex
		got := map[string]int{}
		all := make(chan struct{}, 100)
		mux := asynq.NewServeMux()
		mux.HandleFunc("job", func(_ context.Context, t *asynq.Task) error {
			mu.Lock()
			defer mu.Unlock()
			name := string(t.Payload())
			got[name]++
			if name == "twice" && got[name] == 1 {
				return errors.New("again")
			}
			all <- struct{}{}
			return nil
		})
		srv := asynq.NewServer(opt, asynq.Config{
			Concurrency: 4, LogLevel: asynq.FatalLevel, DelayedTaskCheckInterval: 100 * time.Millisecond, TaskCheckInterval: 50 * time.Millisecond,
			RetryDelayFunc: func(int, error, *asynq.Task) time.Duration { return 100 * time.Millisecond },
		})
		if err := srv.Start(mux); err != nil {
			return err
		}
		defer srv.Shutdown()
		began := time.Now()
		for _, name := range []string{"now", "twice"} {
			if _, err := queue.Enqueue(asynq.NewTask("job", []byte(name))); err != nil {
				return err
			}
		}
		if _, err := queue.Enqueue(asynq.NewTask("job", []byte("later")), asynq.ProcessIn(2*time.Second)); err != nil {
			return err
		}
		if _, err := queue.Enqueue(asynq.NewTask("job", []byte("only")), asynq.Unique(time.Minute), asynq.ProcessIn(500*time.Millisecond)); err != nil {
			return err
		}
		if _, err := queue.Enqueue(asynq.NewTask("job", []byte("only")), asynq.Unique(time.Minute)); !errors.Is(err, asynq.ErrDuplicateTask) {
			return fmt.Errorf("a unique task twice: %v", err)
		}
		for range 4 {
			select {
			case <-all:
			case <-time.After(15 * time.Second):
				return fmt.Errorf("only %v was done", got)
			}
		}
		if time.Since(began) < time.Second { // asynq counts in whole seconds
			return errors.New("a delayed task came early")
		}
		mu.Lock()
		defer mu.Unlock()
		return want("tasks", fmt.Sprint(got), "map[later:1 now:1 only:1 twice:2]")
	})
}
