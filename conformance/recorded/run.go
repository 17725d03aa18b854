// Running a file against a server: replaying it (do the replies match?) and recording it (ask the real Redis).

package recorded

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
)

// blockedWait is how long %send waits for the server to report one more blocked client. Where it does not, the
// conversation goes on: the replies will tell.
const blockedWait = 300 * time.Millisecond

// silence is how long %silent listens.
const silence = 20 * time.Millisecond

// Difference is a reply that is not what was recorded.
type Difference struct {
	Where    string // file:line
	Protocol int
	Command  string
	Want     string
	Got      string
}

func (d Difference) String() string {
	return fmt.Sprintf("%s (RESP%d)\n  %s\n  want %s\n  got  %s", d.Where, d.Protocol, d.Command,
		strings.ReplaceAll(d.Want, "\n", "\n       "), strings.ReplaceAll(d.Got, "\n", "\n       "))
}

// conversation is one run of a file.
type conversation struct {
	file  *File
	proto int
	addr  string
	conns map[string]*peer.Conn
	saved map[string]string
	admin *peer.Conn
	after func(admin *peer.Conn, s *step, text string) error // each step
	deaf  bool                                               // what after does takes time: %silent listens to nothing
}

// Replay runs the file against a server in each of its protocols and compares. It returns how many replies were
// compared and the differences. The error is of the connection, not of a reply.
func (f *File) Replay(addr string) (compared int, diffs []Difference, err error) {
	err = f.run(addr, func(s *step, proto int, text string, got peer.Value) error {
		compared++
		d := Difference{Where: fmt.Sprintf("%s:%d", f.Path, s.number), Protocol: proto, Command: text, Got: got.String()}
		if s.rule.Any {
			if got.IsError() {
				d.Want = "no error"
				diffs = append(diffs, d)
			}
			return nil
		}
		d.Want = s.expected(proto, f)
		if d.Want == "" {
			return fmt.Errorf("%s: nothing is recorded for %s: run make record", d.Where, text)
		}
		want, err := peer.ParseValue(d.Want)
		if err != nil {
			return fmt.Errorf("%s: %w", d.Where, err)
		}
		if !s.rule.Match(want, got) {
			diffs = append(diffs, d)
		}
		return nil
	})
	return compared, diffs, err
}

// Record runs the file against the real Redis and takes over its replies. A reply that still matches by its rule
// keeps the text it has.
func (f *File) Record(addr string) error {
	return f.run(addr, func(s *step, proto int, text string, got peer.Value) error {
		if s.rule.Any {
			return nil
		}
		old, err := peer.ParseValue(s.expected(proto, f))
		if err == nil && !s.rule.Exact() && s.rule.Match(old, got) {
			return nil
		}
		slot := f.slot(proto)
		s.want[slot] = got.String()
		// The notation must lose nothing: what was written reads back as what came.
		back, err := peer.ParseValue(s.want[slot])
		if err != nil || !back.Equal(got) {
			return fmt.Errorf("%s:%d: the notation loses %q (%v)", f.Path, s.number, s.want[slot], err)
		}
		return nil
	})
}

// slot is where the replies of a protocol are kept: a file of one protocol has a single set.
func (f *File) slot(proto int) int {
	if len(f.Protocols) == 1 {
		return 2
	}
	return proto
}

// expected is the recorded reply for a protocol: RESP3's own where there is one.
func (s *step) expected(proto int, f *File) string {
	if w := s.want[f.slot(proto)]; w != "" {
		return w
	}
	return s.want[2]
}

// check is what a run does with each reply.
type check func(s *step, proto int, text string, got peer.Value) error

func (f *File) run(addr string, each check) error {
	return f.runWith(addr, f.Protocols, nil, nil, each)
}

// runWith runs the file in some protocols. begin is called once the server is empty, after when a step is done; both may
// be nil. Where a step lets a held client go on, after is called once that client's reply is read: it may take a moment.
func (f *File) runWith(addr string, protocols []int, begin func(admin *peer.Conn) error, after func(admin *peer.Conn, s *step, text string) error, each check) error {
	for _, proto := range protocols {
		c := &conversation{file: f, proto: proto, addr: addr, conns: map[string]*peer.Conn{}, saved: map[string]string{}, after: after, deaf: after != nil}
		err := c.start()
		if err == nil && begin != nil {
			err = begin(c.admin)
		}
		for i, l := range f.lines {
			if err != nil {
				break
			}
			if l.step == nil {
				continue
			}
			if err = c.step(l.step, l.text, each); err == nil && after != nil && !f.letsGo(i) {
				err = after(c.admin, l.step, l.text)
			}
			if err != nil {
				err = fmt.Errorf("%s:%d (RESP%d) %s: %w", f.Path, l.step.number, proto, l.text, err)
			}
		}
		c.close()
		if err != nil {
			return err
		}
	}
	return nil
}

