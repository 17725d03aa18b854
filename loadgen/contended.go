package main

// One lock that 64 clients want. LK.ACQUIRE, which waits on the server, is compared with common alternatives. SET NX PX is
// tried again after a sleep. Redisson's locks are taken as Redisson does it: by its recorded scripts and arguments, with a
// subscription that tells when to try again. Each client acts as a separate service: it takes the lock, releases it at once,
// and wants it again.

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	contenders   = 64
	contendedKey = "contended"
	// retrySleep is how long a client of SET NX PX sleeps between attempts, as in redis-py's Lock.
	retrySleep = 100 * time.Millisecond
)

// contest is a way to take a lock.
type contest struct {
	name, does string
	own        bool     // uses limitkv's commands
	scripts    []string // sources
	take       func(c *contender) error
	release    func(c *contender) error
}

// contender is a client. Fields that its contest does not need stay empty.
type contender struct {
	id     int
	owner  string
	uuid   string // Redisson's ID of a process
	latch  uint64 // names of Redisson's latches
	over   *atomic.Bool
	main   *wire // commands
	events *wire // messages
}

var errOver = errors.New("the contest is over")

func contests(recordings string) (list []contest, err error) {
	unlock, err := ownScripts.ReadFile("scripts/unlock.lua")
	if err != nil {
		return nil, err
	}
	list = []contest{{
		name: "LK.ACQUIRE BLOCK", does: "LK.ACQUIRE with BLOCK, and LK.RELEASE", own: true,
		take: func(c *contender) error {
			r, err := c.main.ask("LK.ACQUIRE", contendedKey, c.owner, lockLease, "BLOCK", "0")
			if err == nil && r.first != 1 {
				err = errors.New("LK.ACQUIRE that waits for ever was refused")
			}
			return err
		},
		release: func(c *contender) error {
			_, err := c.main.ask("LK.RELEASE", contendedKey, c.owner)
			return err
		},
	}, {
		name: "SET NX PX", does: fmt.Sprintf("SET NX PX, tried again after %v, and the script that unlocks", retrySleep), scripts: []string{string(unlock)},
		take: func(c *contender) error {
			for {
				r, err := c.main.ask("SET", contendedKey, c.owner, "NX", "PX", lockLease)
				if err != nil || !r.null {
					return err
				}
				time.Sleep(retrySleep)
				if c.over.Load() {
					return errOver
				}
			}
		},
		release: func(c *contender) error {
			_, err := c.main.ask("EVALSHA", shaOf(string(unlock)), "1", contendedKey, c.owner)
			return err
		},
	}}
	for _, l := range []struct {
		name, recording, does string
		channelOfOwner        bool
	}{
		{"Redisson's RLock", "redisson.lock", "lock and unlock of RLock: who releases tells all who wait", false},
		{"Redisson's RFairLock", "redisson.fairlock", "lock and unlock of RFairLock: who releases tells the first in line", true},
	} {
		r, err := readRecording(recordingFile(recordings, l.recording))
		if errors.Is(err, os.ErrNotExist) {
			continue // the caller reports the missing recordings
		}
		if err != nil {
			return nil, err
		}
		c, err := redissonContest(r, l.channelOfOwner)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", l.recording, err)
		}
		c.name, c.does = l.name, l.does
		list = append(list, c)
	}
	return list, nil
}

var (
	redissonOwner = regexp.MustCompile(`^([0-9a-f]{8}-[0-9a-f-]{27}):\d+$`)
	redissonTime  = regexp.MustCompile(`^\d{13}$`)
)

const (
	channelPrefix = "redisson_lock__channel:"
	latchPrefix   = "redisson_unlock_latch:"
)

