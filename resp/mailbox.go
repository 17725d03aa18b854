package resp

// The functions posted to a connection. Each connection has its own box, so that what is posted to it keeps its order,
// runs in one turn and is answered with one write, however much came: a subscriber of a busy channel costs a write per
// turn, not per message.

import "sync/atomic"

// mailbox is a list of functions that anyone may add to and the owner empties.
// It takes no lock, since whoever posts may hold the locks of keys.
type mailbox struct {
	head atomic.Pointer[mailItem] // newest first; mailEnded when closed
}

type mailItem struct {
	fn   func()
	next *mailItem
}

var mailEnded = new(mailItem)

// put adds fn. first says that the box was empty: then the owner has to be told.
func (m *mailbox) put(fn func()) (first, ok bool) {
	it := &mailItem{fn: fn}
	for {
		head := m.head.Load()
		if head == mailEnded {
			return false, false
		}
		it.next = head
		if m.head.CompareAndSwap(head, it) {
			return head == nil, true
		}
	}
}

// run empties the box and runs its content, oldest first.
func (m *mailbox) run() {
	var oldest *mailItem
	for it := m.head.Swap(nil); it != nil; {
		it.next, oldest, it = oldest, it, it.next
	}
	for it := oldest; it != nil; it = it.next {
		it.fn()
	}
}

// empty tells whether there is nothing to run.
func (m *mailbox) empty() bool { return m.head.Load() == nil }

// end closes the box if it is empty.
func (m *mailbox) end() bool { return m.head.CompareAndSwap(nil, mailEnded) }
