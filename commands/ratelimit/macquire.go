package ratelimit

// RL.MACQUIRE: several limiters, all or nothing.

import (
	"bytes"

	"github.com/limitkv/limitkv/commands/budget"
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/limiter"
	"github.com/limitkv/limitkv/server/command"
)

func (f *family) macquireRow() *command.Command {
	keys := withShared(command.NumKeys(1, writeKey|command.Insert))
	keys.Step = 2
	return &command.Command{
		Name: "rl.macquire", Arity: -4, Group: command.GroupLimiter, Since: since,
		Flags:      fastWrite | command.Blocking,
		Keys:       []command.KeySpec{keys},
		Summary:    "Takes costs from several limiters, from all of them or from none.",
		Complexity: "O(N) in the number of limiters",
		Syntax:     "numkeys:integer data={key cost:integer}... [mode=(PEEK | FORCE)] [KEEP keep:integer] [name={ID id:string [LEASE lease:integer]}] [BLOCK ms:integer] [EACH] [rules={RULE k:integer rule=" + limiter.Syntax() + "}...]",
		Looks: func(args [][]byte) bool {
			if !says(args, "PEEK") {
				return false
			}
			a := command.ArgsOf(args[min(1, len(args)):]...)
			m, text := f.readSeveral(&a)
			return text == "" && m.mode == limiter.Peek
		},
		Run: f.macquire,
	}
}

// keyCost is one limiter of RL.MACQUIRE. A key that is named twice has its
// costs added up.
type keyCost struct {
	key   []byte
	index int // of its first mention
	cost  int64
	rules []limiter.Rule
	limiter.Decision
}

// several is what RL.MACQUIRE's arguments say.
type several struct {
	request
	list []keyCost
	at   []int // the index in list of the k-th key
	// places maps each key to its index in list; it is nil for few keys.
	places map[string]int
	// w is the wait, nil before it begins. last is the limiter that refused last.
	w    *command.Wait
	last *keyCost
}

const (
	errNumKeys = "ERR numkeys should be greater than 0"
	errRuleKey = "ERR RULE is for one of the keys, counted from 1, and at most once for each"
)

// readKeys reads the keys and their costs.
func (m *several) readKeys(a *command.Args) {
	n := a.IntOr(errNumKeys)
	if a.Err() == "" && n <= 0 {
		a.Fail(errNumKeys)
	}
	if n > int64(a.Left()/2) {
		a.Syntax()
	}
	m.list = make([]keyCost, 0, max(0, min(n, int64(a.Left()/2))))
	for i := 0; a.Err() == "" && i < int(n); i++ {
		key, cost := a.Bytes(), a.Int()
		if a.Err() == "" && (cost < 0 || cost > limiter.CountMax) {
			a.Fail(errCost)
		}
		at, known := m.find(key)
		if known {
			m.list[at].cost += cost
		} else {
			m.list = append(m.list, keyCost{key: key, index: i, cost: cost})
			if m.places != nil {
				m.places[string(key)] = at
			}
		}
		m.at = append(m.at, at)
	}
}

// fewKeys is the number of keys up to which a linear search is faster than a map.
const fewKeys = 16

// find returns the index of a key in list, or the index that a new key gets.
func (m *several) find(key []byte) (at int, known bool) {
	if len(m.list) <= fewKeys {
		for i := range m.list {
			if bytes.Equal(m.list[i].key, key) {
				return i, true
			}
		}
		return len(m.list), false
	}
	if m.places == nil {
		m.places = make(map[string]int, cap(m.list))
		for i := range m.list {
			m.places[string(m.list[i].key)] = i
		}
	}
	if at, known = m.places[string(key)]; !known {
		at = len(m.list)
	}
	return at, known
}

// readRules reads RULE k rule... up to the end.
func (m *several) readRules(a *command.Args) (text string) {
	for a.Is("RULE") {
		k := a.IntOr(errRuleKey)
		if a.Err() == "" && (k < 1 || k > int64(len(m.at)) || m.list[m.at[k-1]].rules != nil) {
			a.Fail(errRuleKey)
		}
		if a.Err() != "" {
			return a.Err()
		}
		rules, rest, err := limiter.ParseSome(nil, a.Rest())
		if err != nil {
			return textOf(err)
		}
		if len(rules) == 0 {
			return command.ErrSyntax
		}
		m.list[m.at[k-1]].rules = rules
		*a = command.ArgsOf(rest...)
	}
	if a.More() {
		a.Syntax()
	}
	return a.Err()
}

