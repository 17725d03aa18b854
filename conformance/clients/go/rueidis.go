package main

// rueidis, in RESP2 and RESP3, with its cache.

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/redis/rueidis"
)

func rueidisChecks() {
	c := client{"rueidis", "github.com/redis/rueidis"}
	open := func(o rueidis.ClientOption) (rueidis.Client, error) {
		if o.InitAddress == nil {
			o.InitAddress = []string{plain}
		}
		return rueidis.NewClient(o)
	}
	c.ways(func(w way, protocol int) error {
		o := rueidis.ClientOption{InitAddress: []string{w.addr}, Username: w.user, Password: w.password, TLSConfig: w.tls, AlwaysRESP2: protocol == 2, DisableCache: protocol == 2}
		if w.network == "unix" {
			o.DialCtxFn = func(ctx context.Context, path string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
				return d.DialContext(ctx, "unix", path)
			}
		}
		r, err := open(o)
		if err != nil {
			return err
		}
		defer r.Close()
		return first(r.Do(ctx, r.B().Set().Key("way").Value("v").Build()).Error(), r.Do(ctx, r.B().Get().Key("way").Build()).Error())
	}, 2, 3)
	r, err := open(rueidis.ClientOption{})
	if err != nil {
		c.check("resp3", "RESP3", func() error { return err })
		return
	}
	defer r.Close()
	c.check("resp3", "maps and doubles", func() error {
		r.Do(ctx, r.B().Del().Key("rh", "rz").Build())
		r.Do(ctx, r.B().Hset().Key("rh").FieldValue().FieldValue("a", "1").Build())
		r.Do(ctx, r.B().Zadd().Key("rz").ScoreMember().ScoreMember(1.5, "m").Build())
		h, err := r.Do(ctx, r.B().Hgetall().Key("rh").Build()).AsStrMap()
		if err != nil {
			return err
		}
		z, err := r.Do(ctx, r.B().Zscore().Key("rz").Member("m").Build()).AsFloat64()
		return first(err, want("hash", fmt.Sprint(h), "map[a:1]"), want("score", z, 1.5))
	})
	c.check("pipeline", "1000 commands by DoMulti", func() error {
		cmds := rueidis.Commands{r.B().Del().Key("rn").Build()}
		for range 1000 {
			cmds = append(cmds, r.B().Incr().Key("rn").Build())
		}
		replies := r.DoMulti(ctx, cmds...)
		n, err := replies[1000].AsInt64()
		return first(err, want("n", n, 1000))
	})
	c.check("pipeline", "1,000,000 commands by DoMulti", func() error {
		r.Do(ctx, r.B().Set().Key("many").Value(manyValue).Build())
		cmds := make(rueidis.Commands, 0, manyCommands)
		for range manyCommands {
			cmds = append(cmds, r.B().Get().Key("many").Build())
		}
		replies := r.DoMulti(ctx, cmds...)
		got, err := replies[manyCommands-1].ToString()
		return first(err, want("the last", got, manyValue))
	})
	c.check("transaction", "on a dedicated connection", func() error {
		return r.Dedicated(func(d rueidis.DedicatedClient) error {
			replies := d.DoMulti(ctx, d.B().Watch().Key("rt").Build(), d.B().Multi().Build(), d.B().Set().Key("rt").Value("x").Build(), d.B().Exec().Build())
			list, err := replies[3].ToArray()
			return first(err, want("replies", len(list), 1))
		})
	})
	c.check("transaction", "a watched key that changes", func() error {
		return r.Dedicated(func(d rueidis.DedicatedClient) error {
			d.Do(ctx, d.B().Watch().Key("rw").Build())
			r.Do(ctx, r.B().Set().Key("rw").Value("other").Build())
			replies := d.DoMulti(ctx, d.B().Multi().Build(), d.B().Set().Key("rw").Value("x").Build(), d.B().Exec().Build())
			return want("EXEC", rueidis.IsRedisNil(replies[2].Error()), true)
		})
	})
	c.check("script", "EVALSHA, NOSCRIPT, EVAL", func() error {
		r.Do(ctx, r.B().ScriptFlush().Build())
		n, err := rueidis.NewLuaScript("return #KEYS + ARGV[1]").Exec(ctx, r, []string{"a", "b"}, []string{"40"}).AsInt64()
		return first(err, want("reply", n, 42))
	})
	c.check("pubsub", "Receive", func() error {
		told, stop := context.WithTimeout(ctx, 5*time.Second)
		defer stop()
		got := ""
		go func() {
			for got == "" && told.Err() == nil {
				r.Do(ctx, r.B().Publish().Channel("rc").Message("hello").Build())
				time.Sleep(20 * time.Millisecond)
			}
		}()
		r.Receive(told, r.B().Subscribe().Channel("rc").Build(), func(m rueidis.PubSubMessage) { got = m.Message; stop() })
		return want("message", got, "hello")
	})
	c.check("pubsub", "channel, pattern and sharded channel on one connection, while it does other things", func() error {
		d, release := r.Dedicate()
		defer release()
		got := make(chan string, 10)
		closed := d.SetPubSubHooks(rueidis.PubSubHooks{
			OnMessage:      func(m rueidis.PubSubMessage) { got <- m.Pattern + m.Channel + "=" + m.Message },
			OnSubscription: func(s rueidis.PubSubSubscription) { got <- s.Kind + " " + s.Channel },
		})
		for _, err := range d.DoMulti(ctx, d.B().Subscribe().Channel("rd").Build(), d.B().Psubscribe().Pattern("rp.*").Build(), d.B().Ssubscribe().Channel("rs").Build()) {
			if err.Error() != nil {
				return err.Error()
			}
		}
		r.Do(ctx, r.B().Publish().Channel("rd").Message("1").Build())
		r.Do(ctx, r.B().Publish().Channel("rp.x").Message("2").Build())
		r.Do(ctx, r.B().Spublish().Channel("rs").Message("3").Build())
		if err := d.Do(ctx, d.B().Ping().Build()).Error(); err != nil {
			return err
		}
		var all []string
		for len(all) < 6 {
			select {
			case m := <-got:
				all = append(all, m)
			case err := <-closed:
				return fmt.Errorf("closed with %v after %v", err, all)
			}
		}
		return want("told", fmt.Sprint(all), "[subscribe rd psubscribe rp.* ssubscribe rs rd=1 rp.*rp.x=2 rs=3]")
	})
	c.check("blocking", "BLPOP wakes", func() error {
		go func() {
			time.Sleep(50 * time.Millisecond)
			r.Do(ctx, r.B().Rpush().Key("rl").Element("a").Build())
		}()
		v, err := r.Do(ctx, r.B().Blpop().Key("rl").Timeout(5).Build()).AsStrSlice()
		return first(err, want("popped", fmt.Sprint(v), "[rl a]"))
	})
	c.check("features", "client-side caching is invalidated", func() error {
		other, err := open(rueidis.ClientOption{})
		if err != nil {
			return err
		}
		defer other.Close()
		set := func(v string) { other.Do(ctx, other.B().Set().Key("cached").Value(v).Build()) }
		get := func() (string, bool) {
			v := r.DoCache(ctx, r.B().Get().Key("cached").Cache(), time.Minute)
			s, _ := v.ToString()
			return s, v.IsCacheHit()
		}
		set("one")
		get()
		if v, hit := get(); v != "one" || !hit {
			return fmt.Errorf("%q, from the cache: %v", v, hit)
		}
		set("two")
		for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
			if v, _ := get(); v == "two" {
				return nil
			}
		}
		return errors.New("the cache keeps the old value")
	})
	c.check("features", "client-side caching: MGET, hash fields, time-outs, broadcasting", func() error {
		for _, keys := range [][]string{nil, {"bc:"}} {
			o := rueidis.ClientOption{}
			if keys != nil {
				o.ClientTrackingOptions = []string{"PREFIX", "bc:", "BCAST"}
			}
			cached, err := open(o)
			if err != nil {
				return err
			}
			defer cached.Close()
			set := func(v string) error {
				return r.Do(ctx, r.B().Mset().KeyValue().KeyValue("bc:1", v).KeyValue("bc:2", v).Build()).Error()
			}
			get := func() (string, bool, error) {
				m, err := rueidis.MGetCache(cached, ctx, time.Minute, []string{"bc:1", "bc:2"})
				if err != nil {
					return "", false, err
				}
				one, two := m["bc:1"], m["bc:2"]
				a, _ := one.ToString()
				b, _ := two.ToString()
				return a + b, one.IsCacheHit() && two.IsCacheHit(), nil
			}
			if err := set("x"); err != nil {
				return err
			}
			get()
			v, hit, err := get()
			if err := first(err, want("cached", v, "xx"), want("hit", hit, true), set("y")); err != nil {
				return err
			}
			for end := time.Now().Add(5 * time.Second); v != "yy"; time.Sleep(time.Millisecond) {
				if v, _, err = get(); err != nil || time.Now().After(end) {
					return fmt.Errorf("the cache keeps %s: %v", v, err)
				}
			}
		}
		r.Do(ctx, r.B().Set().Key("short").Value("v").PxMilliseconds(100).Build())
		v := r.DoCache(ctx, r.B().Get().Key("short").Cache(), time.Minute)
		if ttl := v.CachePTTL(); ttl <= 0 || ttl > 100 {
			return fmt.Errorf("a key with 100 ms to live is cached for %d", ttl)
		}
		time.Sleep(120 * time.Millisecond)
		return want("gone", rueidis.IsRedisNil(r.DoCache(ctx, r.B().Get().Key("short").Cache(), time.Minute).Error()), true)
	})
	c.check("features", "RL.ACQUIRE by Arbitrary, streams in RESP3", func() error {
		id, err := r.Do(ctx, r.B().Xadd().Key("rstream").Id("*").FieldValue().FieldValue("f", "v").Build()).ToString()
		if err != nil {
			return err
		}
		x, err := r.Do(ctx, r.B().Xread().Count(10).Streams().Key("rstream").Id("0").Build()).AsXRead()
		if err != nil {
			return err
		}
		v, err := r.Do(ctx, r.B().Arbitrary("RL.ACQUIRE").Keys("rapi").Args("1", "GCRA", "1", "60000").Build()).AsIntSlice()
		return first(err, want("entry", x["rstream"][len(x["rstream"])-1].ID, id), want("granted", v[0], 0))
	})
}
