package resp

// The driver for tests: a connection without a socket.

import "time"

// Memory is a connection in memory, for tests and fuzzing: what a client sends
// is given to Feed, which returns what it would receive. All of it runs on the
// caller's goroutine, except that anyone may Post.
type Memory struct {
	Conn
	now     func() int64
	mail    mailbox
	scratch scratch
	sent    []byte
}

// NewMemory opens a connection. now is as in Options.
func NewMemory(h Handler, now func() int64) *Memory {
	m := &Memory{now: now}
	m.mail.ready = make(chan struct{}, 1)
	m.init(1, h, m, now())
	h.Opened(&m.Conn)
	m.settle()
	return m
}

func (m *Memory) post(fn func()) bool { return m.mail.put(fn) }
func (m *Memory) resume()             { m.queued = true }

func (m *Memory) flush() {
	m.sent = append(m.sent, m.out.Buf...)
	m.bytesOut.Add(int64(len(m.out.Buf)))
	m.out.Buf = m.out.Buf[:0]
}

// Feed gives input to the connection and returns what it answers, valid until
// the next call. An ended connection (see Gone) answers nothing.
func (m *Memory) Feed(input []byte) []byte {
	m.sent = m.sent[:0]
	if m.gone {
		return nil
	}
	m.lastActive.Store(m.now())
	m.bytesIn.Add(int64(len(input)))
	m.in = append(m.in, input...)
	m.resume()
	m.run()
	return m.sent
}

// Run runs what was posted and returns what the connection answers.
func (m *Memory) Run() []byte {
	m.sent = m.sent[:0]
	m.run()
	return m.sent
}

// Wait is Run after waiting until something is posted, for no longer than d.
func (m *Memory) Wait(d time.Duration) []byte {
	select {
	case <-m.mail.ready:
	case <-time.After(d):
	}
	return m.Run()
}

// Hangup ends the connection from the client's side.
func (m *Memory) Hangup() {
	m.close(false, ReasonPeer)
	m.settle()
}

func (m *Memory) run() {
	for {
		mail := m.mail.take()
		if mail == nil && !m.queued {
			return
		}
		for ; mail != nil; mail = mail.next {
			mail.fn()
		}
		m.settle()
		if !m.queued {
			continue
		}
		m.queued = false
		if m.gone || m.paused {
			continue
		}
		done := m.serve(m.in, &m.scratch, turnCommandsMax)
		m.in = append(m.in[:0], m.in[done:]...)
		m.scratch.release()
		m.queryBytes.Store(int64(len(m.in)))
		if m.overInput() {
			m.close(false, ReasonInput)
		}
		if m.more {
			m.resume()
		}
		m.settle()
	}
}

func (m *Memory) settle() {
	if m.closing != closeNow {
		m.flush()
	}
	if m.closing != keepOpen && !m.gone {
		m.gone = true
		m.handler.Closed(&m.Conn)
	}
}
