package journal

// Who waits for the store: a reply leaves when what it tells of is as safe as the user asked for, which the log's store says. Event
// loops do not wait: what has to is kept here and posted back.
//
// When the store cannot confirm any more, replies are not kept any longer: each is answered with the store's error instead.
// What it told of is in memory, and becomes safe when the store is well again, with what else is in memory; if the server
// ends before, it is lost. Messages, which nobody asked for, stay until then.

import (
	"sync"
	"sync/atomic"
)

type confirmation struct {
	store atomic.Pointer[Store] // nil: nothing is held
	holds atomic.Bool

	queueMu sync.Mutex
	queue   []queued // by place
	// messages is how many of them are in queue. releasing: somebody calls functions that were in it, and looks again if
	// again is set.
	messages         int
	releasing, again bool
	confirmed        []func()
}

// queued is a reply or a message.
type queued struct {
	at      LSN
	reply   func(failed string)
	message func()
}

// messagesMax is how many messages are kept. While the log is written few are; while it cannot be, keys that expire may
// have events. Those that are too many are dropped, as Redis drops what subscribers cannot take.
const messagesMax = 100_000

// Holds says whether replies may have to wait: then who changes something notes the place where it is.
func (c *confirmation) Holds() bool { return c.holds.Load() }

// Kept is the store, nil without one.
func (c *confirmation) Kept() Store {
	if s := c.store.Load(); s != nil {
		return *s
	}
	return nil
}

// Confirmed is the place up to which replies may leave. It takes no lock.
func (c *confirmation) Confirmed() LSN {
	if s := c.Kept(); s != nil {
		return s.Confirmed()
	}
	return MaxLSN
}

// OnConfirmed has fn called whenever more may be confirmed, after those who wait were told.
func (c *confirmation) OnConfirmed(fn func()) {
	c.queueMu.Lock()
	c.confirmed = append(c.confirmed, fn)
	c.queueMu.Unlock()
}

// After calls fn when a place is confirmed, perhaps at once, or with an error where it cannot be for now. Of one place, and
// of later ones, functions are called in the order in which they came.
func (c *confirmation) After(at LSN, fn func(failed string)) { c.add(queued{at: at, reply: fn}) }

// Tell is After for messages, which wait for as long as it takes.
func (c *confirmation) Tell(at LSN, fn func()) { c.add(queued{at: at, message: fn}) }

func (c *confirmation) add(q queued) {
	c.queueMu.Lock()
	if len(c.queue) == 0 && !c.releasing && q.at <= c.Confirmed() {
		c.queueMu.Unlock()
		q.run("")
		return
	}
	if q.message != nil {
		if c.messages >= messagesMax {
			c.queueMu.Unlock()
			return
		}
		c.messages++
	}
	i := len(c.queue)
	for i > 0 && c.queue[i-1].at > q.at {
		i--
	}
	c.queue = append(c.queue, queued{})
	copy(c.queue[i+1:], c.queue[i:])
	c.queue[i] = q
	c.queueMu.Unlock()
	c.Release() // it may have been confirmed since, or have failed
}

func (q *queued) run(failed string) {
	if q.message != nil {
		q.message()
	} else {
		q.reply(failed)
	}
}

// Release lets go what is confirmed, and all replies if none of the others can be. The store calls it when more may be, or
// when it cannot confirm any more. The log's lock is not held.
func (c *confirmation) Release() {
	c.queueMu.Lock()
	defer func() {
		fns := c.confirmed
		c.queueMu.Unlock()
		for _, fn := range fns {
			fn()
		}
	}()
	if c.releasing {
		c.again = true
		return
	}
	c.releasing = true
	for again := true; again; again = c.again {
		c.again = false
		free, failed, why := c.take()
		c.queueMu.Unlock()
		for i := range free {
			free[i].run("")
		}
		for i := range failed {
			failed[i].run(why)
		}
		c.queueMu.Lock()
	}
	c.releasing = false
}

// take takes out of the queue what is confirmed, and the replies that fail, with why.
func (c *confirmation) take() (free, failed []queued, why string) {
	upTo, s := MaxLSN, c.Kept()
	c.holds.Store(s != nil && s.Holds())
	if s != nil {
		why = s.Refusal() // before Confirmed: what became safe with the end of a failure has not failed
		upTo = s.Confirmed()
	}
	n := 0
	for n < len(c.queue) && c.queue[n].at <= upTo {
		if c.queue[n].message != nil {
			c.messages--
		}
		n++
	}
	free, c.queue = c.queue[:n:n], c.queue[n:]
	if why != "" {
		var stay []queued
		for _, q := range c.queue {
			if q.message != nil {
				stay = append(stay, q)
			} else {
				failed = append(failed, q)
			}
		}
		c.queue = stay
	}
	if len(c.queue) == 0 {
		c.queue = nil
	}
	return free, failed, why
}

// Truncated says that what is behind a place was taken back by the store and never comes: the log goes on from there, replies
// that tell of more fail with why, and messages about it are dropped. Nobody appends meanwhile, and what the keyspace has
// of it is the caller's to take back.
func (l *Log) Truncated(to LSN, why string) {
	l.mu.Lock()
	l.kept.end, l.kept.db = min(l.kept.end, to), noDB
	l.mu.Unlock()
	l.Release() // what is confirmed is not lost
	l.queueMu.Lock()
	n := len(l.queue)
	for n > 0 && l.queue[n-1].at > to {
		n--
	}
	lost := l.queue[n:]
	l.queue = l.queue[:n:n]
	for _, q := range lost {
		if q.message != nil {
			l.messages--
		}
	}
	l.queueMu.Unlock()
	for i := range lost {
		if lost[i].reply != nil {
			lost[i].reply(why)
		}
	}
}
