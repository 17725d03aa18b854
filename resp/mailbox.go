package resp

// The functions posted to a connection. Each connection has its own mailbox. So its functions keep their order, run in one
// turn and need one write together: a subscriber of a busy channel costs one write per turn, not one per message.

import "sync/atomic"

// mailbox is a list of functions that anyone may add to and the owner empties.
// It takes no lock, since a goroutine that posts may hold shard mutexes.
type mailbox struct {
	head atomic.Pointer[mailItem] // newest first; mailEnded when closed
}

type mailItem struct {
	fn   func()
	next *mailItem
}

var mailEnded = new(mailItem)

// put adds fn. first says that the mailbox was empty: then the caller must wake the owner.
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

// run empties the mailbox and runs its functions, oldest first.
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

// end closes the mailbox if it is empty.
func (m *mailbox) end() bool { return m.head.CompareAndSwap(nil, mailEnded) }
