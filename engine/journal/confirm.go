package journal

// This file makes replies wait for the store. A reply leaves when the change that it reports is as safe as the user
// configured, which the store decides. Event loops do not block for that: a reply that has to wait is queued here and
// posted back to its loop.
//
// When the store cannot confirm any more, each waiting reply is replaced by the store's error. The change that it
// reports stays in memory, and becomes safe with the rest when the store recovers; if the server ends before, it is
// lost. Messages, which answer no request, keep waiting.

import (
	"sync"
	"sync/atomic"
)

type confirmation struct {
	store atomic.Pointer[Store] // nil: no reply waits
	holds atomic.Bool

	queueMu sync.Mutex
	queue   []queued // ordered by place
	// messages is the number of messages in queue. releasing: a goroutine is calling functions from the queue; again
	// makes it look at the queue once more.
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

// messagesMax is how many messages may wait. While the log is written there are few; while it cannot be written,
// expiring keys may still cause events. Messages beyond that are dropped, as Redis drops messages that its subscribers
// are too slow for.
const messagesMax = 100_000

// Holds reports whether replies may have to wait. If so, a command that changes data records its place in the log.
func (c *confirmation) Holds() bool { return c.holds.Load() }

// Kept is the log's store, nil if there is none.
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

// OnConfirmed registers fn, which is called whenever more may be confirmed, after the waiting replies were released.
func (c *confirmation) OnConfirmed(fn func()) {
	c.queueMu.Lock()
	c.confirmed = append(c.confirmed, fn)
	c.queueMu.Unlock()
}

// After calls fn when a place is confirmed, perhaps at once, or with an error if it cannot be confirmed for now.
// Functions are called in the order of their places, functions of the same place in the order of their calls of After.
func (c *confirmation) After(at LSN, fn func(failed string)) { c.add(queued{at: at, reply: fn}) }

// Tell is After for messages, which wait as long as necessary.
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
	c.Release() // the place may have been confirmed meanwhile, or the store may have failed
}

func (q *queued) run(failed string) {
	if q.message != nil {
		q.message()
	} else {
		q.reply(failed)
	}
}

// Release releases what is confirmed, and fails all other replies if the store refuses them. The store calls it when
// more may be confirmed, or when it cannot confirm any more. The caller must not hold the log's lock.
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

// take removes from the queue what is confirmed, and the replies that fail, with the reason.
func (c *confirmation) take() (free, failed []queued, why string) {
	upTo, s := MaxLSN, c.Kept()
	c.holds.Store(s != nil && s.Holds())
	if s != nil {
		why = s.Refusal() // before Confirmed: data that became safe as the failure ended has not failed
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

// Truncated is called by a store that dropped everything after a place. The log continues from that place. Replies that
// wait for a later one fail with why, and messages about it are dropped. Nothing may append meanwhile, and the caller
// undoes the dropped changes in the keyspace.
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