func (f *family) readSeveral(a *command.Args) (m *several, text string) {
	m = &several{}
	m.f, m.block, m.several = f, -1, true
	m.readKeys(a)
	if a.Is("ATMOST") {
		a.Syntax() // taking a part from each limiter makes no sense
	}
	m.readOptions(a)
	if text = a.Err(); text == "" {
		text = m.readRules(a)
	}
	for _, k := range m.list {
		if text == "" && k.cost > limiter.CountMax {
			text = errCapacity
		}
	}
	return m, text
}

func (f *family) macquire(c *command.Ctx) {
	a := c.Cursor(1)
	m, text := f.readSeveral(&a)
	if text != "" {
		c.Error(text)
		return
	}
	m.waits = m.block >= 0 && c.CanBlock()
	limited, text := m.decide(c)
	switch {
	case text != "":
		c.Error(text)
	case limited != nil && m.waits:
		m.wait(c, limited)
	default:
		m.reply(c, limited)
	}
}

// of returns the call on one of the limiters.
func (m *several) of(k *keyCost, mode limiter.Mode) call {
	q := m.call
	q.cost, q.mode, q.rules = k.cost, mode, k.rules
	q.served = m.w != nil
	return q
}

// decide decides on all limiters, and takes from all if none refuses. It returns the limiter that refuses; if several
// refuse, the one with the longest wait.
func (m *several) decide(c *command.Ctx) (limited *keyCost, text string) {
	for i := range m.list {
		k := &m.list[i]
		if text = m.look(c, k); text != "" {
			return nil, text
		}
		if k.Limited && (limited == nil || longer(k, limited)) {
			limited = k
		}
	}
	switch {
	case m.mode == limiter.Peek:
	case limited == nil:
		for i := range m.list {
			k := &m.list[i]
			q := m.of(k, m.mode)
			q.served, q.waits = true, false // look has granted it already, so the line is not checked again
			if k.Decision, text = q.on(m.f, c, k.key, c.GetLimiter(k.key)); text != "" {
				return nil, text
			}
		}
	default:
		for i := range m.list {
			if k := &m.list[i]; k.Limited {
				m.refused(c, k)
			}
		}
	}
	return limited, ""
}

// refused counts a refusal. As in Redisson's script, a refusal changes a Redisson limiter too.
func (m *several) refused(c *command.Ctx, k *keyCost) {
	e := c.GetLimiter(k.key)
	switch {
	case e.Kind() == engine.KindHash:
		q := m.of(k, m.mode)
		m.f.decideShared(c, k.key, &q)
	case !m.waits:
		if e.Ok() && !c.Idle(e) {
			c.CountRefused(e)
		}
		m.f.count(c, k.key, true)
	}
}

// longer reports whether the wait for a is longer than that for b. An unknown wait is the longest.
func longer(a, b *keyCost) bool {
	return b.RetryAfterMicros >= 0 && (a.RetryAfterMicros < 0 || a.RetryAfterMicros > b.RetryAfterMicros)
}

// look decides on one limiter without changing anything.
func (m *several) look(c *command.Ctx, k *keyCost) (text string) {
	e := find(c, k.key)
	if n := budget.NamedOf(e); n != nil && m.id != nil {
		if d, ok := n.Find(m.id, c.Now, 0); ok {
			k.Decision = d
			return ""
		}
		if !n.Room(k.cost) {
			return errNamed
		}
	}
	q := m.of(k, limiter.Peek)
	if k.Decision, text = q.on(m.f, c, k.key, e); text != "" && (text != errCapacity || m.mode != limiter.Force) || m.mode == limiter.Peek {
		return text
	}
	if e.Kind() == engine.KindHash { // PEEK knows everything here, except that FORCE always takes
		k.Limited = k.Limited && m.mode != limiter.Force
		return text
	}
	return m.dry(c, k)
}

