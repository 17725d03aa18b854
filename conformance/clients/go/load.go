package main

// asynq at work on a server that runs already: SERVER says where, COUNT how many tasks, WORKERS how many are done at once;
// the queue's name is MARK. A line "begin PHASE" and a line "end PHASE OPERATIONS", their parts separated by tabs, stand
// around each phase.

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
)

// load adds tasks, a quarter of them delayed, and works them off.
func load() error {
	count, _ := strconv.Atoi(os.Getenv("COUNT"))
	workers, _ := strconv.Atoi(os.Getenv("WORKERS"))
	name, opt := os.Getenv("MARK"), asynq.RedisClientOpt{Addr: os.Getenv("SERVER")}
	queue := asynq.NewClient(opt)
	defer queue.Close()
	failure := make(chan error, workers)
	fmt.Println("begin\tenqueue")
	var next atomic.Int64
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for n := int(next.Add(1)); n <= count; n = int(next.Add(1)) {
				options := []asynq.Option{asynq.Queue(name)}
				if n%4 == 0 {
					options = append(options, asynq.ProcessIn(100*time.Millisecond))
				}
				if _, err := queue.Enqueue(asynq.NewTask("job", []byte("what is to be done")), options...); err != nil {
					failure <- err
					return
				}
			}
		})
	}
	all.Wait()
	fmt.Printf("end\tenqueue\t%d\nbegin\twork\n", count)
	var done atomic.Int64
	finished := make(chan struct{})
	mux := asynq.NewServeMux()
	mux.HandleFunc("job", func(context.Context, *asynq.Task) error {
		if done.Add(1) == int64(count) {
			close(finished)
		}
		return nil
	})
	srv := asynq.NewServer(opt, asynq.Config{
		Concurrency: workers, Queues: map[string]int{name: 1}, LogLevel: asynq.FatalLevel,
		DelayedTaskCheckInterval: 100 * time.Millisecond, TaskCheckInterval: 50 * time.Millisecond,
	})
	if err := srv.Start(mux); err != nil {
		return err
	}
	select {
	case <-finished:
	case err := <-failure:
		return err
	case <-time.After(5 * time.Minute):
		return fmt.Errorf("%d of %d tasks were done", done.Load(), count)
	}
	srv.Shutdown()
	fmt.Printf("end\twork\t%d\n", count)
	return nil
}
