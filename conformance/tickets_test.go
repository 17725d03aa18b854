// RL.MACQUIRE that waits, from many connections at once: one order of all that happened explains it, in which nobody is overtaken.
package conformance

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/limitkv/limitkv/conformance/peer"
)

// ticketKeys are limiters with CONC. Costs are of each of them; 0 is none of it.
var ticketKeys = [...]string{"tickets:a", "tickets:b", "tickets:c"}

type costs [len(ticketKeys)]int8

// ticketOp is a part of what a client does. A request that waits has two: it comes into the lines, and it is granted or
// leaves one line after the other.
type ticketOp struct {
	what   string // "ask", "join", "grant", "leave" or "back"
	ticket uint16
	costs  costs // of "leave": of the line that it leaves
}

// ticketState is what is held, and who waits: for each two bytes of the ticket, and what it wants of each limiter whose line it is in.
type ticketState struct {
	used costs
	line string
}

const ticketBytes = 2 + len(ticketKeys)

// entryOf is what a line has of a ticket.
func entryOf(ticket uint16, c costs) string {
	b := []byte{byte(ticket >> 8), byte(ticket)}
	for _, n := range c {
		b = append(b, byte(n))
	}
	return string(b)
}

// entry is one of those who wait.
func (s ticketState) entry(at int) (ticket uint16, c costs) {
	for k := range c {
		c[k] = int8(s.line[at+2+k])
	}
	return uint16(s.line[at])<<8 | uint16(s.line[at+1]), c
}

// find is where a ticket is in the line, -1 where it is not, and whether somebody is before it for one of its limiters.
func (s ticketState) find(ticket uint16, c costs) (at int, behind bool) {
	for at = 0; at < len(s.line); at += ticketBytes {
		n, other := s.entry(at)
		if n == ticket {
			return at, behind
		}
		for k := range c {
			behind = behind || c[k] > 0 && other[k] > 0
		}
	}
	return -1, behind
}

func (s ticketState) fits(c, capacity costs) bool {
	for k := range c {
		if c[k] > 0 && s.used[k]+c[k] > capacity[k] {
			return false
		}
	}
	return true
}

func (s ticketState) take(c costs, sign int8) ticketState {
	for k := range c {
		s.used[k] += sign * c[k]
	}
	return s
}

// step tells whether an operation can have had its outcome, and what it leaves.
func (s ticketState) step(op ticketOp, granted bool, capacity costs) (bool, ticketState) {
	at, behind := s.find(op.ticket, op.costs)
	switch op.what {
	case "ask":
		if may := !behind && s.fits(op.costs, capacity); may != granted {
			return false, s
		}
		if granted {
			s = s.take(op.costs, 1)
		}
		return true, s
	case "join":
		s.line += entryOf(op.ticket, op.costs)
		return true, s
	case "back":
		return true, s.take(op.costs, -1)
	}
	if at < 0 || op.what == "grant" && (behind || !s.fits(op.costs, capacity)) {
		return false, s
	}
	ticket, c := s.entry(at)
	for k := range c {
		if op.costs[k] > 0 {
			c[k] = 0
		}
	}
	rest := s.line[:at]
	if c != (costs{}) {
		rest += entryOf(ticket, c)
	}
	s.line = rest + s.line[at+ticketBytes:]
	if op.what == "grant" {
		s = s.take(op.costs, 1)
	}
	return true, s
}

// ticketClient asks for limiters, and gives back what it was granted before it asks again.
type ticketClient struct {
	number   int
	r        *rand.Rand
	c, watch *peer.Conn
	id       string
	capacity costs
	round    *ticketRound
}

// ticketRound is what all clients note.
type ticketRound struct {
	began   time.Time
	mu      sync.Mutex
	history []porcupine.Operation
	tickets uint16
	done    map[string]int
}

func (r *ticketRound) now() int64 { return time.Since(r.began).Nanoseconds() }

func (r *ticketRound) ticket() uint16 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tickets++
	return r.tickets
}