// redissonContest makes a contest from a recording. The first call took the lock, the first one that publishes released it,
// and a DEL cleaned up after that.
func redissonContest(r *recording, channelOfOwner bool) (contest, error) {
	take := r.calls[0].args
	isOwner := func(arg string) bool { return redissonOwner.MatchString(arg) }
	at := slices.IndexFunc(r.calls, func(c recorded) bool { return slices.Contains(c.args, "PUBLISH") })
	if at < 0 || at+1 == len(r.calls) || r.calls[at+1].args[0] != "DEL" || !slices.ContainsFunc(take, isOwner) || !r.calls[0].null {
		return contest{}, errRecording
	}
	unlock, tidy := r.calls[at].args, r.calls[at+1].args
	owner := take[slices.IndexFunc(take, isOwner)]
	uuid := redissonOwner.FindStringSubmatch(owner)[1]
	// as replaces the recorded names in a command by those of a contender.
	as := func(c *contender, args []string) []string {
		said := slices.Clone(args)
		for i, arg := range said {
			switch {
			case isOwner(arg):
				arg = c.owner
			case redissonTime.MatchString(arg):
				arg = strconv.FormatInt(time.Now().UnixMilli(), 10)
			case strings.HasPrefix(arg, latchPrefix) && !strings.Contains(arg, uuid):
				c.latch++
				arg = fmt.Sprintf("%s{%s}:%032x", latchPrefix, contendedKey, uint64(c.id)<<32|c.latch)
			}
			said[i] = strings.ReplaceAll(strings.ReplaceAll(arg, mark, contendedKey), uuid, c.uuid)
		}
		return said
	}
	// try takes the lock, or returns for how long another client has it.
	try := func(c *contender) (taken bool, left time.Duration, err error) {
		r, err := c.main.ask(as(c, take)...)
		return r.null, time.Duration(max(r.n, 0)) * time.Millisecond, err
	}
	return contest{
		scripts: r.scripts,
		take: func(c *contender) error {
			taken, _, err := try(c)
			if taken || err != nil {
				return err
			}
			channel := channelPrefix + "{" + contendedKey + "}"
			if channelOfOwner {
				channel += ":" + c.owner
			}
			if err := c.events.exchange("subscribe", channel); err != nil {
				return err
			}
			for {
				taken, left, err := try(c)
				if err != nil {
					return err
				}
				if taken {
					return c.events.exchange("unsubscribe", channel)
				}
				if err := c.events.message(left); err != nil {
					return err
				}
			}
		},
		release: func(c *contender) error {
			if _, err := c.main.ask(as(c, unlock)...); err != nil {
				return err
			}
			_, err := c.main.ask(as(c, tidy)...)
			return err
		},
	}, nil
}

// exchange subscribes or unsubscribes, and waits for the confirmation.
func (w *wire) exchange(what, channel string) error {
	if err := w.send(what, channel); err != nil {
		return err
	}
	for {
		r, raw, err := w.next()
		switch {
		case err != nil:
			return err
		case r.kind == '-':
			return fmt.Errorf("%s: %s", what, r.text)
		case strings.Contains(string(raw[:min(len(raw), 32)]), "\r\n"+what+"\r\n"):
			return nil
		}
	}
}

// message waits for a message, at most for so long.
func (w *wire) message(at time.Duration) error {
	_ = w.conn.SetReadDeadline(time.Now().Add(at))
	defer w.conn.SetReadDeadline(time.Time{})
	_, _, err := w.next()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	return err
}

// handed is the result of a contest on a server.
type handed struct {
	PerSecond float64 // handovers from one client to another
	CPU       float64 // microseconds of the server for each
	Grants    float64 // per second, including those to the same client again
	Fairness  float64 // grants of the client with the fewest, divided by those of the client with the most
	WaitP50   float64 // from the request to the grant, in ms
	WaitP99   float64
}

// contend runs a contest for a while.
func (t *target) contend(x contest, clients int, warmup, duration time.Duration) (h handed, err error) {
	admin, err := dial(t.addr, t.auth)
	if err != nil {
		return h, err
	}
	defer admin.close()
	if _, err := admin.text("FLUSHALL"); err != nil {
		return h, err
	}
	for _, s := range x.scripts {
		if _, err := admin.text("SCRIPT", "LOAD", s); err != nil {
			return h, err
		}
	}
	var (
		over, measuring atomic.Bool
		holder          atomic.Int64 // the client that has the lock, 0 if none has
		last, handovers atomic.Int64
		all             sync.WaitGroup
		mu              sync.Mutex
		failed          error
		grants          = make([]int64, clients)
		waits           = make([][]time.Duration, clients)
		wires           []*wire
	)
	fail := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		if failed == nil && !over.Load() {
			failed = err
		}
	}
	for i := range clients {
		c := &contender{id: i + 1, uuid: fmt.Sprintf("00000000-0000-4000-8000-%012x", i+1), over: &over}
		c.owner = c.uuid + ":62"
		for _, w := range []**wire{&c.main, &c.events} {
			if *w, err = dial(t.addr, ""); err != nil {
				return h, err
			}
			defer (*w).conn.Close()
			wires = append(wires, *w)
		}
		all.Go(func() {
			for !over.Load() {
				began := time.Now()
				if err := x.take(c); err != nil {
					fail(err)
					return
				}
				if !holder.CompareAndSwap(0, int64(c.id)) {
					fail(fmt.Errorf("%s: two clients had the lock", x.name))
				}
				if was := last.Swap(int64(c.id)); measuring.Load() {
					grants[i]++
					waits[i] = append(waits[i], time.Since(began))
					if was != int64(c.id) {
						handovers.Add(1)
					}
				}
				holder.Store(0)
				if err := x.release(c); err != nil {
					fail(err)
					return
				}
			}
		})
	}
	time.Sleep(warmup)
	cpu, began := processorNanos(t.pid), time.Now()
	measuring.Store(true)
	time.Sleep(duration)
	measuring.Store(false)
	n, seconds := float64(handovers.Load()), time.Since(began).Seconds()
	cpu = processorNanos(t.pid) - cpu
	over.Store(true)
	for _, w := range wires {
		_ = w.conn.SetDeadline(time.Unix(1, 0)) // ends waits without a time-out
	}
	all.Wait()
	if failed != nil {
		return h, failed
	}
	var wait []time.Duration
	sum := int64(0)
	for i, g := range grants {
		sum += g
		wait = append(wait, waits[i]...)
	}
	if sum == 0 {
		return h, fmt.Errorf("%s: nobody got the lock", x.name)
	}
	slices.Sort(wait)
	h = handed{PerSecond: n / seconds, CPU: float64(cpu) / 1000 / max(n, 1), Grants: float64(sum) / seconds}
	h.Fairness = float64(slices.Min(grants)) / float64(slices.Max(grants))
	h.WaitP50, h.WaitP99 = wait[len(wait)/2].Seconds()*1000, wait[len(wait)*99/100].Seconds()*1000
	return h, nil
}

