package hash

// Deadlines of fields: HEXPIRE, HTTL, HPERSIST and their kin.

import (
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/hash"
	"github.com/limitkv/limitkv/server/command"
)

// Replies for a field.
const (
	noField   = -2
	noTTL     = -1
	unmet     = 0 // the condition is not met
	done      = 1
	deletedAt = 2 // the time has passed, so the field is deleted
)

// deadlineMax is the last deadline that Redis lets a field have, in Unix ms.
const deadlineMax = 1<<46 - 1

const errFieldsWord = "ERR Mandatory argument FIELDS is missing or not at the right position"

// parseTime reads a time to live, or a time, as Unix milliseconds.
func parseTime(a *command.Args, c *command.Ctx, seconds, absolute bool) int64 {
	at := a.Int()
	base := int64(0)
	if !absolute {
		base = c.Now / 1000
	}
	switch {
	case a.Err() != "":
		return 0
	case at < 0:
		a.Fail("ERR invalid expire time, must be >= 0")
	case seconds && at > deadlineMax/1000:
		a.Fail(command.ErrInvalidExpire(c.Cmd.FullName()))
	default:
		if seconds {
			at *= 1000
		}
		if at > deadlineMax-base {
			a.Fail(command.ErrInvalidExpire(c.Cmd.FullName()))
		}
	}
	return at + base
}

// parseFields reads FIELDS numfields field ..., to the end of the arguments.
func parseFields(a *command.Args, wrongNumber string) [][]byte {
	if !a.Is("FIELDS") {
		a.Fail(errFieldsWord)
	}
	n := a.IntOr(wrongNumber)
	if a.Err() == "" && n < 1 {
		a.Fail(wrongNumber)
	}
	if a.Err() == "" && n != int64(a.Left()) {
		a.Fail("ERR The `numfields` parameter must match the number of arguments")
	}
	return a.Rest()
}

// errFieldCount is the error for a number of fields that is none.
const errFieldCount = "ERR Number of fields must be a positive integer"

// condition is when a field's deadline may be changed.
type condition uint8

const (
	always condition = iota
	ifNone
	ifAny
	ifLater
	ifEarlier
)

func parseCondition(a *command.Args) condition {
	switch {
	case a.Is("NX"):
		return ifNone
	case a.Is("XX"):
		return ifAny
	case a.Is("GT"):
		return ifLater
	case a.Is("LT"):
		return ifEarlier
	}
	return always
}

// met reports whether a deadline may replace the current one; 0 is none and counts as infinitely far.
func (k condition) met(current, at int64) bool {
	switch k {
	case ifNone:
		return current == 0
	case ifAny:
		return current != 0
	case ifLater:
		return current != 0 && at > current
	case ifEarlier:
		return current == 0 || at < current
	}
	return true
}

// setDeadline gives a field a deadline and returns the reply for it.
func setDeadline(c *command.Ctx, h *hash.Hash, field []byte, at int64, k condition) int {
	current, ok := h.Deadline(field)
	switch {
	case !ok:
		return noField
	case !k.met(current, at):
		return unmet
	case c.Past(at):
		h.Delete(field)
		c.Effect([]byte("HDEL"), c.Args[1], field)
		return deletedAt
	}
	h.SetDeadline(field, at)
	return done
}

func expireRow(name, syntax, summary string, seconds, absolute bool) *command.Command {
	return &command.Command{
		Name: name, Arity: -6, Group: command.GroupHash, Since: "7.4.0",
		Flags:      command.Write | command.Fast,
		ACL:        hashACL,
		Keys:       []command.KeySpec{command.Key(1, updateKey)},
		Summary:    summary,
		Complexity: "O(N) in the number of fields named",
		Syntax:     "key " + syntax + " [condition=(NX | XX | GT | LT)] FIELDS fields={numfields:integer field:string...}",
		Run:        func(c *command.Ctx) { expire(c, seconds, absolute) },
	}
}

var expireRows = []*command.Command{
	expireRow("hexpire", "seconds:integer", "Lets fields live for some seconds.", true, false),
	expireRow("hpexpire", "milliseconds:integer", "Lets fields live for some milliseconds.", false, false),
	expireRow("hexpireat", "unix-time-seconds:unix-time", "Lets fields live until a time in seconds.", true, true),
	expireRow("hpexpireat", "unix-time-milliseconds:unix-time", "Lets fields live until a time in milliseconds.", false, true),
}

