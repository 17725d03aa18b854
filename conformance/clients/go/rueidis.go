package main

// rueidis and redigo.

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/gomodule/redigo/redis"
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
	ping := func(o rueidis.ClientOption) error {
		r, err := open(o)
		if err != nil {
			return err
		}
		defer r.Close()
		return r.Do(ctx, r.B().Ping().Build()).Error()
	}
	c.check("connect", "RESP2", func() error { return ping(rueidis.ClientOption{AlwaysRESP2: true, DisableCache: true}) })
	c.check("auth", "password", func() error { return ping(rueidis.ClientOption{InitAddress: []string{secret}, Password: password}) })
	c.check("tls", "server certificate verified", func() error { return ping(rueidis.ClientOption{InitAddress: []string{secure}, TLSConfig: trusting}) })
	c.check("unix", "unix socket", func() error {
		return ping(rueidis.ClientOption{InitAddress: []string{socket}, DialCtxFn: func(ctx context.Context, path string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return d.DialContext(ctx, "unix", path)
		}})
	})
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
	c.check("transaction", "on a dedicated connection", func() error {
		return r.Dedicated(func(d rueidis.DedicatedClient) error {
			replies := d.DoMulti(ctx, d.B().Watch().Key("rt").Build(), d.B().Multi().Build(), d.B().Set().Key("rt").Value("x").Build(), d.B().Exec().Build())
			list, err := replies[3].ToArray()
			return first(err, want("replies", len(list), 1))
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
}

func redigoChecks() {
	c := client{"redigo", "github.com/gomodule/redigo"}
	ping := func(network, addr string, o ...redis.DialOption) error {
		r, err := redis.Dial(network, addr, o...)
		if err != nil {
			return err
		}
		defer r.Close()
		s, err := redis.String(r.Do("PING"))
		return first(err, want("reply", s, "PONG"))
	}
	c.check("connect", "RESP2", func() error { return ping("tcp", plain) })
	c.check("auth", "password", func() error { return ping("tcp", secret, redis.DialPassword(password)) })
	c.check("tls", "server certificate verified", func() error {
		return ping("tcp", secure, redis.DialUseTLS(true), redis.DialTLSConfig(trusting))
	})
	c.check("unix", "unix socket", func() error { return ping("unix", socket) })
	dial := func() redis.Conn {
		r, err := redis.Dial("tcp", plain)
		if err != nil {
			panic(err)
		}
		return r
	}
	c.check("pipeline", "Send, Flush, Receive", func() error {
		r := dial()
		defer r.Close()
		r.Do("DEL", "gn")
		for range 1000 {
			r.Send("INCR", "gn")
		}
		r.Flush()
		var n int
		var err error
		for range 1000 {
			if n, err = redis.Int(r.Receive()); err != nil {
				return err
			}
		}
		return want("n", n, 1000)
	})
	c.check("transaction", "MULTI, EXEC, and a watched key that changes", func() error {
		r, other := dial(), dial()
		defer r.Close()
		defer other.Close()
		r.Send("MULTI")
		r.Send("SET", "gt", 1)
		list, err := redis.Values(r.Do("EXEC"))
		if err != nil {
			return err
		}
		r.Do("WATCH", "gt")
		other.Do("SET", "gt", 2)
		r.Send("MULTI")
		r.Send("SET", "gt", 3)
		aborted, err := r.Do("EXEC")
		return first(err, want("replies", len(list), 1), want("aborted", aborted, nil))
	})
	c.check("script", "EVALSHA, NOSCRIPT, EVAL", func() error {
		r := dial()
		defer r.Close()
		r.Do("SCRIPT", "FLUSH")
		s := redis.NewScript(1, "return redis.call('SETNX', KEYS[1], ARGV[1])")
		r.Do("DEL", "gs")
		one, err := redis.Int(s.Do(r, "gs", "a"))
		if err != nil {
			return err
		}
		two, err := redis.Int(s.Do(r, "gs", "b"))
		return first(err, want("first", one, 1), want("second", two, 0))
	})
	c.check("pubsub", "PubSubConn", func() error {
		r, other := dial(), dial()
		defer r.Close()
		defer other.Close()
		p := redis.PubSubConn{Conn: r}
		if err := p.Subscribe("gc"); err != nil {
			return err
		}
		p.Receive()
		other.Do("PUBLISH", "gc", "hello")
		m, ok := p.ReceiveWithTimeout(5 * time.Second).(redis.Message)
		return first(want("a message", ok, true), want("data", string(m.Data), "hello"))
	})
	c.check("blocking", "BLPOP times out and wakes", func() error {
		r, other := dial(), dial()
		defer r.Close()
		defer other.Close()
		if _, err := redis.Values(r.Do("BLPOP", "gl", 0.05)); !errors.Is(err, redis.ErrNil) {
			return fmt.Errorf("timed out with %v", err)
		}
		go func() { time.Sleep(30 * time.Millisecond); other.Do("RPUSH", "gl", "x") }()
		v, err := redis.Strings(r.Do("BLPOP", "gl", 5))
		return first(err, want("popped", fmt.Sprint(v), "[gl x]"))
	})
}
