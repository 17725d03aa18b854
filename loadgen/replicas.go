package main

// The cost of replicas, and how well they follow: the primary's processor time per request with no, one and two replicas, a
// replica's own processor time, its lag while the primary is under full load, and a full synchronisation under a steady load.
// limitkv replicates to limitkv, Redis to Redis.

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// crew is a primary with its replicas.
type crew struct {
	*instance
	replicas []*instance
	lags     []float64 // ms
	behind   int64     // processor time of the first replica, in ns
	rounds   []*result
}

// syncMax is how long a full synchronisation may take.
const syncMax = 10 * time.Minute

// lagEvery is how often the lag of a replica is measured.
const lagEvery = 50 * time.Millisecond

func runReplicas(args []string) error {
	flags := flag.NewFlagSet("replicas", flag.ExitOnError)
	limitkv := flags.String("limitkv", "bin/limitkv", "the server")
	redis := flags.String("redis", binary("REDIS", "redis"), "redis-server to compare with")
	names := flags.String("workload", "set,limit2,sliding_window", "which workloads, separated by commas; none for no such part")
	pipeline := flags.Int("pipeline", 16, "how many requests a connection sends before it waits for the answers")
	rounds := flags.Int("rounds", 5, "how often to repeat; servers take turns")
	duration := flags.Duration("duration", 2*time.Second, "how long a round is")
	keys := flags.Int("keys", 1_000_000, "keys of the full synchronisation, 0 for none")
	rate := flags.Float64("rate", 5000, "SETs a second meanwhile")
	_ = flags.Parse(args) // it exits on errors
	list, err := programs(*limitkv, *redis, *redis)
	if err != nil {
		return err
	}
	list = list[:2] // no Valkey
	p := &params{connections: 50, pipeline: *pipeline, threads: 1, duration: *duration, warmup: 300 * time.Millisecond, valueBytes: 32}
	if *names != "none" {
		chosen, err := choose(*names)
		if err != nil {
			return err
		}
		for _, w := range chosen {
			if err := replicaCosts(w, list, p, *rounds); err != nil {
				return err
			}
		}
	}
	if *keys > 0 {
		return fullSynchronisation(list, *keys, *rate)
	}
	return nil
}

// crewOf starts a primary with so many replicas.
func crewOf(p program, replicas int) (c *crew, err error) {
	p.args = append(slices.Clone(p.args), "--repl-diskless-sync-delay", "0")
	c = &crew{}
	if c.instance, err = p.start(); err != nil {
		return nil, err
	}
	for range replicas {
		r, err := p.start()
		if err != nil {
			c.stop()
			return nil, err
		}
		c.replicas = append(c.replicas, r)
		if err := c.follow(r); err != nil {
			c.stop()
			return nil, err
		}
	}
	return c, nil
}

func (c *crew) stop() {
	for _, r := range c.replicas {
		r.stop()
	}
	c.instance.stop()
}

// follow makes a server follow the primary, and waits until it does.
func (c *crew) follow(r *instance) error {
	ctl, err := dial(r.addr, "")
	if err != nil {
		return err
	}
	defer ctl.close()
	host, port, _ := strings.Cut(c.addr, ":")
	if _, err := ctl.text("REPLICAOF", host, port); err != nil {
		return err
	}
	for end := time.Now().Add(syncMax); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		// It may refuse this while it loads.
		if text, err := ctl.text("INFO", "replication"); err == nil && strings.Contains(text, "master_link_status:up") {
			return nil
		}
	}
	return errors.New("a replica does not come to follow")
}

// lag returns how long a replica takes to get all data that the primary has now.
func lag(primary, replica *wire) (time.Duration, error) {
	want, err := primary.field("replication", "master_repl_offset")
	for began := time.Now(); err == nil; {
		var have float64
		if have, err = replica.field("replication", "slave_repl_offset"); have >= want {
			return time.Since(began), err
		}
		time.Sleep(200 * time.Microsecond)
	}
	return 0, err
}

// measure runs a workload once, and measures the lag of the first replica.
func (c *crew) measure(w *workload, p *params) error {
	if len(c.replicas) == 0 {
		r, err := c.run(w, p)
		c.rounds = append(c.rounds, r)
		return err
	}
	primary, err := dial(c.addr, "")
	if err != nil {
		return err
	}
	defer primary.close()
	replica, err := dial(c.replicas[0].addr, "")
	if err != nil {
		return err
	}
	defer replica.close()
	stop, stopped := make(chan struct{}), make(chan error, 1)
	before := processorNanos(c.replicas[0].pid)
	r, err := c.runUntil(w, p, func(func()) {
		for {
			d, err := lag(primary, replica)
			if err != nil {
				stopped <- err
				return
			}
			c.lags = append(c.lags, float64(d)/1e6)
			select {
			case <-stop:
				stopped <- nil
				return
			case <-time.After(lagEvery):
			}
		}
	})
	close(stop)
	if failed := <-stopped; err == nil {
		err = failed
	}
	if err == nil {
		_, err = lag(primary, replica)
	}
	c.behind += processorNanos(c.replicas[0].pid) - before
	c.rounds = append(c.rounds, r)
	return err
}