func (r *ticketRound) note(client int, op ticketOp, granted bool, call, back int64, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history = append(r.history, porcupine.Operation{ClientId: client, Input: op, Output: granted, Call: call, Return: back})
	r.done[why]++
}

// draw draws what to ask for.
func (t *ticketClient) draw() (c costs, args []string) {
	keys := t.r.Perm(len(c))[:1+t.r.IntN(len(c))]
	name := fmt.Sprintf("%d.%d", t.number, t.round.now())
	for _, k := range keys {
		c[k] = 1 + int8(t.r.IntN(int(t.capacity[k])))
		args = append(args, ticketKeys[k], fmt.Sprint(c[k]))
	}
	if len(keys) == 1 && t.r.IntN(3) > 0 {
		args = append([]string{"RL.ACQUIRE"}, args...)
	} else {
		args = append([]string{"RL.MACQUIRE", fmt.Sprint(len(keys))}, args...)
	}
	return c, append(args, "ID", name, "LEASE", "600000")
}

// works does something else for a while.
func (t *ticketClient) works() (err error) {
	for i := t.r.IntN(60); i > 0 && err == nil; i-- {
		_, err = t.c.Do("PING")
	}
	return err
}

// turn asks once, and gives back what that took.
func (t *ticketClient) turn() error {
	if err := t.works(); err != nil {
		return err
	}
	c, args := t.draw()
	op := ticketOp{"ask", t.round.ticket(), c}
	if t.r.IntN(2) == 0 {
		granted, err := t.wait(op, args)
		if err != nil || !granted {
			return err
		}
	} else {
		call := t.round.now()
		granted, err := granted(t.c.Do(args...))
		t.round.note(t.number, op, granted, call, t.round.now(), map[bool]string{true: "granted", false: "refused"}[granted])
		if err != nil || !granted {
			return err
		}
	}
	if err := t.works(); err != nil {
		return err
	}
	return t.back(c, args[len(args)-3])
}

// granted reads a decision.
func granted(v peer.Value, err error) (bool, error) {
	if err == nil && len(v.Items) < 5 {
		err = fmt.Errorf("the reply is %v", v)
	}
	return err == nil && v.Items[0].Text == "0", err
}

// wait asks with BLOCK. That it waits is seen from another connection, before which it came into the lines.
func (t *ticketClient) wait(op ticketOp, args []string) (bool, error) {
	millis := "0"
	if t.r.IntN(3) == 0 {
		millis = "1"
	}
	call := t.round.now()
	if err := t.c.Send(append(args, "BLOCK", millis)...); err != nil {
		return false, err
	}
	type outcome struct {
		granted bool
		err     error
		at      int64
	}
	replied := make(chan outcome, 1)
	go func() {
		ok, err := granted(t.c.Receive())
		replied <- outcome{ok, err, t.round.now()}
	}()
	joined, why := int64(0), "granted at once"
	for joined == 0 && len(replied) == 0 {
		v, err := t.watch.Do("CLIENT", "LIST", "ID", t.id)
		if err != nil {
			return false, err
		}
		if strings.Contains(v.Text, " flags=b ") {
			joined, why = t.round.now(), "granted in line"
		}
	}
	out := <-replied
	if out.err != nil {
		return false, out.err
	}
	if joined == 0 {
		joined = out.at
	}
	op.what = "join"
	t.round.note(t.number, op, true, call, min(joined, out.at), "join")
	if op.what = "grant"; out.granted {
		t.round.note(100+t.number, op, true, call, out.at, why)
		return true, nil
	}
	all := op.costs
	for k, n := range all {
		if n > 0 {
			op.what, op.costs = "leave", costs{}
			op.costs[k] = n
			t.round.note(100*(k+1)+t.number, op, false, call, out.at, "timed out")
		}
	}
	return false, nil
}

