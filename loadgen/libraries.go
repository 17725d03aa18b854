package main

// Real libraries at work on servers, used by the small programs of the clients' checks (conformance/clients). They are
// recorded for the matrix, and compared end to end by `limitkv-benchmark libraries`.

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// clientsDir is the directory of the programs, with a folder for each language.
const clientsDir = "conformance/clients"

// library is a real library and its work.
type library struct {
	name, language string
	does           string
	// count and workers are the amount of work end to end, and the number of workers; 0 if the library is only recorded.
	count, workers int
	atLeast        float64 // claimed for the time end to end
}

var libraries = []library{
	{name: "bullmq", language: "node", does: "BullMQ: jobs added, a quarter delayed, moved to active, moved to finished", count: 10_000, workers: 100, atLeast: 1},
	{name: "redisson.lock", language: "java", does: "Redisson's RLock: taken, refused, released", count: 10_000, workers: 16, atLeast: 1},
	{name: "redisson.fairlock", language: "java", does: "Redisson's RFairLock: taken, refused, released", count: 10_000, workers: 16, atLeast: 1},
	{name: "redisson.mapcache", language: "java", does: "Redisson's RMapCache: entries put, read, renewed, removed"},
	{name: "redisson.semaphore", language: "java", does: "Redisson's RSemaphore: permits taken, refused, released"},
	{name: "redisson.delayedqueue", language: "java", does: "Redisson's RDelayedQueue: messages offered with a delay, and taken when they are due"},
	{name: "asynq", language: "go", does: "asynq: tasks enqueued, a quarter delayed, and processed", count: 10_000, workers: 50, atLeast: 1.2},
	{name: "rate-limiter-flexible", language: "node", does: "rate-limiter-flexible: points consumed, and refused"},
	{name: "rq", language: "python", does: "rq: jobs enqueued, and performed by a worker"},
	{name: "celery", language: "python", does: "celery: tasks sent, performed, and their results fetched"},
	{name: "dramatiq", language: "python", does: "Dramatiq: messages enqueued, and worked off", count: 10_000, workers: 8, atLeast: 1},
}

func chosenLibraries(only string) (list []library) {
	for _, l := range libraries {
		if only == "" || strings.Contains(","+only+",", ","+l.name+",") {
			list = append(list, l)
		}
	}
	return list
}

// driveMax is how long a program may take.
const driveMax = 5 * time.Minute

// drive lets the library work on a server. Its program prints "begin PHASE" and "end PHASE OPERATIONS"; drive calls on for
// each such line.
func (l library) drive(clients, addr string, count, workers int, on func(event, phase string, operations uint64)) error {
	cmd := exec.Command("./run")
	cmd.Dir = filepath.Join(clients, l.language)
	cmd.Env = append(os.Environ(), "LOAD="+l.name, "SERVER="+addr, "COUNT="+strconv.Itoa(count), "WORKERS="+strconv.Itoa(workers), "MARK="+mark)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	timer := time.AfterFunc(driveMax, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	phases := 0
	for lines := bufio.NewScanner(out); lines.Scan(); {
		switch f := strings.Split(lines.Text(), "\t"); {
		case len(f) == 2 && f[0] == "begin":
			on(f[0], f[1], 0)
		case len(f) == 3 && f[0] == "end":
			n, err := strconv.ParseUint(f[2], 10, 64)
			if err != nil || n == 0 {
				return fmt.Errorf("the program says %q", lines.Text())
			}
			on(f[0], f[1], n)
			phases++
		}
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%s: %w", cmd.Dir, err)
	}
	if phases == 0 {
		return fmt.Errorf("%s did nothing", cmd.Dir)
	}
	return nil
}
