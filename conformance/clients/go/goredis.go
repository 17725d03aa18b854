package main

// go-redis, in RESP2 and RESP3. Its cluster client is in cluster.go, what is built on it in limits.go and asynq.go.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

var ctx = context.Background()

// goRedis are the options for a way.
func (w way) goRedis(protocol int) *redis.Options {
	return &redis.Options{Network: w.network, Addr: w.addr, Username: w.user, Password: w.password, TLSConfig: w.tls, Protocol: protocol, MaxRetries: -1}
}

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
	c.ways(func(w way, protocol int) error {
		r := redis.NewClient(w.goRedis(protocol))
		defer r.Close()
		return first(r.Set(ctx, "way", protocol, 0).Err(), r.Get(ctx, "way").Err())
	}, 2, 3)
	c.check("auth", "what an ACL user may not do, and its selectors", func() error {
		r := redis.NewClient(&redis.Options{Addr: secret, Username: user, Password: userPassword})
		defer r.Close()
		if err := r.FlushAll(ctx).Err(); err == nil || !strings.HasPrefix(err.Error(), "NOPERM ") {
			return fmt.Errorf("FLUSHALL: %v", err)
		}
		admin := redis.NewClient(&redis.Options{Addr: secret, Password: password})
		defer admin.Close()
		if err := admin.ACLSetUser(ctx, "narrow", "on", ">p", "~own:*", "+@all", "(%R~shared:* +get)").Err(); err != nil {
			return err
		}
		n := redis.NewClient(&redis.Options{Addr: secret, Username: "narrow", Password: "p"})
		defer n.Close()
		dry, err := admin.ACLDryRun(ctx, "narrow", "set", "shared:k", "v").Result()
		return first(err, n.Set(ctx, "own:k", "v", 0).Err(), want("shared", n.Get(ctx, "shared:k").Err(), error(redis.Nil)),
			want("dry run", dry, "User narrow has no permissions to access the 'shared:k' key"),
			want("denied", n.Set(ctx, "shared:k", "v", 0).Err() == nil, false))
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
	for _, w := range []way{{name: "RESP2", addr: plain}, {name: "RESP3", addr: plain}, {name: "TLS", addr: secure, tls: trusting}} {
		c.check("pipeline", "1,000,000 commands, "+w.name, func() error {
			o := w.goRedis(2)
			if w.name == "RESP3" {
				o.Protocol = 3
			}
			o.ReadTimeout, o.WriteTimeout = patience, patience
			r := redis.NewClient(o)
			defer r.Close()
			r.Set(ctx, "many", manyValue, 0)
			cmds, err := r.Pipelined(ctx, func(p redis.Pipeliner) error {
				for range manyCommands {
					p.Get(ctx, "many")
				}
				return nil
			})
			return first(err, want("replies", len(cmds), manyCommands), want("the last", cmds[len(cmds)-1].(*redis.StringCmd).Val(), manyValue))
		})
	}
	c.check("transaction", "TxPipelined: an error in the midst, one before EXEC", func() error {
		r.Set(ctx, "tx", "text", 0)
		cmds, err := r.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.Incr(ctx, "tx")
			p.Append(ctx, "tx", "!")
			return nil
		})
		if err == nil || cmds[0].Err() == nil || cmds[1].Err() != nil {
			return fmt.Errorf("%v %v", err, cmds)
		}
		_, err = r.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.Set(ctx, "tx", "no", 0)
			return p.Do(ctx, "NOSUCH").Err()
		})
		if err == nil || !strings.HasPrefix(err.Error(), "EXECABORT ") && !strings.HasPrefix(err.Error(), "ERR unknown command") {
			return fmt.Errorf("an unknown command in MULTI: %v", err)
		}
		return want("tx", r.Get(ctx, "tx").Val(), "text!")
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
	c.check("pubsub", "sharded channel, and keyspace events when a key and a field expire", func() error {
		shard, events := r.SSubscribe(ctx, "shard"), r.PSubscribe(ctx, "__keyevent@0__:*expired")
		defer shard.Close()
		defer events.Close()
		for _, s := range []*redis.PubSub{shard, events} {
			if _, err := s.Receive(ctx); err != nil {
				return err
			}
		}
		r.SPublish(ctx, "shard", "three")
		if m := <-shard.Channel(); m.Payload != "three" {
			return fmt.Errorf("%v", m)
		}
		r.HSet(ctx, "event:h", "a", 1, "b", 2)
		r.HPExpire(ctx, "event:h", 20*time.Millisecond, "a")
		r.Set(ctx, "event:k", "v", 120*time.Millisecond)
		got := map[string]string{}
		for m := range events.Channel() {
			if strings.HasPrefix(m.Payload, "event:") {
				got[m.Payload] = m.Channel
			}
			if len(got) == 2 {
				break
			}
		}
		return want("events", fmt.Sprint(got), "map[event:h:__keyevent@0__:hexpired event:k:__keyevent@0__:expired]")
	})
	c.check("blocking", "BLMOVE, BZMPOP, XREADGROUP; CLIENT UNBLOCK; a context that ends", func() error {
		r.Del(ctx, "bl1", "bl2", "bz", "bg")
		if err := r.XGroupCreateMkStream(ctx, "bg", "g", "$").Err(); err != nil {
			return err
		}
		go func() {
			time.Sleep(50 * time.Millisecond)
			r.RPush(ctx, "bl1", "a")
			r.ZAdd(ctx, "bz", redis.Z{Score: 2, Member: "b"})
			r.XAdd(ctx, &redis.XAddArgs{Stream: "bg", Values: []string{"f", "c"}})
		}()
		a, err := r.BLMove(ctx, "bl1", "bl2", "LEFT", "RIGHT", 5*time.Second).Result()
		if err != nil {
			return err
		}
		_, z, err := r.BZMPop(ctx, 5*time.Second, "min", 10, "bz0", "bz").Result()
		if err != nil {
			return err
		}
		x, err := r.XReadGroup(ctx, &redis.XReadGroupArgs{Group: "g", Consumer: "c", Streams: []string{"bg", ">"}, Block: 5 * time.Second}).Result()
		if err != nil {
			return err
		}
		conn := r.Conn()
		defer conn.Close()
		id := conn.ClientID(ctx).Val()
		go func() {
			for time.Sleep(50 * time.Millisecond); r.ClientUnblockWithError(ctx, id).Val() == 0; time.Sleep(10 * time.Millisecond) {
			}
		}()
		_, err = conn.BLPop(ctx, 0, "nothing").Result()
		short := redis.NewClient(&redis.Options{Addr: plain, ContextTimeoutEnabled: true, MaxRetries: -1})
		defer short.Close()
		ends, stop := context.WithTimeout(ctx, 50*time.Millisecond)
		defer stop()
		ended := short.BLPop(ends, 5*time.Second, "nothing").Err()
		return first(want("list", a, "a"), want("zset", fmt.Sprint(z), "[{2 b}]"), want("stream", fmt.Sprint(x[0].Messages[0].Values), "map[f:c]"),
			want("unblocked", fmt.Sprint(err), "UNBLOCKED client unblocked via CLIENT UNBLOCK"), want("the context's end is an error", ended == nil, false))
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
	c.check("features", "functions, hash field expiry, HyperLogLog, geo, bit fields, DUMP and RESTORE, SCAN", func() error {
		if err := r.FunctionLoadReplace(ctx, "#!lua name=golib\nredis.register_function('gotwice', function(k, a) return a[1] * 2 end)").Err(); err != nil {
			return err
		}
		twice, err := r.FCall(ctx, "gotwice", nil, 21).Int()
		r.Del(ctx, "hx", "pf", "geo", "bits", "copy")
		r.HSet(ctx, "hx", "a", 1, "b", 2)
		ttl, err2 := r.HExpire(ctx, "hx", time.Minute, "a", "none").Result()
		r.PFAdd(ctx, "pf", "a", "b", "a")
		r.GeoAdd(ctx, "geo", &redis.GeoLocation{Name: "Palermo", Longitude: 13.361389, Latitude: 38.115556}, &redis.GeoLocation{Name: "Catania", Longitude: 15.087269, Latitude: 37.502669})
		near, err3 := r.GeoSearch(ctx, "geo", &redis.GeoSearchQuery{Longitude: 15, Latitude: 37, Radius: 100, RadiusUnit: "km"}).Result()
		bits, err4 := r.BitField(ctx, "bits", "incrby", "u8", "#1", 300, "overflow", "sat", "incrby", "u8", "0", 300).Result()
		dump := r.Dump(ctx, "hx").Val()
		restored := r.RestoreReplace(ctx, "copy", 0, dump).Err()
		for i := range 500 {
			r.Set(ctx, fmt.Sprint("scan:", i), i, 0)
		}
		seen := map[string]bool{}
		for it := r.Scan(ctx, 0, "scan:*", 50).Iterator(); it.Next(ctx); {
			seen[it.Val()] = true
		}
		return first(err, err2, err3, err4, restored, want("function", twice, 42), want("HEXPIRE", fmt.Sprint(ttl), "[1 -2]"), want("PFCOUNT", r.PFCount(ctx, "pf").Val(), 2),
			want("GEOSEARCH", fmt.Sprint(near), "[Catania]"), want("BITFIELD", fmt.Sprint(bits), "[44 255]"), want("RESTORE", fmt.Sprint(r.HGetAll(ctx, "copy").Val()), "map[a:1 b:2]"),
			want("SCAN", len(seen), 500))
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
