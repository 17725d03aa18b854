package main

// asynq: tasks now, later and by the clock, retried, archived, cancelled and put together in groups.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hibiken/asynq"
)

func asynqChecks() {
	c := client{"asynq", "github.com/hibiken/asynq"}
	opt := asynq.RedisClientOpt{Addr: plain, DB: 3}
	c.ways(func(w way, _ int) error {
		queue := asynq.NewClient(asynq.RedisClientOpt{Network: w.network, Addr: w.addr, Username: w.user, Password: w.password, TLSConfig: w.tls})
		defer queue.Close()
		_, err := queue.Enqueue(asynq.NewTask("way", nil))
		return err
	})
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
	c.check("pubsub", "a task that runs is cancelled", func() error {
		queue := asynq.NewClient(opt)
		defer queue.Close()
		running, ended := make(chan string, 1), make(chan error, 1)
		srv := asynq.NewServer(opt, quiet(map[string]int{"cancel": 1}))
		err := srv.Start(asynq.HandlerFunc(func(ctx context.Context, t *asynq.Task) error {
			running <- t.ResultWriter().TaskID()
			<-ctx.Done()
			ended <- ctx.Err()
			return nil
		}))
		if err != nil {
			return err
		}
		defer srv.Shutdown()
		if _, err := queue.Enqueue(asynq.NewTask("long", nil), asynq.Queue("cancel")); err != nil {
			return err
		}
		id := <-running
		inspector := asynq.NewInspector(opt)
		defer inspector.Close()
		for { // the server may not have subscribed yet
			if err := inspector.CancelProcessing(id); err != nil {
				return err
			}
			select {
			case err := <-ended:
				return want("ended by", err, context.Canceled)
			case <-time.After(50 * time.Millisecond):
			}
		}
	})
	c.check("features", "archived, run again, deleted, paused, counted by the inspector", func() error {
		queue := asynq.NewClient(opt)
		defer queue.Close()
		inspector := asynq.NewInspector(opt)
		defer inspector.Close()
		done := make(chan string, 10)
		tries := map[string]int{}
		var mu sync.Mutex
		config := quiet(map[string]int{"seen": 1})
		config.RetryDelayFunc = func(int, error, *asynq.Task) time.Duration { return 0 }
		srv := asynq.NewServer(opt, config)
		err := srv.Start(asynq.HandlerFunc(func(_ context.Context, t *asynq.Task) error {
			mu.Lock()
			defer mu.Unlock()
			tries[string(t.Payload())]++
			if string(t.Payload()) == "bad" && tries["bad"] == 1 {
				return fmt.Errorf("broken: %w", asynq.SkipRetry)
			}
			t.ResultWriter().Write([]byte("result"))
			done <- string(t.Payload())
			return nil
		}))
		if err != nil {
			return err
		}
		defer srv.Shutdown()
		bad, err := queue.Enqueue(asynq.NewTask("t", []byte("bad")), asynq.Queue("seen"), asynq.Retention(time.Minute))
		if err != nil {
			return err
		}
		later, err := queue.Enqueue(asynq.NewTask("t", []byte("later")), asynq.Queue("seen"), asynq.ProcessIn(time.Hour))
		if err != nil {
			return err
		}
		state := func(id string, wanted asynq.TaskState) (err error) {
			for range 1000 {
				var info *asynq.TaskInfo
				if info, err = inspector.GetTaskInfo("seen", id); err == nil && info.State == wanted {
					return nil
				}
				err = fmt.Errorf("the task is %+v (%v), not %v", info, err, wanted)
				time.Sleep(5 * time.Millisecond)
			}
			return err
		}
		if err := state(bad.ID, asynq.TaskStateArchived); err != nil {
			return err
		}
		info, err := inspector.GetQueueInfo("seen")
		if err := first(err, want("archived", info.Archived, 1), want("scheduled", info.Scheduled, 1)); err != nil {
			return err
		}
		if err := first(inspector.RunTask("seen", bad.ID), inspector.RunTask("seen", later.ID)); err != nil {
			return err
		}
		got := []string{<-done, <-done}
		slices.Sort(got)
		if err := first(want("done", fmt.Sprint(got), "[bad later]"), state(bad.ID, asynq.TaskStateCompleted)); err != nil {
			return err
		}
		kept, err := inspector.GetTaskInfo("seen", bad.ID)
		return first(err, want("result", string(kept.Result), "result"), inspector.PauseQueue("seen"), inspector.UnpauseQueue("seen"), inspector.DeleteTask("seen", bad.ID))
	})
	c.check("features", "tasks over a cluster", func() error {
		nodes := asynq.RedisClusterClientOpt{Addrs: []string{clustered}}
		queue := asynq.NewClient(nodes)
		defer queue.Close()
		if _, err := queue.Enqueue(asynq.NewTask("t", []byte("clustered"))); err != nil {
			return err
		}
		done := make(chan string, 1)
		srv := asynq.NewServer(nodes, quiet(map[string]int{"default": 1}))
		err := srv.Start(asynq.HandlerFunc(func(_ context.Context, t *asynq.Task) error { done <- string(t.Payload()); return nil }))
		if err != nil {
			return err
		}
		defer srv.Shutdown()
		return want("task", <-done, "clustered")
	})
	c.check("features", "a scheduler enqueues by the clock, groups are put together", func() error {
		scheduler := asynq.NewScheduler(opt, &asynq.SchedulerOpts{LogLevel: asynq.FatalLevel})
		if _, err := scheduler.Register("@every 1s", asynq.NewTask("tick", nil), asynq.Queue("ticks")); err != nil {
			return err
		}
		if err := scheduler.Start(); err != nil {
			return err
		}
		defer scheduler.Shutdown()
		queue := asynq.NewClient(opt)
		defer queue.Close()
		for i := range 3 {
			if _, err := queue.Enqueue(asynq.NewTask("part", []byte{byte('a' + i)}), asynq.Queue("groups"), asynq.Group("g")); err != nil {
				return err
			}
		}
		ticks, sums := make(chan struct{}, 100), make(chan string, 10)
		config := quiet(map[string]int{"ticks": 1, "groups": 1})
		config.GroupMaxSize = 3
		config.GroupAggregator = asynq.GroupAggregatorFunc(func(_ string, tasks []*asynq.Task) *asynq.Task {
			var parts []byte
			for _, t := range tasks {
				parts = append(parts, t.Payload()...)
			}
			slices.Sort(parts)
			return asynq.NewTask("sum", parts)
		})
		srv := asynq.NewServer(opt, config)
		err := srv.Start(asynq.HandlerFunc(func(_ context.Context, t *asynq.Task) error {
			if t.Type() == "sum" {
				sums <- string(t.Payload())
			} else {
				ticks <- struct{}{}
			}
			return nil
		}))
		if err != nil {
			return err
		}
		defer srv.Shutdown()
		<-ticks
		<-ticks
		return want("the group", <-sums, "abc")
	})
}

// quiet is what the servers of several checks share.
func quiet(queues map[string]int) asynq.Config {
	return asynq.Config{
		Concurrency: 2, Queues: queues, LogLevel: asynq.FatalLevel, ShutdownTimeout: time.Second, DelayedTaskCheckInterval: 100 * time.Millisecond,
		TaskCheckInterval: 20 * time.Millisecond, GroupGracePeriod: time.Second,
	}
}
