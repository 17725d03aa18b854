package main

// The clients through failovers of Sentinel, for conformance/failover, which says what the lines mean. Each appends numbers to
// a list, adds jobs and takes a lock in turn with another connection, while others wait: for the jobs, a limiter, the lock.

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
)

// sender sends a command and returns the integers and texts of its reply.
type sender func(args ...any) (any, error)

// between is the time between two rounds of a client.
const between = 50 * time.Millisecond

// say prints a line.
func say(parts ...any) {
	line := make([]string, len(parts))
	for i, p := range parts {
		line[i] = strings.Join(strings.Fields(fmt.Sprint(p)), " ")
	}
	os.Stdout.WriteString(strings.Join(line, "\t") + "\n")
}

// through works until input ends, and lets workers go on.
func through(sentinels []string) {
	var over atomic.Bool
	plain := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "it", SentinelAddrs: sentinels, ReadTimeout: 3 * time.Second})
	waiting := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "it", SentinelAddrs: sentinels, ReadTimeout: -1, ContextTimeoutEnabled: true})
	goRedis := func(c *redis.Client, patience time.Duration) sender {
		return func(args ...any) (any, error) {
			ctx, end := context.WithTimeout(context.Background(), patience)
			defer end()
			return c.Do(ctx, args...).Result()
		}
	}
	work("go-redis", goRedis(plain, 3*time.Second), goRedis(waiting, 40*time.Second), &over)

	r, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: sentinels, Sentinel: rueidis.SentinelOption{MasterSet: "it"}, DisableCache: true})
	if err != nil {
		say("error", "rueidis", "connect", err)
	} else {
		arbitrary := func(blocking bool, patience time.Duration) sender {
			return func(args ...any) (any, error) {
				ctx, end := context.WithTimeout(context.Background(), patience)
				defer end()
				words := make([]string, len(args))
				for i, a := range args {
					words[i] = fmt.Sprint(a)
				}
				cmd := r.B().Arbitrary(words...)
				if blocking {
					return r.Do(ctx, cmd.Blocking()).ToAny()
				}
				return r.Do(ctx, cmd.Build()).ToAny()
			}
		}
		work("rueidis", arbitrary(false, 3*time.Second), arbitrary(true, 40*time.Second), &over)
	}
	go asynqThrough(sentinels, &over)
	_, _ = io.Copy(io.Discard, os.Stdin)
	over.Store(true)
	select {} // until it is killed
}

// work has a client do what it is to do: with one way to send commands, and one to send those that wait.
func work(name string, send, wait sender, over *atomic.Bool) {
	try := func(what string, send sender, args ...any) (any, bool) {
		v, err := send(args...)
		if err != nil && err != redis.Nil && !rueidis.IsRedisNil(err) {
			say("error", name, what, err)
			time.Sleep(between)
			return nil, false
		}
		return v, v != nil
	}
	hold := func(who string, send sender) {
		v, ok := try("LK.ACQUIRE", send, "LK.ACQUIRE", "lock:"+name, who, 2000, "BLOCK", 30000)
		reply, _ := v.([]any)
		if !ok || len(reply) < 2 || fmt.Sprint(reply[0]) != "1" {
			return
		}
		say("fence", name, who, reply[1])
		time.Sleep(between / 2)
		try("LK.RELEASE", send, "LK.RELEASE", "lock:"+name, who)
	}
	forever := func(f func()) {
		go func() {
			for ; !over.Load(); time.Sleep(between / 2) {
				f()
			}
		}()
	}
	n := 0
	forever(func() {
		n++
		if _, ok := try("RPUSH", send, "RPUSH", "ledger:"+name, n); ok {
			say("told", name, n)
		}
		try("DQ.ADD", send, "DQ.ADD", "queue:"+name, "DELAY", 20, strconv.Itoa(n))
	})
	forever(func() { hold("holds", wait) })
	forever(func() { hold("waits", wait) })
	forever(func() {
		if v, ok := try("DQ.POP", wait, "DQ.POP", "queue:"+name, "BLOCK", 30000); ok {
			if jobs, _ := v.([]any); len(jobs) > 0 {
				say("got", name, "DQ.POP")
			}
		}
	})
	forever(func() {
		v, ok := try("RL.ACQUIRE", wait, "RL.ACQUIRE", "limiter:"+name, 1, "BLOCK", 30000, "GCRA", 5, 1000)
		if reply, _ := v.([]any); ok && len(reply) > 0 && fmt.Sprint(reply[0]) == "0" {
			say("got", name, "RL.ACQUIRE")
		}
	})
}

// asynqThrough adds tasks, and works on them.
func asynqThrough(sentinels []string, over *atomic.Bool) {
	opt := asynq.RedisFailoverClientOpt{MasterName: "it", SentinelAddrs: sentinels}
	mux := asynq.NewServeMux()
	mux.HandleFunc("job", func(_ context.Context, t *asynq.Task) error {
		say("done", "asynq", string(t.Payload()))
		return nil
	})
	srv := asynq.NewServer(opt, asynq.Config{Concurrency: 4, LogLevel: asynq.FatalLevel, TaskCheckInterval: 50 * time.Millisecond})
	if err := srv.Start(mux); err != nil {
		say("error", "asynq", "start", err)
		return
	}
	queue := asynq.NewClient(opt)
	for n := 1; !over.Load(); n++ {
		if _, err := queue.Enqueue(asynq.NewTask("job", []byte(strconv.Itoa(n)))); err != nil {
			say("error", "asynq", "enqueue", err)
		} else {
			say("added", "asynq", n)
		}
		time.Sleep(between)
	}
}