// contested is a contest with its result on each server that can run it.
type contested struct {
	contest
	cells []*handed // nil if the server lacks the commands
}

// measureContended measures all contests; the servers alternate.
func (m *matrix) measureContended() error {
	list, err := contests(m.recordings)
	if err != nil {
		return err
	}
	return m.with(func(targets []*target) error {
		for _, x := range list {
			rounds := make([][]handed, len(targets))
			for round := range m.rounds {
				for i := range targets {
					i = (i + round) % len(targets)
					if x.own && targets[i].name != "limitkv" {
						continue
					}
					h, err := targets[i].contend(x, contenders, m.params.warmup, m.params.duration)
					if err != nil {
						return fmt.Errorf("%s: %w", targets[i].name, err)
					}
					rounds[i] = append(rounds[i], h)
				}
			}
			c := contested{contest: x}
			for i, r := range rounds {
				if len(r) == 0 {
					c.cells = append(c.cells, nil)
				} else {
					h := middles(r)
					c.cells = append(c.cells, &h)
					fmt.Fprintf(os.Stderr, "%s on %s: %.0f handovers/s, %.1f µs, fairness %.2f, wait %.2f ms, p99 %.2f ms\n", x.name, targets[i].name, h.PerSecond, h.CPU, h.Fairness, h.WaitP50, h.WaitP99)
				}
			}
			m.contests = append(m.contests, c)
		}
		return nil
	})
}

// The claims for the lock that the server itself hands over.
const (
	handoversAtLeast = 2.0 // times those of the best way of the others
	fairnessAtLeast  = 0.9
)

// contended writes the table of contended locks.
func (m *matrix) contended(b *strings.Builder) {
	fmt.Fprintf(b, "\n## Locks under contention\n\n%d clients want one lock; each gives it back at once and wants it again. A handover is a grant to another client than the one before.\n"+
		"CPU is the server's for each handover. Fairness is how often the client that had the lock least often had it, as a part of how often\n"+
		"the one had it that had it most often. The wait is from asking to having it. Who has the lock may take it again at once with SET NX PX\n"+
		"and RLock, which those who wait pay for.\n\n"+
		"| way | server | handovers/s | CPU µs | grants/s | fairness | wait p50 ms | p99 ms |\n| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n", contenders)
	var ours *handed
	best := 0.0
	for _, x := range m.contests {
		for i, h := range x.cells {
			if h == nil {
				continue
			}
			if x.own {
				ours = h
			} else if i > 0 {
				best = max(best, h.PerSecond)
			}
			fmt.Fprintf(b, "| %s | %s | %s | %.1f | %s | %.2f | %.2f | %.2f |\n", x.name, m.versions[i], thousands(h.PerSecond), h.CPU, thousands(h.Grants), h.Fairness, h.WaitP50, h.WaitP99)
		}
	}
	if ours != nil && best > 0 {
		ratio := ours.PerSecond / best
		fmt.Fprintf(b, "\nLK.ACQUIRE makes %s times the handovers of the best way of the others, at least %.1f is claimed; its fairness is %s, at least %.1f is claimed.\n",
			verdict(ratio, ratio >= handoversAtLeast), handoversAtLeast, verdict(ours.Fairness, ours.Fairness >= fairnessAtLeast), fairnessAtLeast)
	}
}
