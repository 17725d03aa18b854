package main

// The memory that remains after keys have gone, and that of limiters that were used once.

import (
	"fmt"
	"time"
)

// goneMax is how long expired keys and their memory may take to disappear.
const goneMax = 30 * time.Second

// limitersOnce makes as many limiters as there are keys, with long periods: by RL.ACQUIRE if the server has it, otherwise as
// counters by a script.
func limitersOnce() *workload {
	return &workload{name: "limiters", prepare: func(c *wire, o *setup) error {
		const millis = "100000000"
		request := []string{"RL.ACQUIRE", usedLimiter, "1", "GCRA", "10", millis}
		if name, _ := c.identity(); name != "limitkv" {
			if err := loading("limiter")(c, o); err != nil {
				return err
			}
			request = []string{"EVALSHA", o.shas["limiter"], "1", usedCounter, millis}
		}
		return filling(request)(c, o)
	}}
}

// windowRequests is the number of requests in a window.
const windowRequests = 10

// windows makes as many sliding windows as there are keys, each at once or by requests to all in turn.
func windows(atOnce bool) *workload {
	return &workload{name: "windows", prepare: func(c *wire, o *setup) error {
		args, each := []string{"ZADD", "key:############"}, 1
		if atOnce {
			each = windowRequests
		}
		for range each {
			args = append(args, "17640########", "request:############")
		}
		p, n := command(args...), uint64(o.keys)
		numbers := make([]uint64, 1+2*each)
		return c.fill(windowRequests/each*o.keys, func(b []byte, i uint64) []byte {
			numbers[0] = i % n
			for j := range uint64(each) {
				numbers[1+2*j], numbers[2+2*j] = i+j*n, i+j*n
			}
			return p.append(b, numbers...)
		})
	}}
}

// emptied returns the resident memory in MB after strings were removed by FLUSHALL.
func emptied(s *instance, p params, keys int) (float64, error) {
	p.keys = keys
	if err := s.prepare(find("get"), &p); err != nil {
		return 0, err
	}
	c, err := dial(s.addr, s.auth)
	if err != nil {
		return 0, err
	}
	defer c.close()
	if _, err := c.text("FLUSHALL"); err != nil {
		return 0, err
	}
	time.Sleep(settle)
	return float64(residentBytes(s.pid)) / (1 << 20), nil
}

// cycled returns the resident memory after keys have been made and have expired ten times, divided by that after the first
// time.
func cycled(s *instance, p params, keys int) (float64, error) {
	c, err := dial(s.addr, s.auth)
	if err != nil {
		return 0, err
	}
	defer c.close()
	set := command("SET", "key:############", valueOf(p.valueBytes), "PX", "2000")
	var first, last int64
	for range 10 {
		if err := c.fill(keys, func(b []byte, i uint64) []byte { return set.append(b, i) }); err != nil {
			return 0, err
		}
		for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
			n, err := c.text("DBSIZE")
			if err != nil {
				return 0, err
			}
			if n == "0" {
				break
			}
			if time.Since(began) > goneMax {
				return 0, fmt.Errorf("%s keys are there %v after they were to expire", n, goneMax)
			}
		}
		// The memory of the last keys is returned a few seconds later.
		last = residentBytes(s.pid)
		for began := time.Now(); time.Since(began) < 2*settle; time.Sleep(settle / 10) {
			last = min(last, residentBytes(s.pid))
		}
		if first == 0 {
			first = last
		}
	}
	return float64(last) / float64(first), nil
}
