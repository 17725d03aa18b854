// How late deliveries are, how long others wait while a large queue drains, and what waiting costs. This is measured over
// sockets if LIMITKV_MEASURE is set, because on a busy machine the numbers mean nothing.
package delayqueue_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/limitkv/limitkv/commands/livetest"
)

// 100,000 scheduled, 1,000 consumers waiting, 1,000 deliveries a second; and
// then the same crowd with nothing due.
//
// The clients are in this process. A goroutine whose answer has come waits for
// a processor (in the sense of GOMAXPROCS) until the runtime takes one from an
// event loop that sleeps in the kernel, which it does every 10 ms if little
// happens, so there must be more of them than loops.
func TestMeasureLateness(t *testing.T) {
	livetest.Measured(t)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(6))
	for _, kind := range []string{"zset", "delayqueue"} {
		t.Run(kind, func(t *testing.T) { measureLateness(t, kind) })
	}
}

func measureLateness(t *testing.T, kind string) {
	s := livetest.Start(t)
	c := s.Client()
	c.Want("OK", "LKV.CLOCK", "RESUME")
	const consumers, scheduled, delivered = 1000, 100_000, 5000
	late := make(chan int64, delivered)
	var stopped sync.WaitGroup
	var workers []string
	for range consumers {
		w := s.Client()
		workers = append(workers, w.Do("CLIENT", "ID"))
		stopped.Go(func() {
			for {
				got := w.Do("DQ.POP", "q", "BLOCK", 0)
				now := time.Now().UnixMicro()
				var member string
				var due int64
				if kind == "zset" {
					fmt.Sscanf(got, "[[%s %d]]", &member, &due)
				} else {
					fmt.Sscanf(got, "[[%s p %d 1]]", &member, &due)
				}
				if due == 0 {
					return // CLIENT UNBLOCK, below
				}
				late <- now - due*1000
			}
		})
	}
	s.Blocked(consumers)
	start := s.Now() + 2000
	var batch []byte
	for i := range scheduled {
		at := start + int64(i) // one a ms; all but the first have long to wait
		if i >= delivered {
			at += 3_600_000
		}
		if kind == "zset" {
			batch = livetest.Append(batch, "ZADD", "q", at, fmt.Sprint("m", i))
		} else {
			batch = livetest.Append(batch, "DQ.ADD", "q", "AT", at, "ID", fmt.Sprint("m", i), "p")
		}
		if i%1000 == 999 {
			c.Pipeline(batch, 1000)
			batch = batch[:0]
		}
	}
	if s.Now() > start {
		t.Log("scheduling took longer than expected")
	}
	all := make([]int64, delivered)
	for i := range all {
		all[i] = <-late
	}
	slices.Sort(all)
	t.Logf("%d delivered, at the client p50 %d us, p99 %d us, max %d us", len(all),
		all[len(all)/2], all[len(all)*99/100], all[len(all)-1])
	info := c.Do("INFO", "limitkv")
	for line := range strings.Lines(info) {
		if strings.HasPrefix(line, "delay_queue_lateness") {
			t.Log(strings.TrimSpace(line))
		}
	}
	s.Blocked(consumers)
	time.Sleep(500 * time.Millisecond)
	const idle = 3 * time.Second
	before := livetest.CPU()
	time.Sleep(idle)
	t.Logf("%d scheduled, %d waiting: %.3f %% of a core", scheduled-delivered, consumers, float64(livetest.CPU()-before)/float64(idle)*100)
	for _, w := range workers {
		c.Want("1", "CLIENT", "UNBLOCK", w)
	}
	stopped.Wait()
}

// A few clients drain a million entries that are due at once; how long do others wait?
func TestMeasureDrain(t *testing.T) {
	livetest.Measured(t)
	for _, kind := range []string{"zset", "delayqueue", "leases"} {
		s := livetest.Start(t)
		c := s.Client()
		const entries = 1_000_000
		var batch []byte
		for i := range entries {
			if kind == "zset" {
				batch = livetest.Append(batch, "ZADD", "q", livetest.Epoch+1000, fmt.Sprint("member", i))
			} else {
				batch = livetest.Append(batch, "DQ.ADD", "q", "AT", livetest.Epoch+1000, "p")
			}
			if i%1000 == 999 {
				c.Pipeline(batch, 1000)
				batch = batch[:0]
			}
		}
		if kind == "leases" {
			c.Want("OK", "LKV.CLOCK", "RESUME") // with a stopped clock, whoever moves it keeps the others waiting
			until := s.Now() + 6000
			for range entries / 1000 {
				c.Pipeline(livetest.Append(nil, "DQ.POP", "q", "COUNT", 1000, "LEASE", until-s.Now()), 1)
			}
		}
		stop, worst := make(chan bool), make(chan time.Duration)
		go func() {
			// Another client works on the same queue and on other keys.
			o := s.Client()
			var most time.Duration
			for {
				select {
				case <-stop:
					worst <- most
					return
				default:
				}
				began := time.Now()
				o.Do("DQ.LEN", "other")
				o.Do("ZCARD", "others")
				if kind == "zset" {
					o.Do("ZCARD", "q")
				} else {
					o.Do("DQ.LEN", "q", "READY")
				}
				most = max(most, time.Since(began))
			}
		}()
		began := time.Now()
		if kind == "leases" {
			for c.Do("DQ.LEN", "q", "READY") != "1000000" && time.Since(began) < 20*time.Second {
				time.Sleep(10 * time.Millisecond)
			}
		} else {
			s.Advance(1000)
			for range entries / 1000 {
				c.Pipeline(livetest.Append(nil, "DQ.POP", "q", "COUNT", 1000), 1)
			}
		}
		took := time.Since(began)
		stop <- true
		t.Logf("%s: a million in %v, others waited at most %v for three commands", kind, took, <-worst)
		if kind != "leases" {
			c.Want("0", "EXISTS", "q")
		} else {
			c.Want("1000000", "DQ.LEN", "q", "READY")
		}
	}
}
