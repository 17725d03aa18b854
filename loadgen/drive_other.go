//go:build !linux

package main

// The driver where there is no epoll: two goroutines would cost more than the
// answers are worth, so a connection has one, which sends and then waits. It is
// for trying a workload out; measure on Linux.

import (
	"errors"
	"net"
	"sync"
	"time"
)

func nanotime(start time.Time) int64 { return int64(time.Since(start)) }

func drive(l *load, addr, auth string, connections, _ int, ready func()) ([]*tally, error) {
	if l.interval > 0 {
		return nil, errors.New("--rate needs Linux")
	}
	controls := make([]*control, connections)
	for i := range controls {
		c, err := dial(addr, auth)
		if err != nil {
			return nil, err
		}
		defer c.close()
		controls[i] = c
	}
	start := time.Now()
	tallies := make([]*tally, connections)
	errs := make([]error, connections)
	var all sync.WaitGroup
	for i, c := range controls {
		tallies[i] = newTally()
		all.Go(func() {
			errs[i] = pump(newClient(l, tallies[i], uint64(i)), c.conn, start)
			tallies[i].flush()
		})
	}
	ready()
	all.Wait()
	return tallies, errors.Join(errs...)
}

func pump(c *client, conn net.Conn, start time.Time) error {
	in := make([]byte, 64<<10)
	b := c.batch(nil, nanotime(start))
	for c.load.phase.Load() != ended {
		if len(b) > 0 {
			if _, err := conn.Write(b); err != nil {
				return err
			}
		}
		_ = conn.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		n, err := conn.Read(in)
		if err != nil && !errors.Is(err, net.ErrClosed) && n == 0 {
			var timeout net.Error
			if errors.As(err, &timeout) && timeout.Timeout() {
				b = b[:0]
				continue
			}
			return err
		}
		var ok bool
		if b, ok = c.answers(in[:n], b[:0], nanotime(start)); !ok {
			return errors.New("the server's answer is not the Redis protocol")
		}
	}
	return nil
}
