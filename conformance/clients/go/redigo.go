package main

// redigo, which speaks RESP2.

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"
)

func redigoChecks() {
	c := client{"redigo", "github.com/gomodule/redigo"}
	c.ways(func(w way, _ int) error {
		o := []redis.DialOption{redis.DialUsername(w.user), redis.DialPassword(w.password), redis.DialUseTLS(w.tls != nil), redis.DialTLSConfig(w.tls)}
		r, err := redis.Dial(w.network, w.addr, o...)
		if err != nil {
			return err
		}
		defer r.Close()
		s, err := redis.String(r.Do("PING"))
		return first(err, want("reply", s, "PONG"))
	})
	dial := func() redis.Conn {
		r, err := redis.Dial("tcp", plain)
		if err != nil {
			panic(err)
		}
		return r
	}
	for _, w := range []way{{name: "plain", addr: plain}, {name: "TLS", addr: secure, tls: trusting}} {
		c.check("pipeline", "1,000,000 commands sent before a reply is read, "+w.name, func() error {
			r, err := redis.Dial("tcp", w.addr, redis.DialUseTLS(w.tls != nil), redis.DialTLSConfig(w.tls))
			if err != nil {
				return err
			}
			defer r.Close()
			if _, err := r.Do("SET", "many", manyValue); err != nil {
				return err
			}
			for range manyCommands {
				if err := r.Send("GET", "many"); err != nil {
					return err
				}
			}
			if err := r.Flush(); err != nil {
				return err
			}
			for range manyCommands {
				if got, err := redis.String(r.Receive()); err != nil || got != manyValue {
					return fmt.Errorf("%q %w", got, err)
				}
			}
			return nil
		})
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
	c.check("pubsub", "patterns, leaving, PING while subscribed", func() error {
		r, other := dial(), dial()
		defer r.Close()
		defer other.Close()
		p := redis.PubSubConn{Conn: r}
		p.PSubscribe("gp.*", "other.*")
		var told []string
		tell := func() {
			switch m := p.ReceiveWithTimeout(5 * time.Second).(type) {
			case redis.Subscription:
				told = append(told, fmt.Sprint(m.Kind, " ", m.Channel, " ", m.Count))
			case redis.Message:
				told = append(told, m.Pattern+" "+m.Channel+" "+string(m.Data))
			case redis.Pong:
				told = append(told, "pong "+m.Data)
			case error:
				told = append(told, m.Error())
			}
		}
		tell()
		tell()
		other.Do("PUBLISH", "gp.x", "hello")
		tell()
		p.Ping("still there")
		tell()
		p.PUnsubscribe()
		tell()
		tell()
		pong, err := redis.String(r.Do("PING"))
		return first(err, want("told", fmt.Sprintf("%q", told[:4]), `["psubscribe gp.* 1" "psubscribe other.* 2" "gp.* gp.x hello" "pong still there"]`),
			want("left", strings.HasSuffix(told[5], " 0"), true), want("reply", pong, "PONG"))
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
	c.check("features", "a pool of 4 for 16 goroutines, ScanStruct", func() error {
		pool := &redis.Pool{MaxActive: 4, Wait: true, Dial: func() (redis.Conn, error) { return redis.Dial("tcp", plain) }}
		defer pool.Close()
		var all sync.WaitGroup
		for range 16 {
			all.Go(func() {
				for range 20 {
					r := pool.Get()
					r.Do("INCR", "gpool")
					r.Close()
				}
			})
		}
		all.Wait()
		r := pool.Get()
		defer r.Close()
		n, err := redis.Int(r.Do("GET", "gpool"))
		if err != nil {
			return err
		}
		var got, put struct {
			Name string `redis:"name"`
			Age  int    `redis:"age"`
		}
		put.Name, put.Age = "x", 7
		if _, err := r.Do("HSET", redis.Args{}.Add("gstruct").AddFlat(&put)...); err != nil {
			return err
		}
		values, err := redis.Values(r.Do("HGETALL", "gstruct"))
		return first(err, redis.ScanStruct(values, &got), want("counted", n, 320), want("struct", got, put))
	})
}