// letsGo tells whether what line i did lets go on a client that was held: whether the next step reads the reply to what was posted.
func (f *File) letsGo(i int) bool {
	var next *step
	for _, l := range f.lines[i+1:] {
		if next = l.step; next != nil {
			break
		}
	}
	if next == nil || next.verb != "read" {
		return false
	}
	for ; i >= 0; i-- {
		if s := f.lines[i].step; s != nil && s.conn == next.conn && s.verb != "silent" {
			return s.verb == "post"
		}
	}
	return false
}

// start empties the server.
func (c *conversation) start() error {
	admin, err := peer.Dial(c.addr)
	if err != nil {
		return err
	}
	c.admin = admin
	for _, cmd := range []string{"FLUSHALL", "SCRIPT FLUSH"} {
		if v, err := admin.Do(strings.Fields(cmd)...); err != nil || v.IsError() {
			return fmt.Errorf("%s: %v %v", cmd, v, err)
		}
	}
	return nil
}

func (c *conversation) close() {
	for _, conn := range c.conns {
		conn.Close()
	}
	if c.admin != nil {
		c.admin.Close()
	}
}

// conn is the connection of that name, made and switched to the protocol on first use.
func (c *conversation) conn(name string) (*peer.Conn, error) {
	if conn := c.conns[name]; conn != nil {
		return conn, nil
	}
	conn, err := peer.Dial(c.addr)
	if err != nil {
		return nil, err
	}
	c.conns[name] = conn
	if c.proto == 3 {
		if v, err := conn.Do("HELLO", "3"); err != nil || v.IsError() {
			return nil, fmt.Errorf("HELLO 3: %v %v", v, err)
		}
	}
	return conn, nil
}

func (c *conversation) step(s *step, text string, each check) error {
	if s.verb == "sleep" {
		time.Sleep(time.Duration(s.ms) * time.Millisecond)
		return nil
	}
	conn, err := c.conn(s.conn)
	if err != nil {
		return err
	}
	switch s.verb {
	case "silent":
		if !c.deaf && !conn.Silent(silence) {
			v, err := conn.Receive()
			return fmt.Errorf("nothing should have come, but: %v %v", v, err)
		}
		return nil
	case "closed":
		if !conn.Closed(peer.ReplyTimeout) {
			return fmt.Errorf("the connection stays open")
		}
		delete(c.conns, s.conn)
		return conn.Close()
	}
	blocked := 0
	if s.verb == "send" {
		blocked = c.blocked()
	}
	if s.verb != "read" {
		if err := conn.SendRaw(c.bytes(s)); err != nil {
			return err
		}
	}
	switch s.verb {
	case "post":
		return nil
	case "send":
		for end := time.Now().Add(blockedWait); c.blocked() <= blocked && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		return nil
	}
	got, err := conn.Receive()
	if err != nil {
		return err
	}
	if s.save != "" {
		c.saved[s.save] = got.Text
	}
	return each(s, c.proto, text, got)
}

// bytes is what a step sends.
func (c *conversation) bytes(s *step) []byte {
	args := make([]string, len(s.args))
	for i, a := range s.args {
		if saved, ok := c.saved[strings.TrimPrefix(a, "$")]; ok && strings.HasPrefix(a, "$") {
			a = saved
		}
		args[i] = a
	}
	if s.raw {
		return []byte(strings.Join(args, ""))
	}
	return peer.AppendCommand(nil, args...)
}

// blocked asks the server how many clients wait in a blocking command; 0 where it does not say.
func (c *conversation) blocked() int {
	v, err := c.admin.Do("INFO", "clients")
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(v.Text, "blocked_clients:")
	digits, _, _ := strings.Cut(after, "\r\n")
	n, _ := strconv.Atoi(digits)
	return n
}
