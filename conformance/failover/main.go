// Command failover has client libraries work through failovers of Redis's Sentinel. Three sentinels of a real Redis watch a
// primary and two replicas, all limitkv. Programs of conformance/clients know the sentinels alone, and write, wait for queues,
// limiters and locks, and work on BullMQ's and asynq's queues. Meanwhile the primary is killed, stopped and cut off, each time
// comes back as a replica, and each client must go on with all that it did. At the end it is counted what was lost: only what
// was told after the replicas were last seen to have everything, and before the failover was done, may be.
//
// A program gets the sentinels' addresses in SENTINELS, does its work until its input ends, and prints a line for each thing
// that it was told, the parts separated by tabs:
//
//	told    CLIENT NUMBER        the number was appended to the list ledger:CLIENT
//	added   CLIENT NUMBER        the job was added to a queue
//	done    CLIENT NUMBER        a worker did it
//	fence   CLIENT WHO FENCE     a lock was granted to who "holds" or "waits"
//	got     CLIENT WHAT          what it waited for came
//	error   CLIENT WHAT REASON   something failed, and is tried again
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// driver is a folder of conformance/clients, with what it needs on the machine.
type driver struct {
	folder string
	needs  []string
}

var drivers = []driver{
	{"go", []string{"go"}},
	{"java", []string{"java", "mvn"}},
	{"node", []string{"node", "npm"}},
	{"python", []string{"python3"}},
}

func main() {
	server := flag.String("server", "bin/limitkv", "the server's binary")
	redis := flag.String("redis", os.Getenv("REDIS_SERVER"), "a redis-server, which is run as a sentinel")
	only := flag.String("only", "", "folders of conformance/clients to run, separated by commas; by default all")
	faults := flag.String("faults", "kill,stop,cut", "what happens to the primary, in turn")
	flag.Parse()
	if *redis == "" {
		*redis, _ = exec.LookPath("redis-server") // empty if there is none
	}
	err := run(*server, *redis, *only, strings.Split(*faults, ","))
	if errors.Is(err, errMissing) && os.Getenv("CI") == "" {
		fmt.Println("skipped:", err)
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance/failover:", err)
		os.Exit(1)
	}
}

// errMissing is of a machine that lacks something.
var errMissing = errors.New("not on this machine")

func run(server, redis, only string, faults []string) (err error) {
	if redis == "" {
		return fmt.Errorf("redis-server: %w", errMissing)
	}
	var chosen []driver
	for _, d := range drivers {
		if only != "" && !slices.Contains(strings.Split(only, ","), d.folder) {
			continue
		}
		for _, program := range d.needs {
			if _, err := exec.LookPath(program); err != nil {
				return fmt.Errorf("%s: %w", program, errMissing)
			}
		}
		chosen = append(chosen, d)
	}
	if len(chosen) == 0 {
		return fmt.Errorf("there is no client %q", only)
	}
	set, err := watch(server, redis)
	defer set.end()
	if err != nil {
		return err
	}
	r := newRecord()
	for _, d := range chosen {
		p, err := d.start(set.addrs(), r)
		if err != nil {
			return err
		}
		defer func() {
			if p.kill(); err != nil {
				fmt.Fprintf(os.Stderr, "%s printed:\n%s\n", d.folder, &p.logs)
			}
		}()
		r.inputs = append(r.inputs, p)
	}
	if err := r.goesOn(time.Time{}); err != nil {
		return err
	}
	for _, fault := range faults {
		time.Sleep(2 * time.Second) // of work between two faults
		began := time.Now()
		if err := set.fault(fault, r); err != nil {
			return fmt.Errorf("%s: %w", fault, err)
		}
		done := time.Now()
		if err := r.goesOn(done); err != nil {
			return fmt.Errorf("%s: %w", fault, err)
		}
		fmt.Printf("%s: another primary and the former one a replica after %.1f s, all clients at work after %.1f s\n",
			fault, done.Sub(began).Seconds(), time.Since(began).Seconds())
	}
	primary := set.primary()
	if primary == nil {
		return errors.New("there is no primary at the end")
	}
	return r.settle(primary)
}
