package str

// Writing whole strings, with or without a time to live.

import (
	"math"
	"slices"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/server/command"
)

// options are the options of SET and GETEX.
type options struct {
	nx, xx, get, keepTTL, persist bool
	expiry                        expiry
	hasExpiry                     bool
}

// expiry is a time to live or a deadline, as given.
type expiry struct {
	arg      []byte
	seconds  bool
	absolute bool
}

// millis is the deadline in Unix milliseconds. It replies the error if there
// is one.
func (x expiry) millis(c *command.Ctx) (at int64, ok bool) {
	a := command.ArgsOf(x.arg)
	n := a.Int()
	if a.Failed(c) {
		return 0, false
	}
	if n > 0 && x.seconds {
		if n > math.MaxInt64/1000 {
			n = -1
		} else {
			n *= 1000
		}
	}
	if n > 0 && !x.absolute {
		n += c.Now / 1000 // may wrap to a negative number
	}
	if n <= 0 {
		c.Error(command.ErrInvalidExpire(c.Cmd.FullName()))
		return 0, false
	}
	return n, true
}

// parseOptions reads SET's options, or GETEX's.
func parseOptions(c *command.Ctx, from int, set bool) (o options, ok bool) {
	a := c.Cursor(from)
	var unit string
	for a.More() {
		switch {
		case set && !o.xx && a.Is("NX"):
			o.nx = true
		case set && !o.nx && a.Is("XX"):
			o.xx = true
		case set && a.Is("GET"):
			o.get = true
		case set && !o.hasExpiry && a.Is("KEEPTTL"):
			o.keepTTL = true
		case !set && !o.hasExpiry && a.Is("PERSIST"):
			o.persist = true
		default:
			word := expiryWord(&a)
			if word == "" || o.keepTTL || o.persist || unit != "" && unit != word {
				a.Syntax()
				break
			}
			unit = word
			o.hasExpiry = true
			o.expiry = expiry{arg: a.Bytes(), seconds: word[0] == 'E', absolute: len(word) > 2}
		}
	}
	return o, !a.Failed(c)
}

// expiryWord takes EX, PX, EXAT or PXAT if a value follows.
func expiryWord(a *command.Args) string {
	for _, w := range [...]string{"EX", "PX", "EXAT", "PXAT"} {
		if a.IsWith(w, 1) {
			return w
		}
	}
	return ""
}

// setKeyFlags are the flags of SET's key: SET reads the key only if GET is among the options.
func setKeyFlags(args [][]byte, _ int) command.KeyFlags {
	for _, a := range args[3:] {
		if command.EqualFold(a, "GET") {
			return command.RW | command.Access | command.Update
		}
	}
	return command.OW | command.Update
}

var setRow = &command.Command{
	Name: "set", Arity: -3, Group: command.GroupString, Since: "1.0.0",
	Flags:      command.Write | command.DenyOOM,
	ACL:        stringACL,
	Keys:       []command.KeySpec{{Flags: updateKey | command.VariableFlags, Index: 1, Step: 1, Notes: "RW and ACCESS due to the optional `GET` argument"}},
	Summary:    "Stores a string, whatever the key held before.",
	Complexity: "O(1)",
	KeyFlags:   setKeyFlags,
	Syntax:     "key value:string [condition=(NX | XX)] [GET] [expiration=(EX seconds:integer | PX milliseconds:integer | EXAT unix-time-seconds:unix-time | PXAT unix-time-milliseconds:unix-time | KEEPTTL)]",
	Run: func(c *command.Ctx) {
		if len(c.Args) == 3 { // the commonest form
			store(c, c.Args[2], 0)
			c.OK()
			return
		}
		if o, ok := parseOptions(c, 3, true); ok {
			set(c, c.Args[2], o)
		}
	},
}

// set is SET with options.
func set(c *command.Ctx, value []byte, o options) {
	var deadline int64
	if o.hasExpiry {
		var ok bool
		if deadline, ok = o.expiry.millis(c); !ok {
			return
		}
	}
	if !c.Owns(value) {
		c.ExpectBytes(len(value))
	}
	key := c.Args[1]
	var e engine.Entry
	if !o.get {
		e = c.GetWrite(key)
	} else {
		e = c.Get(key)
		if e.Ok() && e.Kind() != engine.KindString {
			c.WrongType()
			return
		}
		replyString(c, e)
	}
	if o.nx && e.Ok() || o.xx && !e.Ok() {
		if !o.get {
			c.Null()
		}
		return
	}
	if o.keepTTL {
		deadline = e.Deadline()
	}
	store(c, value, deadline)
	if o.hasExpiry {
		c.Notify(engine.EventGeneric, "expire", key)
	}
	if c.Logging() {
		logSet(c, value, deadline, o)
	}
	if !o.get {
		c.OK()
	}
}

