package str

// Reading strings, whole and in part.

import (
	"slices"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/server/command"
)

var getRow = &command.Command{
	Name: "get", Arity: 2, Group: command.GroupString, Since: "1.0.0",
	Flags:      command.ReadOnly | command.Fast,
	ACL:        stringACL,
	Keys:       []command.KeySpec{command.Key(1, readKey)},
	Summary:    "Returns the value of a string.",
	Complexity: "O(1)",
	Syntax:     "key",
	Run:        get,
}

func get(c *command.Ctx) {
	if e, ok := c.Lookup(c.Args[1], engine.KindString); ok {
		replyString(c, e)
	}
}

var mgetRow = &command.Command{
	Name: "mget", Arity: -2, Group: command.GroupString, Since: "1.0.0",
	Flags:      command.ReadOnly | command.Fast,
	ACL:        stringACL,
	Keys:       []command.KeySpec{command.KeyRange(1, -1, 1, readKey)},
	Summary:    "Returns the values of several strings at once.",
	Complexity: "O(N) in the number of keys",
	Tips:       []string{"request_policy:multi_shard"},
	Syntax:     "key...",
	Run:        mget,
}

func mget(c *command.Ctx) {
	c.Array(len(c.Args) - 1)
	growForAll(c)
	for _, key := range c.Args[1:] {
		if e := c.Get(key); e.Kind() == engine.KindString {
			replyString(c, e)
		} else {
			c.Null() // a key of another type counts as missing
		}
	}
}

// longReply is the size of the first value from which the other values are looked at in advance.
const longReply = 4 << 10

// growForAll makes room for the whole reply if the first value is long: growing it step by step would copy it several times.
func growForAll(c *command.Ctx) {
	if e := c.Find(c.Args[1]); e.Kind() != engine.KindString || e.Len() < longReply {
		return
	}
	n := 0
	for _, key := range c.Args[1:] {
		if e := c.Find(key); e.Kind() == engine.KindString && !c.Shares(e.Len()) {
			n += e.Len()
		}
		n += longHead
	}
	c.ExpectBytes(n)
	c.Writer.Buf = slices.Grow(c.Writer.Buf, min(n, growBytesMax))
}

const (
	longHead     = 16       // room for the bytes around a value in a reply
	growBytesMax = 64 << 20 // most room that is made in advance
)

var strlenRow = &command.Command{
	Name: "strlen", Arity: 2, Group: command.GroupString, Since: "2.2.0",
	Flags:      command.ReadOnly | command.Fast,
	ACL:        stringACL,
	Keys:       []command.KeySpec{command.Key(1, command.RO)},
	Summary:    "Returns the length of a string.",
	Complexity: "O(1)",
	Syntax:     "key",
	Run: func(c *command.Ctx) {
		if e, ok := c.Lookup(c.Args[1], engine.KindString); ok {
			c.Int(int64(e.Len()))
		}
	},
}

var getrangeRow = &command.Command{
	Name: "getrange", Arity: 4, Group: command.GroupString, Since: "2.4.0",
	Flags:      command.ReadOnly,
	ACL:        stringACL,
	Keys:       []command.KeySpec{command.Key(1, readKey)},
	Summary:    "Returns a part of a string.",
	Complexity: "O(N) in the length of the part",
	Syntax:     "key start:integer end:integer",
	Run:        getrange,
}

var substrRow = &command.Command{
	Name: "substr", Arity: 4, Group: command.GroupString, Since: "1.0.0",
	Flags:           command.ReadOnly,
	ACL:             stringACL,
	Keys:            []command.KeySpec{command.Key(1, readKey)},
	Summary:         "Returns a part of a string, as GETRANGE does.",
	Complexity:      "O(N) in the length of the part",
	Syntax:          "key start:integer end:integer",
	DeprecatedSince: "2.0.0", ReplacedBy: "`GETRANGE`",
	Run: getrange,
}

func getrange(c *command.Ctx) {
	a := c.Cursor(2)
	start, end := a.Int(), a.Int()
	if a.Failed(c) {
		return
	}
	e, ok := c.Lookup(c.Args[1], engine.KindString)
	if !ok {
		return
	}
	var scratch [20]byte
	value := e.Bytes(scratch[:])
	n := int64(len(value))
	if start < 0 && end < 0 && start > end {
		c.BulkString("")
		return
	}
	start, end = fromEnd(start, n), fromEnd(end, n)
	end = min(end, n-1)
	if start > end || n == 0 {
		c.BulkString("")
		return
	}
	if c.Shares(int(end - start)) {
		c.BulkShared(c.ShareString(e)[start : end+1])
		return
	}
	c.ExpectBytes(int(end - start))
	c.Bulk(value[start : end+1])
}

// fromEnd resolves an index that counts from the end if it is negative.
func fromEnd(i, n int64) int64 {
	if i < 0 {
		i = max(i+n, 0)
	}
	return i
}
