package peer

// Prover has a server prove, while clients work with it, that the effects it logs make the same keys of nothing: again and again
// it applies what was logged to a copy and compares all keys, which LKV.JOURNAL does for a server with --test. The recorded
// conversations and the random sequences ask for it after each step; this is for programs that know nothing of it.

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Prover looks at one server.
type Prover struct {
	addr, password string
	conn           *Conn

	// Checks is how often the keys were compared, Effects of how many commands.
	Checks, Effects int
}

const (
	// every is how long it waits between two checks at least, rarely if nothing happens, share how many times as long as
	// the last one took.
	every  = 20 * time.Millisecond
	rarely = 300 * time.Millisecond
	share  = 1
	// proofPatience is how long an answer may take: the server may be at work on what a client asked for.
	proofPatience = 2 * time.Minute
	// shownEffects and shownBytes are how much is told of the effects since the last check that went well.
	shownEffects, shownBytes = 40, 200
)

// ErrEnded says that the server does not answer any more.
var ErrEnded = errors.New("the server has ended")

// Prove has a server that has no keys yet begin. password is that of its default user, if any.
func Prove(addr, password string) (*Prover, error) {
	p := &Prover{addr: addr, password: password}
	v, err := p.ask("LKV.JOURNAL", "START")
	if err == nil && v.IsError() {
		err = fmt.Errorf("LKV.JOURNAL START: %v", v)
	}
	return p, err
}

// ask sends a command, again where the connection was ended, which clients may do to all, and where a script of theirs has
// the server busy.
func (p *Prover) ask(args ...string) (Value, error) {
	for end := time.Now().Add(proofPatience); ; time.Sleep(every) {
		if p.conn == nil {
			conn, err := Dial(p.addr)
			if err != nil {
				return Value{}, ErrEnded
			}
			if p.conn = conn; p.password != "" {
				_ = conn.Send("AUTH", p.password)
				_, _ = conn.Receive() // what is wrong with it shows at once
			}
		}
		err := p.conn.Send(args...)
		var v Value
		if err == nil {
			v, err = p.conn.ReceiveWithin(proofPatience)
		}
		if err == nil && !strings.HasPrefix(v.Text, "BUSY ") {
			return v, nil
		}
		if err != nil {
			p.conn.Close()
			p.conn = nil
		}
		if time.Now().After(end) {
			return v, fmt.Errorf("%v: no answer: %v %w", args, v, err)
		}
	}
}

// Check compares once. It returns what is not so, or ErrEnded.
func (p *Prover) Check() error {
	v, err := p.ask("LKV.JOURNAL", "TAKE")
	if err == nil && v.IsError() {
		err = fmt.Errorf("LKV.JOURNAL TAKE: %v", v)
	}
	if err != nil {
		return err
	}
	p.Effects += len(v.Items)
	checked, err := p.ask("LKV.JOURNAL", "CHECK")
	if err != nil {
		return err
	}
	p.Checks++
	if !checked.IsError() {
		return nil
	}
	var b strings.Builder
	for _, effect := range v.Items[max(0, len(v.Items)-shownEffects):] {
		text := effect.String()
		fmt.Fprintf(&b, "\n    %s", text[:min(len(text), shownBytes)])
	}
	return fmt.Errorf("%v, after about these effects: %s", checked, b.String())
}

// Run compares again and again until stop is closed, and then once more. It returns what the first comparison that failed
// said.
func (p *Prover) Run(stop <-chan struct{}) error {
	wait := every
	for last := false; ; {
		began, effects := time.Now(), p.Effects
		if err := p.Check(); err != nil || last {
			return err
		}
		if wait = min(2*wait, rarely); p.Effects > effects {
			wait = every
		}
		select {
		case <-stop:
			last = true
		case <-time.After(max(wait, share*time.Since(began))):
		}
	}
}