func expire(c *command.Ctx, seconds, absolute bool) {
	key := c.Args[1]
	h, ok := lookupWrite(c, key)
	if !ok {
		return
	}
	a := c.Cursor(2)
	at := parseTime(&a, c, seconds, absolute)
	k := parseCondition(&a)
	fields := parseFields(&a, "ERR Parameter `numFields` should be greater than 0")
	if a.Failed(c) {
		return
	}
	c.Array(len(fields))
	if h == nil {
		for range fields {
			c.Int(noField)
		}
		return
	}
	h.PrepareDeadlines()
	var updated, deleted int
	var set [][]byte
	for _, field := range fields {
		r := setDeadline(c, h, field, at, k)
		switch r {
		case done:
			if updated++; c.Logging() {
				set = append(set, field)
			}
		case deletedAt:
			deleted++
		}
		c.Int(int64(r))
	}
	if updated+deleted > 0 {
		deadlinesChanged(c, key)
		event := "hexpire"
		if deleted > 0 {
			event = "hdel"
		}
		c.Changed(key, engine.EventHash, event)
	} else {
		c.StoreEdit() // its form has changed
	}
	if len(set) > 0 {
		args := append([][]byte{[]byte("HPEXPIREAT"), key, command.Number(at)}, c.Args[3:len(c.Args)-len(fields)-1]...)
		c.Effect(append(append(args, command.Number(int64(len(set)))), set...)...)
	}
	dropEmpty(c, key, h)
}

// fieldReply replies a number for each field of a hash, and noField for missing ones. each returns the number of a field that
// exists.
func fieldReply(c *command.Ctx, h *hash.Hash, fields [][]byte, each func(field []byte, deadline int64) int64) {
	c.Array(len(fields))
	for _, field := range fields {
		deadline, ok := int64(0), false
		if h != nil {
			deadline, ok = h.Deadline(field)
		}
		if !ok {
			c.Int(noField)
		} else {
			c.Int(each(field, deadline))
		}
	}
}

func ttlRow(name, summary string, tips []string, show func(at, now int64) int64) *command.Command {
	return &command.Command{
		Name: name, Arity: -5, Group: command.GroupHash, Since: "7.4.0",
		Flags:      fastRead,
		ACL:        hashACL,
		Keys:       []command.KeySpec{command.Key(1, readKey)},
		Summary:    summary,
		Complexity: "O(N) in the number of fields named",
		Tips:       tips,
		Syntax:     "key FIELDS fields={numfields:integer field:string...}",
		Run: func(c *command.Ctx) {
			h, ok := lookup(c, c.Args[1])
			if !ok {
				return
			}
			a := c.Cursor(2)
			fields := parseFields(&a, errFieldCount)
			if a.Failed(c) {
				return
			}
			fieldReply(c, h, fields, func(_ []byte, at int64) int64 {
				if at == 0 {
					return noTTL
				}
				return show(at, c.Now/1000)
			})
		},
	}
}

var varies = []string{"nondeterministic_output"}

// ceilSeconds rounds milliseconds up to seconds.
func ceilSeconds(millis int64) int64 { return (millis + 999) / 1000 }

var ttlRows = []*command.Command{
	ttlRow("httl", "Returns for how many seconds fields will live.", varies,
		func(at, now int64) int64 { return ceilSeconds(at - now) }),
	ttlRow("hpttl", "Returns for how many milliseconds fields will live.", varies,
		func(at, now int64) int64 { return at - now }),
	ttlRow("hexpiretime", "Returns until when fields will live, in seconds.", nil,
		func(at, now int64) int64 { return ceilSeconds(at) }),
	ttlRow("hpexpiretime", "Returns until when fields will live, in milliseconds.", nil,
		func(at, now int64) int64 { return at }),
}

var hpersistRow = &command.Command{
	Name: "hpersist", Arity: -5, Group: command.GroupHash, Since: "7.4.0",
	Flags:      command.Write | command.Fast,
	ACL:        hashACL,
	Keys:       []command.KeySpec{command.Key(1, updateKey)},
	Summary:    "Lets fields live for ever.",
	Complexity: "O(N) in the number of fields named",
	Syntax:     "key FIELDS fields={numfields:integer field:string...}",
	Run:        hpersist,
}

func hpersist(c *command.Ctx) {
	key := c.Args[1]
	h, ok := lookupWrite(c, key)
	if !ok {
		return
	}
	a := c.Cursor(2)
	fields := parseFields(&a, errFieldCount)
	if a.Failed(c) {
		return
	}
	changed := false
	fieldReply(c, h, fields, func(field []byte, at int64) int64 {
		if at == 0 {
			return noTTL
		}
		h.SetDeadline(field, 0)
		changed = true
		return done
	})
	if changed {
		deadlinesChanged(c, key)
		c.Changed(key, engine.EventHash, "hpersist")
	}
}