// logSet logs the effect of SET, with an absolute deadline and without GET.
func logSet(c *command.Ctx, value []byte, deadline int64, o options) {
	switch {
	case o.hasExpiry && !(o.expiry.absolute && !o.expiry.seconds):
		c.Effect([]byte("SET"), c.Args[1], value, []byte("PXAT"), command.Number(deadline))
	case !o.hasExpiry && o.get:
		args := slices.Clone(c.Args[:3])
		for _, a := range c.Args[3:] {
			if !command.EqualFold(a, "GET") {
				args = append(args, a)
			}
		}
		c.Effect(args...)
	}
}

// put stores an argument as a string.
func put(c *command.Ctx, key, value []byte, deadline int64) {
	if c.Owns(value) {
		c.TakeString(key, value, deadline)
	} else {
		c.PutString(key, value, deadline)
	}
}

// store puts a value under the first key.
func store(c *command.Ctx, value []byte, deadline int64) {
	put(c, c.Args[1], value, deadline)
	c.Changed(c.Args[1], engine.EventString, "set")
}

var setnxRow = &command.Command{
	Name: "setnx", Arity: 3, Group: command.GroupString, Since: "1.0.0",
	Flags:           fastWrite,
	ACL:             stringACL,
	Keys:            []command.KeySpec{command.Key(1, command.OW|command.Insert)},
	Summary:         "Stores a string if the key is missing.",
	Complexity:      "O(1)",
	Syntax:          "key value:string",
	DeprecatedSince: "2.6.12", ReplacedBy: "`SET` with the `NX` argument",
	Run: func(c *command.Ctx) {
		if c.GetWrite(c.Args[1]).Ok() {
			c.Int(0)
			return
		}
		store(c, c.Args[2], 0)
		c.Int(1)
	},
}

var setexRow = &command.Command{
	Name: "setex", Arity: 4, Group: command.GroupString, Since: "2.0.0",
	Flags:           command.Write | command.DenyOOM,
	ACL:             stringACL,
	Keys:            []command.KeySpec{command.Key(1, command.OW|command.Update)},
	Summary:         "Stores a string for some seconds.",
	Complexity:      "O(1)",
	Syntax:          "key seconds:integer value:string",
	DeprecatedSince: "2.6.12", ReplacedBy: "`SET` with the `EX` argument",
	Run: func(c *command.Ctx) { setex(c, true) },
}

var psetexRow = &command.Command{
	Name: "psetex", Arity: 4, Group: command.GroupString, Since: "2.6.0",
	Flags:           command.Write | command.DenyOOM,
	ACL:             stringACL,
	Keys:            []command.KeySpec{command.Key(1, command.OW|command.Update)},
	Summary:         "Stores a string for some milliseconds.",
	Complexity:      "O(1)",
	Syntax:          "key milliseconds:integer value:string",
	DeprecatedSince: "2.6.12", ReplacedBy: "`SET` with the `PX` argument",
	Run: func(c *command.Ctx) { setex(c, false) },
}

func setex(c *command.Ctx, seconds bool) {
	set(c, c.Args[3], options{hasExpiry: true, expiry: expiry{arg: c.Args[2], seconds: seconds}})
}

var getsetRow = &command.Command{
	Name: "getset", Arity: 3, Group: command.GroupString, Since: "1.0.0",
	Flags:           fastWrite,
	ACL:             stringACL,
	Keys:            []command.KeySpec{command.Key(1, updateKey)},
	Summary:         "Stores a string and returns the former one.",
	Complexity:      "O(1)",
	Syntax:          "key value:string",
	DeprecatedSince: "6.2.0", ReplacedBy: "`SET` with the `!GET` argument",
	Run: func(c *command.Ctx) {
		e, ok := c.Lookup(c.Args[1], engine.KindString)
		if !ok {
			return
		}
		replyString(c, e)
		store(c, c.Args[2], 0)
		c.Effect([]byte("SET"), c.Args[1], c.Args[2])
	},
}