// back gives back what was taken, one limiter after the other or all at once.
func (t *ticketClient) back(c costs, name string) error {
	at := []int{}
	for k := range c {
		if c[k] > 0 {
			at = append(at, k)
		}
	}
	t.r.Shuffle(len(at), func(i, j int) { at[i], at[j] = at[j], at[i] })
	if len(at) > 1 && t.r.IntN(2) == 0 {
		b := peer.AppendCommand(nil, "MULTI")
		for _, k := range at {
			b = peer.AppendCommand(b, "RL.SETTLE", ticketKeys[k], name)
		}
		call := t.round.now()
		err := t.c.SendRaw(peer.AppendCommand(b, "EXEC"))
		var v peer.Value
		for range len(at) + 2 {
			if err == nil {
				v, err = t.c.Receive()
			}
		}
		if err == nil && len(v.Items) != len(at) {
			err = fmt.Errorf("EXEC replies %v", v)
		}
		t.round.note(t.number, ticketOp{"back", 0, c}, true, call, t.round.now(), "back at once")
		return err
	}
	for _, k := range at {
		op := ticketOp{what: "back"}
		op.costs[k] = c[k]
		call := t.round.now()
		v, err := t.c.Do("RL.SETTLE", ticketKeys[k], name)
		if err == nil && v.Text != fmt.Sprint(c[k]) {
			err = fmt.Errorf("RL.SETTLE replies %v", v)
		}
		t.round.note(t.number, op, true, call, t.round.now(), "back")
		if err != nil {
			return err
		}
	}
	return nil
}

// TestTicketsLinear has clients ask for several limiters at once, as they wait and as they do not: there is one order of all that happened
// in which nobody is granted anything on a limiter before somebody who waits for it and came before.
func TestTicketsLinear(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 31))
	bin, err := peer.Build()
	if err != nil {
		t.Fatal(err)
	}
	s, err := peer.Start("limitkv", bin, "--dir", t.TempDir(), "--save", "")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Kill()
	const clients, turns, rounds = 5, 25, 8
	admin := s.Dial(t)
	done := map[string]int{}
	for range rounds {
		var capacity costs
		if v, err := admin.Do("FLUSHALL"); err != nil || v.Text != "OK" {
			t.Fatal(v, err)
		}
		for k := range capacity {
			capacity[k] = 1 + int8(r.IntN(2))
			if v, err := admin.Do("RL.SET", ticketKeys[k], "CONC", fmt.Sprint(capacity[k])); err != nil || v.Text != "OK" {
				t.Fatal(v, err)
			}
		}
		round := &ticketRound{began: time.Now(), done: done}
		failed := make(chan error, clients)
		for i := range clients {
			c := &ticketClient{number: i, r: rand.New(rand.NewPCG(r.Uint64(), 1)), c: s.Dial(t), watch: s.Dial(t), capacity: capacity, round: round}
			v, err := c.c.Do("CLIENT", "ID")
			if err != nil {
				t.Fatal(err)
			}
			c.id = v.Text
			go func() {
				defer c.c.Close()
				defer c.watch.Close()
				var err error
				for range turns {
					if err == nil {
						err = c.turn()
					}
				}
				failed <- err
			}()
		}
		for range clients {
			if err := <-failed; err != nil { // also that nothing came for long: somebody waits for ever
				t.Fatal(err)
			}
		}
		model := porcupine.Model{
			Init: func() any { return ticketState{} },
			Step: func(state, input, output any) (bool, any) {
				return state.(ticketState).step(input.(ticketOp), output.(bool), capacity)
			},
		}
		if result := porcupine.CheckOperationsTimeout(model, round.history, 20*time.Second); result != porcupine.Ok {
			t.Fatalf("%s: capacities %v: %d operations have no order that explains them: %v", result, capacity, len(round.history), round.history)
		}
	}
	t.Log(done)
	for _, why := range []string{"granted", "refused", "granted in line", "timed out", "back at once", "back"} {
		if done[why] < rounds {
			t.Errorf("only %d times %s", done[why], why)
		}
	}
}
