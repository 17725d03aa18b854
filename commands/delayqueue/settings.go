package delayqueue

// DQ.SET.

import (
	"bytes"
	"errors"
	"strings"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/delayqueue"
	"github.com/limitkv/limitkv/engine/limiter"
	"github.com/limitkv/limitkv/server/command"
)

func (f *family) setRow() *command.Command {
	dead := command.KeySpec{Flags: command.DeadLetters, Keyword: "DEAD", StartFrom: 2, Step: 1,
		Seek: func(args [][]byte) int { return seekSettings(args).dead }}
	limit := command.KeySpec{Flags: command.Budget, Keyword: "LIMIT", StartFrom: 2, Step: 1,
		Seek: func(args [][]byte) int { return seekSettings(args).limit }}
	return &command.Command{
		Name: "dq.set", Arity: -3, Group: command.GroupDelayQueue, Since: since,
		Flags:      command.Write | command.DenyOOM | command.Fast,
		Keys:       []command.KeySpec{command.Key(1, command.RW|command.Update|command.Insert), dead, limit},
		Summary:    "Sets a delay queue's defaults, which keep it when it is empty.",
		Complexity: "O(1)",
		Syntax:     "key [LEASE ms:integer] [TRIES n:integer] [DEAD dead:key@2] [backoff={BACKOFF ms:integer [MAX max:integer]}] [LIMIT limiter:key@3] [groups={GROUPS [CONC conc:integer] [rule={algorithm=(GCRA | LOG | WINDOW | FIXED) count:integer period:integer [BURST burst:integer]}...]}] [MAXLEN maxlen:integer] [PAUSED paused:integer]",
		Spares:     func(_ *command.Ctx, args [][]byte) bool { return len(args) == 4 && resumes(args[2], args[3]) },
		Run:        f.set,
	}
}

// resumes reports whether an option and its value are PAUSED 0, which lets deliveries continue.
func resumes(option, value []byte) bool {
	return command.EqualFold(option, "PAUSED") && string(value) == "0"
}

// settingsKeys is where the settings name keys: how many arguments are left from there on, 0 if they name none.
type settingsKeys struct{ dead, limit int }

// seekSettings returns the indexes of the keys that the settings name, -1 for a missing one. It reads the options as DQ.SET
// does, because a key may have the name of an option.
func seekSettings(args [][]byte) settingsKeys {
	a := command.ArgsOf(args[min(2, len(args)):]...)
	_, at, _ := readSettings(&a, delayqueue.Settings{})
	for _, left := range []*int{&at.dead, &at.limit} {
		if *left == 0 {
			*left = len(args) + 1
		}
		*left = len(args) - *left
	}
	return at
}

// readSettings reads the options; settings that are not given stay as in s.
func readSettings(a *command.Args, s delayqueue.Settings) (delayqueue.Settings, settingsKeys, string) {
	var at settingsKeys
	var lease, tries, backoff, groups, maxLen, paused bool
	for a.More() {
		switch {
		case !lease && a.IsWith("LEASE", 1):
			lease = true
			s.LeaseMicros = a.IntRange(0, delayMillisMax, errLease) * 1000
		case !tries && a.IsWith("TRIES", 1):
			tries = true
			s.Tries = a.IntRange(0, triesMax, errTries)
		case at.dead == 0 && a.IsWith("DEAD", 1):
			at.dead = a.Left()
			s.Dead = string(a.Bytes())
		case !backoff && a.IsWith("BACKOFF", 1):
			backoff = true
			s.BackoffMicros = a.IntRange(0, delayMillisMax, errBackoff) * 1000
			s.BackoffMaxMicros = max(s.BackoffMicros, backoffMillisMax*1000)
			if a.IsWith("MAX", 1) {
				s.BackoffMaxMicros = a.IntRange(0, delayMillisMax, errBackoff) * 1000
			}
			if s.BackoffMaxMicros < s.BackoffMicros {
				a.Fail(errBackoff)
			}
		case at.limit == 0 && a.IsWith("LIMIT", 1):
			at.limit = a.Left()
			s.Limit = string(a.Bytes())
		case !groups && a.Is("GROUPS"):
			groups = true
			s.GroupConc, s.GroupRules = 0, ""
			if a.IsWith("CONC", 1) {
				s.GroupConc = a.IntRange(0, concMax, errConc)
			}
			s.GroupRules = readRules(a)
		case !maxLen && a.IsWith("MAXLEN", 1):
			maxLen = true
			s.MaxLen = a.IntRange(0, maxLenMax, errMaxLen)
		case !paused && a.IsWith("PAUSED", 1):
			paused = true
			s.Paused = a.IntRange(0, 1, errPaused) == 1
		default:
			a.Syntax()
		}
	}
	return s, at, a.Err()
}

// readRules reads the rules of GROUPS; each group has a limiter with these rules.
func readRules(a *command.Args) string {
	if a.Err() != "" {
		return ""
	}
	words := a.Rest()
	var buf [limiter.RulesMax]limiter.Rule
	_, rest, err := limiter.ParseSome(buf[:0], words)
	text := string(bytes.Join(words[:len(words)-len(rest)], []byte(" ")))
	if err == nil {
		_, err = delayqueue.ParseRules(text)
	}
	*a = command.ArgsOf(rest...)
	switch {
	case errors.Is(err, limiter.ErrLease):
		a.Fail(errGroupRules)
	case err != nil:
		a.Fail("ERR a rule of GROUPS is wrong: " + strings.TrimPrefix(err.Error(), "limiter: "))
	}
	return text
}

func (f *family) set(c *command.Ctx) {
	key := c.Args[1]
	q, ok := lookupWrite(c, key)
	if !ok {
		return
	}
	var was delayqueue.Settings
	if q != nil {
		was = q.Settings()
	}
	a := c.Cursor(2)
	s, _, text := readSettings(&a, was)
	switch {
	case text != "":
	case bytes.Equal([]byte(s.Dead), key):
		text = errOwnDead
	case s.Limit != was.Limit:
		text = checkLimit(c, []byte(s.Limit))
	}
	if text != "" {
		c.Error(text)
		return
	}
	if q == nil {
		q = delayqueue.New()
		c.PutObject(key, engine.KindDelayQueue, q, 0)
	}
	q.Configure(s)
	if s.Limit != was.Limit {
		f.lineLeft(c.KS, c.DB, string(key)) // the waiters are served again
	}
	if c.Logging() {
		w := logged(&c.View, key, wordSet, 10)
		w.Int(s.LeaseMicros)
		w.Int(s.Tries)
		w.Text(s.Dead)
		w.Int(s.BackoffMicros)
		w.Int(s.BackoffMaxMicros)
		w.Int(s.MaxLen)
		w.Int(flag(s.Paused))
		w.Int(s.GroupConc)
		w.Text(s.GroupRules)
		w.Text(s.Limit)
		w.End()
	}
	f.bury(&c.View, key, q, buryBatch)
	rearm(&c.View, key, q) // the limiters of former rules end
	c.Changed(key, engine.EventDelayQueue, "dq.set")
	c.OK()
}
