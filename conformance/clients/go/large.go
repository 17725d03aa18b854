package main

// Large arguments, many arguments and many tasks, by every client: what a server does well at ten entries it may do wrong,
// or slowly, at a hundred thousand. LARGE=n makes all of it n times larger.

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/hibiken/asynq"
	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
)

// larger is how many times larger all is than by default. Seven is the most: 448 MB, where a server takes 512.
var larger = func() int {
	n, _ := strconv.Atoi(os.Getenv("LARGE"))
	return max(1, min(n, 7))
}()

var (
	largeValue   = larger * 64 << 20
	largeKey     = larger << 20
	largeEntries = 100_000 * larger
)

// largeTasks are enqueued and worked off.
var largeTasks = 10_000 * larger

// do sends a command whatever the client and returns its reply.
type do func(args ...any) (any, error)

func largeChecks() {
	g := goredis.NewClient(&goredis.Options{Addr: plain, DB: 5, ReadTimeout: patience, WriteTimeout: patience})
	defer g.Close()
	client{"go-redis", "github.com/redis/go-redis/v9"}.large("go-redis", func(args ...any) (any, error) { return g.Do(ctx, args...).Result() })

	c := client{"redigo", "github.com/gomodule/redigo"}
	if conn, err := redis.Dial("tcp", plain, redis.DialDatabase(5)); err != nil {
		c.check("large", "connected", func() error { return err })
	} else {
		defer conn.Close()
		c.large("redigo", func(args ...any) (any, error) { return conn.Do(fmt.Sprint(args[0]), args[1:]...) })
	}

	c = client{"rueidis", "github.com/redis/rueidis"}
	if r, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{plain}, SelectDB: 5, ConnWriteTimeout: patience, DisableCache: true}); err != nil {
		c.check("large", "connected", func() error { return err })
	} else {
		defer r.Close()
		c.large("rueidis", func(args ...any) (any, error) {
			words := make([]string, len(args))
			for i, a := range args {
				words[i] = text(a)
			}
			return r.Do(ctx, r.B().Arbitrary(words...).Build()).ToAny()
		})
	}
	manyTasks()
}

// large runs the checks of one client, with keys of its own.
func (c client) large(prefix string, send do) {
	c.check("large", fmt.Sprintf("a value of %d MB: SET, GET, APPEND, GETRANGE", largeValue>>20), func() error {
		k, v := prefix+":value", binary(largeValue)
		defer send("DEL", k)
		return first(
			replies(send, "OK", "SET", k, v), replies(send, v, "GET", k), replies(send, fmt.Sprint(len(v)+4), "APPEND", k, "tail"),
			replies(send, v[len(v)-1000:]+"tail", "GETRANGE", k, len(v)-1000, -1), replies(send, v[:1000], "GETRANGE", k, 0, 999))
	})
	c.check("large", fmt.Sprintf("keys of %d MB: SET, RENAME, GET, APPEND", largeKey>>20), func() error {
		k := prefix + ":" + binary(largeKey)
		defer send("DEL", k, k+"2")
		return first(replies(send, "OK", "SET", k, k), replies(send, "OK", "RENAME", k, k+"2"), replies(send, k, "GET", k+"2"),
			replies(send, "1", "EXISTS", k, k+"2"), replies(send, "1", "APPEND", k, "x"), replies(send, "x", "GET", k), replies(send, "2", "DEL", k, k+"2"))
	})
	names, values := make([]any, largeEntries), make([]any, largeEntries)
	var pairs, scored, keys, keyPairs []any
	for i := range largeEntries {
		names[i], values[i] = fmt.Sprintf("name:%06d", i), fmt.Sprintf("value %d", i*7)
		keys = append(keys, fmt.Sprintf("%s:key:%d", prefix, i))
		pairs, scored = append(pairs, names[i], values[i]), append(scored, i, names[i])
		keyPairs = append(keyPairs, keys[i], values[i])
	}
	n := fmt.Sprint(largeEntries)
	c.check("large", fmt.Sprintf("%d entries in one HSET, SADD, ZADD, RPUSH, MSET, and read in one", largeEntries), func() error {
		h, s, z, l := prefix+":h", prefix+":s", prefix+":z", prefix+":l"
		defer send("DEL", h, s, z, l)
		in := make([]any, largeEntries)
		for i := range in {
			in[i] = 1
		}
		return first(
			replies(send, n, command("HSET", h, pairs)...), replies(send, n, "HLEN", h), lists(send, values, command("HMGET", h, names)...),
			replies(send, n, command("SADD", s, names)...), replies(send, n, "SCARD", s), lists(send, in, command("SMISMEMBER", s, names)...),
			replies(send, n, command("ZADD", z, scored)...), lists(send, names, "ZRANGE", z, 0, -1),
			replies(send, n, command("RPUSH", l, values)...), lists(send, values, "LRANGE", l, 0, -1),
			replies(send, "OK", append([]any{"MSET"}, keyPairs...)...), lists(send, values, append([]any{"MGET"}, keys...)...),
			replies(send, n, append([]any{"EXISTS"}, keys...)...), replies(send, n, append([]any{"DEL"}, keys...)...),
			replies(send, n, command("HDEL", h, names)...), replies(send, n, command("SREM", s, names)...), replies(send, n, command("ZREM", z, names)...))
	})
	c.check("large", fmt.Sprintf("a script with %d KEYS and as many ARGV, written and read", largeEntries), func() error {
		defer send(append([]any{"DEL"}, keys...)...)
		const script = `for i, k in ipairs(KEYS) do redis.call('SET', k, ARGV[i]) end
			ARGV[1] = 'first'
			local got = redis.call('MGET', KEYS[1], KEYS[#KEYS])
			for i = #ARGV + 1, #ARGV + 10 do ARGV[i] = 'more' end
			table.remove(ARGV, 1)
			local n = 0
			for i, v in ipairs(ARGV) do if v ~= nil then n = n + 1 end end
			return {#KEYS, #ARGV, n, got[1], got[2]}`
		args := append(append([]any{"EVAL", script, largeEntries}, keys...), values...)
		return first(lists(send, []any{largeEntries, largeEntries + 9, largeEntries + 9, values[0], values[largeEntries-1]}, args...),
			lists(send, values, append([]any{"MGET"}, keys...)...),
			lists(send, values, append(append([]any{"EVAL", "return ARGV", largeEntries}, keys...), values...)...))
	})
}

