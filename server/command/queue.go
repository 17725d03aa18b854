package command

// The queue for EXEC. Most transactions live no longer than one batch of their connection. So the worker lends the memory, and
// gets it back after EXEC or DISCARD. Queueing a command then copies its arguments, and allocates nothing.

// Queue is the requests of a transaction, with their own copies of the arguments.
type Queue struct {
	Requests []Request
	// Bytes is the total length of the arguments, Words their number.
	Bytes int64
	Words int32

	words [][]byte // free memory for the next request's arguments; bytes likewise
	bytes []byte
}

// What a worker keeps: up to queuesKept queues, since a transaction may still be open when its connection's turn ends, and for
// each one enough memory for most transactions.
const (
	queuesKept        = 32
	queueRequestsKept = 64
	queueWordsKept    = 1024
	queueBytesKept    = 16 << 10
)

// Add copies a request to the queue. The first one takes a queue from the worker.
func (q *Queue) Add(w *Worker, r *Request) {
	if last := len(w.queues) - 1; q.Requests == nil && last >= 0 {
		*q = w.queues[last]
		w.queues[last] = Queue{}
		w.queues = w.queues[:last]
	}
	n := ArgBytes(r.Args)
	copied := n
	if r.Own > 0 {
		for _, a := range r.Args {
			if r.Owns(a) {
				copied -= len(a)
			}
		}
	}
	if free := cap(q.bytes) - len(q.bytes); free < copied {
		q.bytes = make([]byte, 0, max(copied, min(2*cap(q.bytes), queueBytesKept)))
	}
	if free := cap(q.words) - len(q.words); free < len(r.Args) {
		q.words = make([][]byte, 0, max(len(r.Args), min(2*cap(q.words), queueWordsKept)))
	}
	first := len(q.words)
	for _, a := range r.Args {
		if r.Owns(a) {
			q.words = append(q.words, a)
			continue
		}
		from := len(q.bytes)
		q.bytes = append(q.bytes, a...)
		q.words = append(q.words, q.bytes[from:len(q.bytes):len(q.bytes)])
	}
	q.Requests = append(q.Requests, *r)
	q.Requests[len(q.Requests)-1].Args = q.words[first:len(q.words):len(q.words)]
	q.Bytes += int64(n)
	q.Words += int32(len(r.Args))
}

// GiveBack returns a queue that is no longer used to the worker.
func (q *Queue) GiveBack(w *Worker) {
	if q.Requests == nil {
		return
	}
	if cap(q.Requests) > queueRequestsKept {
		q.Requests = nil
	}
	if cap(q.words) > queueWordsKept {
		q.words = nil
	}
	if cap(q.bytes) > queueBytesKept {
		q.bytes = nil
	}
	if len(w.queues) < queuesKept && q.Requests != nil {
		clear(q.Requests) // all else is clear
		clear(q.words)
		w.queues = append(w.queues, Queue{Requests: q.Requests[:0], words: q.words[:0], bytes: q.bytes[:0]})
	}
	*q = Queue{}
}

// TakeQueue ends the session's transaction, and returns its queue.
func (c *Ctx) TakeQueue() Queue {
	m := &c.Session.Multi
	queue := m.Queue
	c.Unwatch()
	m.Active, m.Failed, m.Queue = false, false, Queue{}
	c.Session.ShowMulti()
	return queue
}

// Discard ends the session's transaction, if there is one.
func (c *Ctx) Discard() {
	queue := c.TakeQueue()
	queue.GiveBack(c.Worker)
}

// Unwatch drops the session's watches.
func (c *Ctx) Unwatch() {
	if m := &c.Session.Multi; m.Watcher.Watching() {
		held := c.Held
		if c.Reserved {
			held.Reset()
		}
		c.KS.Unwatch(&m.Watcher, held)
		c.Session.Shown.Watches.Store(0)
		c.Session.Shown.WatchBytes.Store(0)
	}
}