// replicaCosts measures a workload with no, one and two replicas, alternating, and prints a table.
func replicaCosts(w *workload, list []program, p *params, rounds int) error {
	var crews []*crew
	defer func() {
		for _, c := range crews {
			c.stop()
		}
	}()
	for _, program := range list {
		for n := range 3 {
			c, err := crewOf(program, n)
			if err != nil {
				return err
			}
			crews = append(crews, c)
			if err := c.prepare(w, p); err != nil {
				return err
			}
		}
	}
	for round := range rounds {
		for i := range crews {
			if err := crews[(i+round)%len(crews)].measure(w, p); err != nil {
				return err
			}
		}
	}
	fmt.Printf("%s: %d connections, pipeline %d; µs of processor time for a request\n", w.name, p.connections, p.pipeline)
	t := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "server\treplicas\trequests/s\tprimary\tmore\treplica\tlag p50 ms\tmax\t")
	for i, c := range crews {
		alone := crews[i/3*3]
		// Each round is compared with the round next to it on the server without replicas.
		var more []float64
		requests := uint64(0)
		for j, r := range c.rounds {
			more = append(more, 100*(r.CPU/alone.rounds[j].CPU-1))
			requests += r.Requests
		}
		slices.Sort(more)
		m := median(c.rounds)
		fmt.Fprintf(t, "%s\t%d\t%.0f\t%.3f\t%+.1f %%\t", c.name, len(c.replicas), m.PerSecond, m.CPU, more[len(more)/2])
		if len(c.replicas) > 0 {
			slices.Sort(c.lags)
			fmt.Fprintf(t, "%.3f\t%.1f\t%.1f\t\n", float64(c.behind)/1e3/float64(requests), c.lags[len(c.lags)/2], c.lags[len(c.lags)-1])
		} else {
			fmt.Fprint(t, "\t\t\t\n")
		}
	}
	t.Flush()
	fmt.Println()
	return nil
}

// fullSynchronisation lets a replica load all keys of a primary under a steady load. It prints how long that takes, and the
// latencies before and during it.
func fullSynchronisation(list []program, keys int, rate float64) error {
	fmt.Printf("full synchronisation of %d keys, with %.0f SETs a second\n", keys, rate)
	t := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "server\tseconds\tprimary s\treplica s\tp50 µs before\tmeanwhile\tp99.9 before\tmeanwhile\tmax before\tmeanwhile\t")
	for _, program := range list {
		if err := synchronisation(t, program, keys, rate); err != nil {
			return err
		}
	}
	return t.Flush()
}

func synchronisation(t *tabwriter.Writer, program program, keys int, rate float64) error {
	c, err := crewOf(program, 0)
	if err != nil {
		return err
	}
	defer c.stop()
	replica, err := program.start()
	if err != nil {
		return err
	}
	defer replica.stop()
	set := find("set")
	p := &params{connections: 50, pipeline: 1, threads: 1, keys: keys, duration: 3 * time.Second, warmup: 300 * time.Millisecond, valueBytes: 32, rate: rate}
	if err := c.prepare(set, p); err != nil { // with all the keys
		return err
	}
	before, err := c.run(set, p)
	if err != nil {
		return err
	}
	p.duration = syncMax // until the replica has synchronised
	cpu, cpuOf := processorNanos(c.pid), processorNanos(replica.pid)
	var took time.Duration
	var failed error
	followed := make(chan struct{})
	during, err := c.runUntil(set, p, func(end func()) {
		defer close(followed)
		time.Sleep(p.warmup)
		began := time.Now()
		failed = c.follow(replica)
		took = time.Since(began)
		end()
	})
	<-followed
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	fmt.Fprintf(t, "%s\t%.2f\t%.2f\t%.2f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t\n", c.name, took.Seconds(), float64(processorNanos(c.pid)-cpu)/1e9,
		float64(processorNanos(replica.pid)-cpuOf)/1e9, before.Latency.P50, during.Latency.P50, before.Latency.P999, during.Latency.P999,
		before.Latency.Max, during.Latency.Max)
	return nil
}