// dry checks what PEEK cannot: whether CONC needs a lease, and whether FORCE fits.
func (m *several) dry(c *command.Ctx, k *keyCost) (text string) {
	e := c.GetLimiter(k.key)
	q := m.of(k, limiter.Force)
	p, _, _ := q.define(c, e)
	if m.lease == 0 && k.cost > 0 && limiter.NeedsLease(p) {
		return errLease
	}
	if m.mode != limiter.Force {
		return ""
	}
	_, d, err := q.ask(c, bytes.Clone(p), budget.NamedOf(e), k.cost, limiter.Force)
	if err != nil {
		return textOf(err)
	}
	k.Decision = d
	return ""
}

// reply replies the decision of the refusing limiter with the longest wait or, if all is granted, of the limiter with
// the least remaining. Then it replies the index of the refusing limiter among the arguments, -1 if all is granted.
// With EACH it replies the decision of each limiter, in the order of the arguments. If one refuses, nothing is taken
// from any.
func (m *several) reply(c *command.Ctx, limited *keyCost) {
	if m.each {
		c.Writer.Array(len(m.at))
		for _, i := range m.at {
			c.Writer.Array(5)
			replyDecision(c.Writer, m.list[i].Decision, limiter.CeilMillis)
		}
		return
	}
	best := limited
	if best == nil {
		best = &m.list[0]
		for i := range m.list {
			if k := &m.list[i]; k.Remaining < best.Remaining {
				best = k
			}
		}
	}
	replySeveral(c.Writer, best.Decision, limited)
}

func replySeveral(w command.Replier, d limiter.Decision, limited *keyCost) {
	index := int64(-1)
	if limited != nil {
		index = int64(limited.index)
	}
	w.Array(6)
	replyDecision(w, d, limiter.CeilMillis)
	w.Int(index)
}

// wait puts the caller in the lines of all limiters at once, under the locks of all. So two callers that share
// limiters have the same order in all shared lines, and never wait for each other. The wait has its own copy of the
// arguments.
func (m *several) wait(c *command.Ctx, limited *keyCost) {
	w := c.NewWait(nil, engine.KindLimiter, m.deadline(c))
	a := command.ArgsOf(w.Args[1:]...)
	own, _ := m.f.readSeveral(&a)
	own.waits, own.late, own.w = true, true, w
	w.Trier = own
	for i := range own.list {
		k := &own.list[i]
		w.Keys, w.Weights = append(w.Keys, k.key), append(w.Weights, k.cost)
		if k.index == limited.index {
			own.last = k
		}
	}
	w.Also = w.Keys
	w.Lapsed = func(out command.Replier) {
		k := own.last
		q := own.call
		q.cost = k.cost
		replySeveral(out, own.lapsed(w, k.key, &q), k)
	}
	c.Block(w)
	if limited.RetryAfterMicros >= 0 && own.behind(c) == nil {
		c.Alarm(limited.key, retryAt(c, limited.Decision))
	}
}

// behind returns a limiter in whose line others are before the caller, nil if the caller is first in all lines.
// Shadow limiters are skipped.
func (m *several) behind(c *command.Ctx) *keyCost {
	for i := range m.list {
		if k := &m.list[i]; !c.First(k.key, &m.w.Waiter) && !isShadow(c, k.key) {
			return k
		}
	}
	return nil
}

// isShadow reports whether the limiter under a key is a shadow, which refuses nothing.
func isShadow(c *command.Ctx, key []byte) bool {
	e := c.GetLimiter(key)
	if e.Kind() != engine.KindLimiter {
		return false
	}
	shadow, _ := limiter.Shadow(e.Bytes(nil))
	return shadow
}

// Try tries all limiters when the line of one of them is served, but only if the caller is first in all its lines.
// Until all limiters grant the call, the callers behind it wait. Otherwise others could take from the limiters in
// turn, and the caller would wait forever. Whenever a caller leaves a line, those behind it are tried, so nobody is
// forgotten.
func (m *several) Try(c *command.Ctx, key []byte) (engine.Served, int64) {
	refused := engine.ServedHold
	if isShadow(c, key) {
		refused = engine.ServedSkip
	}
	if k := m.behind(c); k != nil {
		m.last = k
		return refused, 0
	}
	limited, text := m.decide(c)
	switch {
	case text != "":
		c.Error(text)
	case limited != nil:
		m.last = limited
		return refused, retryAt(c, limited.Decision)
	default:
		m.reply(c, nil)
	}
	return engine.ServedDone, 0
}
