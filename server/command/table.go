package command

// The table of commands, made once from the families' rows. All facts about a command are derived from its row.

import (
	"bytes"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"
)

// Table finds commands by name.
type Table struct {
	byName map[string]*Command
	// applied are the commands that occur in journals only.
	applied map[string]*Command
	quick   []named    // for Find: open addressing by hashName
	list    []*Command // top level, in order of name
	all     []*Command // with subcommands, by Index
}

// NewTable makes a table of rows. It copies them, since several servers may use them. It panics on a row that contradicts
// itself or another one, as that is a bug.
func NewTable(rows ...[]*Command) *Table {
	n := 0
	for _, family := range rows {
		n += len(family)
	}
	t := &Table{byName: make(map[string]*Command, n), applied: make(map[string]*Command), list: make([]*Command, 0, n), all: make([]*Command, 0, 2*n)}
	for _, family := range rows {
		for _, row := range family {
			c := row.clone()
			if t.byName[c.Name] != nil || t.applied[c.Name] != nil {
				panic("command: two rows for " + c.Name)
			}
			if c.Flags&Applied != 0 {
				t.applied[c.Name] = c
				continue
			}
			t.byName[c.Name] = c
			t.list = append(t.list, c)
		}
	}
	slices.SortFunc(t.list, func(a, b *Command) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	for _, c := range t.list {
		t.prepare(c, nil)
	}
	for _, name := range slices.Sorted(maps.Keys(t.applied)) {
		t.prepare(t.applied[name], nil)
	}
	t.index()
	return t
}

// named is a command with the name by which clients call it.
type named struct {
	name string
	cmd  *Command
}

// index makes the hash table for Find.
func (t *Table) index() {
	size := 1
	for size < 4*len(t.byName) {
		size *= 2
	}
	t.quick = make([]named, size)
	for name, cmd := range t.byName {
		i := hashName([]byte(name)) & uint(size-1)
		for t.quick[i].cmd != nil {
			i = (i + 1) & uint(size-1)
		}
		t.quick[i] = named{name, cmd}
	}
}

// hashName hashes a name in any case. A better hash is not needed: names are compared, and clients cannot add names.
func hashName(name []byte) (h uint) {
	for _, c := range name {
		h = h*31 + uint(c|0x20)
	}
	return h ^ h>>7
}

// sameName tells whether name, in any case, equals a lower-case name.
func sameName(lower string, name []byte) bool {
	if len(lower) != len(name) {
		return false
	}
	for i, c := range name {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// Rename gives a command another name, or removes it if that is empty. It must be called before the table is used.
func (t *Table) Rename(from, to string) error {
	from, to = strings.ToLower(from), strings.ToLower(to)
	c := t.byName[from]
	switch {
	case c == nil:
		return fmt.Errorf("there is no command %q", from)
	case t.byName[to] != nil:
		return fmt.Errorf("there is a command %q already", to)
	}
	delete(t.byName, from)
	if to != "" {
		t.byName[to] = c
	} else {
		t.list = slices.DeleteFunc(t.list, func(x *Command) bool { return x == c })
	}
	t.index()
	return nil
}

func (c *Command) clone() *Command {
	d := *c
	d.Sub = make([]*Command, len(c.Sub))
	for i, s := range c.Sub {
		d.Sub[i] = s.clone()
	}
	return &d
}

func (t *Table) prepare(c, parent *Command) {
	if c.Arity == 0 || c.Run == nil && len(c.Sub) == 0 {
		panic(fmt.Sprintf("command: row of %s is not complete", c.Name))
	}
	c.full, c.parent = c.Name, parent
	if parent != nil {
		c.full = parent.Name + "|" + c.Name
	}
	if c.Group == "" && parent != nil {
		c.Group = parent.Group
	}
	c.index = len(t.all)
	t.all = append(t.all, c)
	c.plan = planKeys(c)
	c.brief = c.Flags&(TakesTime|Blocking) == 0 && c.Plan == nil && (c.Flags&Fast != 0 || c.Complexity == "O(1)")
	for i := range c.Keys {
		k := &c.Keys[i]
		if k.Keyword != "" || k.Numbered || k.Unknown {
			c.Flags |= MovableKeys
		}
		if k.Keyword != "" && k.Seek == nil && c.GetKeys == nil {
			panic("command: nothing finds the keys of " + c.Name + " behind " + k.Keyword)
		}
	}
	if c.GetKeys != nil {
		c.Flags |= MovableKeys
	}
	c.acl = categories(c)
	if len(c.Sub) > 0 {
		c.subs = make(map[string]*Command, len(c.Sub))
		for _, s := range c.Sub {
			c.subs[s.Name] = s
			t.prepare(s, c)
		}
	}
}

// categories returns the ACL categories: those of the row, and those that flags and group imply.
func categories(c *Command) []string {
	var set uint32 // by place in ACLCategories
	add := func(name string) {
		i := slices.Index(ACLCategories, name)
		if i < 0 {
			panic("command: unknown ACL category " + name + " of " + c.Name)
		}
		set |= 1 << i
	}
	for _, name := range c.ACL {
		add(name)
	}
	switch c.Group {
	case GroupLimiter, GroupDelayQueue, GroupLock: // the names of Redis's groups differ from those of its categories
		add(string(c.Group))
	}
	for _, implied := range []struct {
		name string
		by   bool
	}{
		{"write", c.Flags&Write != 0},
		{"read", c.Flags&ReadOnly != 0 && !slices.Contains(c.ACL, "scripting")},
		{"admin", c.Flags&Admin != 0},
		{"dangerous", c.Flags&Admin != 0},
		{"pubsub", c.Flags&PubSub != 0},
		{"blocking", c.Flags&Blocking != 0},
		{"fast", c.Flags&Fast != 0},
		{"slow", c.Flags&Fast == 0 && !slices.Contains(c.ACL, "fast")},
	} {
		if implied.by {
			add(implied.name)
		}
	}
	out := make([]string, 0, bits.OnesCount32(set))
	for i, name := range ACLCategories {
		if set&(1<<i) != 0 {
			out = append(out, name)
		}
	}
	return out
}

// ACLCategories lists the categories in Redis's order.
var ACLCategories = []string{
	"keyspace", "read", "write", "set", "sortedset", "list", "hash", "string", "bitmap", "hyperloglog",
	"geo", "stream", "pubsub", "admin", "fast", "slow", "blocking", "dangerous",
	"connection", "transaction", "scripting", "ratelimit", "delayqueue", "lock",
}

// nameMax is the longest name of a command or subcommand.
const nameMax = 64

// Find finds a command by name in any case, without allocating. A map of lower-case names took three times as long.
func (t *Table) Find(name []byte) *Command {
	if len(name) > nameMax {
		return nil
	}
	mask := uint(len(t.quick) - 1)
	for i := hashName(name) & mask; ; i = (i + 1) & mask {
		n := &t.quick[i]
		if n.cmd == nil || sameName(n.name, name) {
			return n.cmd
		}
	}
}

// Named finds a command by its full name, as in "client|list".
func (t *Table) Named(name []byte) *Command {
	container, sub, hasSub := bytes.Cut(name, []byte{'|'})
	cmd := t.Find(container)
	if cmd != nil && hasSub {
		return cmd.SubCommand(sub)
	}
	return cmd
}

// SubCommand finds a subcommand by name in any case.
func (c *Command) SubCommand(name []byte) *Command {
	if len(name) > nameMax {
		return nil
	}
	var buf [nameMax]byte
	return c.subs[string(lowerInto(buf[:], name))]
}

// Resolve finds the command that arguments call, or its subcommand. If the subcommand is missing or unknown, it returns the
// container. known is false if nothing can run.
func (t *Table) Resolve(args [][]byte) (cmd *Command, known bool) {
	cmd = t.Find(args[0])
	if cmd == nil || len(cmd.subs) == 0 {
		return cmd, cmd != nil
	}
	if len(args) < 2 {
		return cmd, cmd.Run != nil
	}
	if sub := cmd.SubCommand(args[1]); sub != nil {
		return sub, true
	}
	return cmd, cmd.Run != nil && len(args) < 2
}

// Applied finds a command that occurs in journals only.
func (t *Table) Applied(name []byte) *Command { return t.applied[Lower(name)] }

func lowerInto(dst, src []byte) []byte {
	dst = dst[:len(src)]
	for i, c := range src {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		dst[i] = c
	}
	return dst
}

// List returns all top-level commands in order of name.
func (t *Table) List() []*Command { return t.list }

// All returns all commands, subcommands included, by Index.
func (t *Table) All() []*Command { return t.all }

// Called returns the command that these arguments of c call: c itself or a subcommand. It is nil if the subcommand does not
// exist.
func (c *Command) Called(args [][]byte) *Command {
	if c.HasSub() && len(args) > 1 {
		if sub := c.SubCommand(args[1]); sub != nil || c.Run == nil {
			return sub
		}
	}
	return c
}

// Takes tells whether the command accepts so many arguments, its name included.
func (c *Command) Takes(args int) bool { return args == c.Arity || c.Arity <= 0 && args >= -c.Arity }

// HasSub tells whether the command is a container.
func (c *Command) HasSub() bool { return len(c.subs) > 0 }
