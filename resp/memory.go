package resp

// The driver for tests: a connection without a socket.

// Memory is a connection in memory, for tests and fuzzing: Feed takes the bytes that a client would send
// and returns the bytes that it would receive. All of it runs on the caller's goroutine, except that anyone may Post.
type Memory struct {
	Conn
	now     func() int64
	scratch scratch
	sent    []byte
}

// NewMemory opens a connection. now is as in Options.
func NewMemory(h Handler, now func() int64) *Memory {
	m := &Memory{now: now}
	m.init(1, h, m, now())
	h.Opened(&m.Conn)
	m.settle()
	return m
}

func (m *Memory) post() bool { return true } // Feed looks for mail itself

func (m *Memory) nudge() {} // Feed asks the source itself

func (m *Memory) resume() { m.queued = true }

func (m *Memory) unsent() int { return len(m.Out.Buf) }

func (m *Memory) handOver(int, int) bool { return false } // the goroutine belongs to the caller

func (m *Memory) others() {}

func (m *Memory) gather() {}

func (m *Memory) flush() {
	m.sent = append(m.sent, m.Out.Buf...)
	m.bytesOut.Add(int64(len(m.Out.Buf)))
	m.Out.Buf = m.Out.Buf[:0]
}

// Feed gives input to the connection and returns its output, which is valid until
// the next call. An ended connection (see Gone) returns nothing.
func (m *Memory) Feed(input []byte) []byte {
	m.sent = m.sent[:0]
	if m.gone {
		return nil
	}
	m.lastActive.Store(m.now())
	m.bytesIn.Add(int64(len(input)))
	m.in.buf = append(m.in.buf, input...)
	m.resume()
	m.run()
	return m.sent
}

func (m *Memory) run() {
	for !m.mail.empty() || m.queued {
		m.mail.run()
		m.settle()
		if !m.queued {
			continue
		}
		m.queued = false
		if m.gone || m.paused {
			continue
		}
		m.in.take(m.serve(m.in.bytes(), true, &m.scratch, turnCommandsMax))
		m.scratch.release()
		m.noteQueryBytes()
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
	if m.strayReply(); m.closing != closeNow {
		m.flush()
	}
	for m.source != nil && m.closing == keepOpen {
		b := m.source.Next()
		if len(b) == 0 {
			break
		}
		m.sent = append(m.sent, b...)
		m.source.Sent(len(b))
	}
	if m.closing != keepOpen && !m.gone {
		m.over()
	}
}