// command is a command of a key with its arguments.
func command(name, key string, args []any) []any { return append([]any{name, key}, args...) }

// replies is an error unless a command has that reply.
func replies(send do, wanted string, args ...any) error {
	got, err := send(args...)
	if err != nil {
		return fmt.Errorf("%v: %w", args[0], err)
	}
	if text(got) != wanted {
		return fmt.Errorf("%v: %d bytes, %.40q…, are not the %d bytes %.40q…", args[0], len(text(got)), text(got), len(wanted), wanted)
	}
	return nil
}

// lists is an error unless a command has those elements in its reply.
func lists(send do, wanted []any, args ...any) error {
	got, err := send(args...)
	if err != nil {
		return fmt.Errorf("%v: %w", args[0], err)
	}
	list, ok := got.([]any)
	if !ok || len(list) != len(wanted) {
		return fmt.Errorf("%v: %d elements, not %d", args[0], len(list), len(wanted))
	}
	for i := range list {
		if text(list[i]) != text(wanted[i]) {
			return fmt.Errorf("%v: element %d is %.40q, not %.40q", args[0], i, text(list[i]), text(wanted[i]))
		}
	}
	return nil
}

// text is a reply or an argument as a string.
func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []byte:
		return string(v)
	}
	return fmt.Sprint(v)
}

// binary is that many bytes of every value, the same in every run.
func binary(n int) string {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{1}).Read(b)
	return string(b)
}

// manyTasks enqueues many of asynq's tasks, some with a large payload, and works them off.
func manyTasks() {
	c := client{"asynq", "github.com/hibiken/asynq"}
	c.check("large", fmt.Sprintf("%d tasks by 8 producers, each done once, payloads of up to 4 MB", largeTasks), func() error {
		opt := asynq.RedisClientOpt{Addr: plain, DB: 6}
		queue := asynq.NewClient(opt)
		defer queue.Close()
		big := binary(4 << 20)
		payload := func(i int) []byte {
			if i%1000 == 0 {
				return fmt.Appendf(nil, "%d %s", i, big)
			}
			return fmt.Appendf(nil, "%d ", i)
		}
		var mu sync.Mutex
		failed := make(chan error, largeTasks)
		done := map[int]int{}
		all := make(chan struct{})
		config := quiet(map[string]int{"many": 1})
		config.Concurrency = 50
		srv := asynq.NewServer(opt, config)
		err := srv.Start(asynq.HandlerFunc(func(_ context.Context, t *asynq.Task) error {
			var i int
			if _, err := fmt.Sscan(string(t.Payload()[:min(10, len(t.Payload()))]), &i); err != nil || string(payload(i)) != string(t.Payload()) {
				failed <- fmt.Errorf("the payload of %d bytes of task %d is another (%v)", len(t.Payload()), i, err)
			}
			mu.Lock()
			defer mu.Unlock()
			if done[i]++; done[i] > 1 {
				failed <- fmt.Errorf("task %d was done again", i)
			}
			if len(done) == largeTasks {
				close(all)
			}
			return nil
		}))
		if err != nil {
			return err
		}
		defer srv.Shutdown()
		var producers sync.WaitGroup
		for p := range 8 {
			producers.Go(func() {
				for i := p; i < largeTasks; i += 8 {
					if _, err := queue.Enqueue(asynq.NewTask("many", payload(i)), asynq.Queue("many")); err != nil {
						failed <- err
						return
					}
				}
			})
		}
		producers.Wait()
		select {
		case <-all:
			return nil
		case err := <-failed:
			return err
		case <-time.After(patience - time.Second):
			mu.Lock()
			defer mu.Unlock()
			return fmt.Errorf("%d of %d tasks were done", len(done), largeTasks)
		}
	})
}