var getdelRow = &command.Command{
	Name: "getdel", Arity: 2, Group: command.GroupString, Since: "6.2.0",
	Flags:      command.Write | command.Fast,
	ACL:        stringACL,
	Keys:       []command.KeySpec{command.Key(1, command.RW|command.Access|command.Delete)},
	Summary:    "Returns the value of a string and deletes the key.",
	Complexity: "O(1)",
	Syntax:     "key",
	Run: func(c *command.Ctx) {
		e, ok := c.Lookup(c.Args[1], engine.KindString)
		if !ok {
			return
		}
		replyString(c, e)
		if e.Ok() {
			c.Delete(c.Args[1])
			c.Changed(c.Args[1], engine.EventGeneric, "del")
			c.Effect([]byte("DEL"), c.Args[1])
		}
	},
}

var getexRow = &command.Command{
	Name: "getex", Arity: -2, Group: command.GroupString, Since: "6.2.0",
	Flags:      command.Write | command.Fast,
	ACL:        stringACL,
	Keys:       []command.KeySpec{{Flags: updateKey, Index: 1, Step: 1, Notes: "RW and UPDATE because it changes the TTL"}},
	Summary:    "Returns the value of a string and changes its time to live.",
	Complexity: "O(1)",
	Syntax:     "key [expiration=(EX seconds:integer | PX milliseconds:integer | EXAT unix-time-seconds:unix-time | PXAT unix-time-milliseconds:unix-time | PERSIST)]",
	Run:        getex,
}

func getex(c *command.Ctx) {
	o, ok := parseOptions(c, 2, false)
	if !ok {
		return
	}
	key := c.Args[1]
	e, ok := c.Lookup(key, engine.KindString)
	if !ok {
		return
	}
	if !e.Ok() {
		c.Null()
		return
	}
	var deadline int64
	if o.hasExpiry {
		if deadline, ok = o.expiry.millis(c); !ok {
			return
		}
	}
	replyString(c, e)
	switch {
	case o.hasExpiry && c.Past(deadline):
		c.Delete(key)
		c.Changed(key, engine.EventGeneric, "del")
		c.EffectGone(key)
	case o.hasExpiry:
		c.SetDeadline(e, deadline)
		c.Changed(key, engine.EventGeneric, "expire")
		c.EffectNumber("PEXPIREAT", key, deadline)
	case o.persist && e.Deadline() != 0:
		c.SetDeadline(e, 0)
		c.Changed(key, engine.EventGeneric, "persist")
		c.Effect([]byte("PERSIST"), key)
	}
}

var msetRow = &command.Command{
	Name: "mset", Arity: -3, Group: command.GroupString, Since: "1.0.1",
	Flags:      command.Write | command.DenyOOM,
	ACL:        stringACL,
	Keys:       []command.KeySpec{command.KeyRange(1, -1, 2, command.OW|command.Update)},
	Summary:    "Stores several strings at once.",
	Complexity: "O(N) in the number of keys",
	Tips:       []string{"request_policy:multi_shard", "response_policy:all_succeeded"},
	Syntax:     "data={key value:string}...",
	Run:        func(c *command.Ctx) { mset(c, false) },
}

var msetnxRow = &command.Command{
	Name: "msetnx", Arity: -3, Group: command.GroupString, Since: "1.0.1",
	Flags:      command.Write | command.DenyOOM,
	ACL:        stringACL,
	Keys:       []command.KeySpec{command.KeyRange(1, -1, 2, command.OW|command.Insert)},
	Summary:    "Stores several strings at once if all the keys are missing.",
	Complexity: "O(N) in the number of keys",
	Syntax:     "data={key value:string}...",
	Run:        func(c *command.Ctx) { mset(c, true) },
}

func mset(c *command.Ctx, nx bool) {
	pairs := c.Args[1:]
	if len(pairs)%2 != 0 {
		c.Error(command.ErrArity(c.Cmd.FullName()))
		return
	}
	if nx {
		for i := 0; i < len(pairs); i += 2 {
			if c.GetWrite(pairs[i]).Ok() {
				c.Int(0)
				return
			}
		}
	}
	for i := 0; i < len(pairs); i += 2 {
		put(c, pairs[i], pairs[i+1], 0)
		c.Changed(pairs[i], engine.EventString, "set")
	}
	if nx {
		c.Int(1)
	} else {
		c.OK()
	}
}
