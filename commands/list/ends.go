package list

// Adding to and taking from the ends.

import (
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/list"
	"github.com/limitkv/limitkv/engine/packed"
	"github.com/limitkv/limitkv/server/command"
)

func (f *family) pushRow(name, since, summary string, head, ifThere bool) *command.Command {
	return &command.Command{
		Name: name, Arity: -3, Group: command.GroupList, Since: since,
		Flags:      command.Write | command.DenyOOM | command.Fast,
		ACL:        listACL,
		Keys:       []command.KeySpec{command.Key(1, pushKey)},
		Summary:    summary,
		Complexity: "O(N) in the number of elements added",
		Syntax:     "key element:string...",
		Run:        func(c *command.Ctx) { f.push(c, head, ifThere) },
	}
}

func (f *family) push(c *command.Ctx, head, ifThere bool) {
	key := c.Args[1]
	l, ok := lookupWrite(c, key)
	if !ok {
		return
	}
	if l == nil {
		if ifThere {
			c.Int(0)
			return
		}
		l = &list.List{}
		c.PutObject(key, engine.KindList, l, 0)
	}
	l.Push(c.Args[2:], head, f.limits())
	c.Int(int64(l.Len())) // before waiters take from it
	c.Changed(key, engine.EventList, pushEvent(head))
}

func (f *family) popRow(name, summary string, head bool) *command.Command {
	return &command.Command{
		Name: name, Arity: -2, Group: command.GroupList, Since: "1.0.0",
		Flags:      command.Write | command.Fast,
		ACL:        listACL,
		Keys:       []command.KeySpec{command.Key(1, popKey)},
		Summary:    summary,
		Complexity: "O(N) in the number of elements taken",
		Syntax:     "key [count:integer]",
		Run:        func(c *command.Ctx) { f.pop(c, head) },
	}
}

func (f *family) pop(c *command.Ctx, head bool) {
	if len(c.Args) > 3 {
		c.Error(command.ErrArity(c.Cmd.FullName()))
		return
	}
	counted, count := len(c.Args) == 3, int64(1)
	if counted {
		a := c.Cursor(2)
		if count = a.Positive(command.ErrNotPositive); a.Failed(c) {
			return
		}
	}
	key := c.Args[1]
	l, ok := lookupWrite(c, key)
	switch {
	case !ok:
	case l == nil && counted:
		c.NullArray()
	case l == nil:
		c.Null()
	case count == 0:
		c.Array(0)
	case counted:
		f.takeMany(c, key, l, count, head)
	default:
		f.takeOne(c, l, head)
		removed(c, key, l, popEvent(head))
	}
}

// takeOne replies the element at an end and removes it.
func (f *family) takeOne(c *command.Ctx, l *list.List, head bool) {
	at := 0
	if !head {
		at = l.Len() - 1
	}
	var s packed.Scratch
	value, _ := l.Index(at, &s)
	c.Bulk(value)
	l.Remove(at, 1, f.limits())
}

// takeMany replies up to count elements from an end and removes them.
func (f *family) takeMany(c *command.Ctx, key []byte, l *list.List, count int64, head bool) {
	n := int(min(count, int64(l.Len())))
	c.Expect(n / 2)
	from, first := 0, 0
	if !head {
		from, first = l.Len()-1, l.Len()-n
	}
	c.Array(n)
	it := l.Iter(from, !head)
	for range n {
		it.Next()
		c.Bulk(it.Value())
	}
	l.Remove(first, n, f.limits())
	removed(c, key, l, popEvent(head))
}

// popWord is the command that takes from an end in effects.
func popWord(head bool) string {
	if head {
		return "LPOP"
	}
	return "RPOP"
}

// ends describes lists to LMPOP, BLMPOP, BLPOP and BRPOP.
func (f *family) ends() *command.Ends {
	return &command.Ends{Kind: engine.KindList, Words: [2]string{"LEFT", "RIGHT"}, Take: f.take}
}

// take takes elements from an end, and replies them with the key.
func (f *family) take(c *command.Ctx, key []byte, e engine.Entry, p *command.Pop) {
	l, head := e.Object().(*list.List), !p.Far
	c.Array(2)
	c.Bulk(key)
	if p.Counted {
		c.EffectNumber(popWord(head), key, min(p.Count, int64(l.Len())))
		f.takeMany(c, key, l, p.Count, head)
		return
	}
	c.Effect([]byte(popWord(head)), key)
	f.takeOne(c, l, head)
	removed(c, key, l, popEvent(head))
}

func (f *family) lmpopRow() *command.Command {
	return &command.Command{
		Name: "lmpop", Arity: -4, Group: command.GroupList, Since: "7.0.0",
		Flags:      command.Write,
		ACL:        listACL,
		Keys:       []command.KeySpec{command.NumKeys(1, popKey)},
		Summary:    "Takes elements from an end of the first list that has any.",
		Complexity: "O(K + N) for K keys and N elements taken",
		Syntax:     "numkeys:integer key... where=(LEFT | RIGHT) [COUNT count:integer]",
		Run:        f.ends().MPop,
	}
}

func (f *family) blmpopRow() *command.Command {
	return &command.Command{
		Name: "blmpop", Arity: -5, Group: command.GroupList, Since: "7.0.0",
		Flags:      command.Write | command.Blocking,
		ACL:        listACL,
		Keys:       []command.KeySpec{command.NumKeys(2, popKey)},
		Summary:    "Takes elements from an end of the first list that has any, waiting for them.",
		Complexity: "O(K + N) for K keys and N elements taken",
		Syntax:     "timeout:double numkeys:integer key... where=(LEFT | RIGHT) [COUNT count:integer]",
		Run:        f.ends().BlockingMPop,
	}
}

func (f *family) bpopRow(name, summary string, head bool) *command.Command {
	return &command.Command{
		Name: name, Arity: -3, Group: command.GroupList, Since: "2.0.0",
		Flags:      command.Write | command.Blocking,
		ACL:        listACL,
		Keys:       []command.KeySpec{command.KeyRange(1, -2, 1, popKey)},
		Summary:    summary,
		Complexity: "O(N) in the number of keys",
		Syntax:     "key... timeout:double",
		Run:        f.ends().BlockingPop(!head),
	}
}
