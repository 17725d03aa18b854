package generic

// SORT and SORT_RO: the options, the keys, and the reply. order.go orders the elements.

import (
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/list"
	"github.com/limitkv/limitkv/engine/set"
	"github.com/limitkv/limitkv/server/acl"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/hashslot"
	"github.com/limitkv/limitkv/server/params"
	"github.com/limitkv/limitkv/server/value"
	"github.com/limitkv/limitkv/zset"
)

const sortSyntax = "key [BY by-pattern~pattern:pattern@1] [LIMIT limit={offset:integer count:integer}] [GET get-pattern~pattern:pattern@1...+] " +
	"[order=(ASC | DESC)] [sorting=ALPHA]"

var (
	sortACL     = []string{"set", "sortedset", "list", "dangerous"}
	sortPattern = command.KeySpec{
		Flags: command.RO | command.Access, Unknown: true,
		Notes: "The keys of BY and GET are made of the elements that are sorted.",
	}
	sortStore = command.KeySpec{
		Flags: command.OW | command.Update, Unknown: true,
		Notes: "STORE may stand anywhere among the options.",
	}
)

func sortRow(nodes *params.ListLimits) *command.Command {
	return &command.Command{
		Name: "sort", Arity: -2, Group: command.GroupGeneric, Since: "1.0.0",
		Flags:      command.Write | command.DenyOOM,
		ACL:        sortACL,
		Keys:       []command.KeySpec{command.Key(1, readKey), sortPattern, sortStore},
		GetKeys:    sortKeys,
		KeyFlags:   sortKeyFlags,
		Summary:    "Sorts the elements of a list, a set or a sorted set, and may store the result.",
		Complexity: "O(N + M log M), N being the number of elements, M of those returned",
		Syntax:     sortSyntax + " [STORE destination:key@2]",
		Plan:       func(c *command.Ctx, locks *engine.LockSet) bool { return planSort(c, locks, true) },
		Run:        func(c *command.Ctx) { sortKey(c, nodes.Now(), true) },
	}
}

var sortroRow = &command.Command{
	Name: "sort_ro", Arity: -2, Group: command.GroupGeneric, Since: "7.0.0",
	Flags:      command.ReadOnly,
	ACL:        sortACL,
	Keys:       []command.KeySpec{command.Key(1, readKey), sortPattern},
	GetKeys:    func([][]byte) []int { return []int{1} },
	KeyFlags:   sortKeyFlags,
	Summary:    "Sorts the elements of a list, a set or a sorted set.",
	Complexity: "O(N + M log M), N being the number of elements, M of those returned",
	Syntax:     sortSyntax,
	Plan:       func(c *command.Ctx, locks *engine.LockSet) bool { return planSort(c, locks, false) },
	Run:        func(c *command.Ctx) { sortKey(c, list.Limits{}, false) },
}

const readKey = command.RO | command.Access

// sortKeys finds the keys of SORT. Of several destinations the last one counts,
// and one may have the name of an option.
func sortKeys(args [][]byte) []int {
	keys := []int{1}
	for i := 2; i < len(args); i++ {
		switch {
		case command.EqualFold(args[i], "LIMIT"):
			i += 2
		case command.EqualFold(args[i], "GET"), command.EqualFold(args[i], "BY"):
			i++
		case command.EqualFold(args[i], "STORE") && i+1 < len(args):
			i++
			keys = append(keys[:1], i)
		}
	}
	return keys
}

func sortKeyFlags(_ [][]byte, pos int) command.KeyFlags {
	if pos == 1 {
		return readKey
	}
	return command.OW | command.Update
}

// sorting is what SORT's arguments say.
type sorting struct {
	isBy   bool // else by the elements themselves
	by     pattern
	plain  bool // BY without a star: not sorted at all
	get    []pattern
	store  []byte // nil: replied
	desc   bool
	alpha  bool
	offset int64
	count  int64 // negative: no limit
	reads  bool  // keys that the patterns name
}

// parseSort reads the options; an error stays in the cursor.
func parseSort(a *command.Args, mayStore bool) (s sorting) {
	s.count = -1
	for a.More() {
		switch {
		case a.Is("ASC"):
			s.desc = false
		case a.Is("DESC"):
			s.desc = true
		case a.Is("ALPHA"):
			s.alpha = true
		case a.IsWith("LIMIT", 2):
			s.offset, s.count = a.Int(), a.Int()
		case mayStore && a.IsWith("STORE", 1):
			s.store = a.Bytes()
		case a.IsWith("BY", 1):
			s.by, s.isBy = parsePattern(a.Bytes()), true
			s.plain, s.reads = s.plain || !s.by.names, s.reads || s.by.names
		case a.IsWith("GET", 1):
			get := parsePattern(a.Bytes())
			s.get = append(s.get, get)
			s.reads = s.reads || string(get.all) != "#"
		default:
			a.Syntax()
		}
	}
	return s
}

// planSort locks the key and the destination, or all shards if patterns name
// other keys.
func planSort(c *command.Ctx, locks *engine.LockSet, mayStore bool) (long bool) {
	a := c.Cursor(2)
	s := parseSort(&a, mayStore)
	if s.reads {
		locks.AddAll()
		return false
	}
	locks.AddKey(c.Args[1])
	if s.store != nil {
		locks.AddKey(s.store)
	}
	return false
}

func sortKey(c *command.Ctx, lim list.Limits, mayStore bool) {
	a := c.Cursor(2)
	s := parseSort(&a, mayStore)
	if text := denied(c, &s); text != "" {
		a.Fail(text)
	}
	if a.Failed(c) {
		return
	}
	e := c.Get(c.Args[1])
	switch e.Kind() {
	case engine.KindNone, engine.KindList, engine.KindSet, engine.KindZSet:
	default:
		c.WrongType()
		return
	}
	if s.plain && e.Kind() == engine.KindSet && (s.store != nil || c.Script) {
		// A set has no order, but a stored result, or one that a script sees, must have one.
		s.plain, s.alpha, s.isBy = false, true, false
	}
	c.Expect(8 * value.Elements(e))
	items, from, to := s.load(e)
	if !s.plain {
		if !s.order(c, items, from, to) {
			c.Error("ERR One or more scores can't be converted into double")
			return
		}
	}
	items = items[from:to]
	if s.store != nil {
		s.storeInto(c, items, lim)
		return
	}
	s.reply(c, items)
}

// denied returns the error for patterns: if the user may not read all keys, or if the patterns may name keys in other slots
// of a cluster.
func denied(c *command.Ctx, s *sorting) string {
	if c.Server.Cluster {
		slot := hashslot.Of(c.Args[1])
		if s.isBy && !s.plain && hashslot.OfPattern(s.by.all) != slot {
			return "ERR BY option of SORT denied in Cluster mode when keys formed by the pattern may be in different slots."
		}
		for _, get := range s.get {
			if string(get.all) != "#" && hashslot.OfPattern(get.all) != slot {
				return "ERR GET option of SORT denied in Cluster mode when keys formed by the pattern may be in different slots."
			}
		}
	}
	if !s.isBy && s.get == nil || acl.MayReadAll(c) {
		return ""
	}
	if s.isBy && !s.plain {
		return "ERR BY option of SORT denied due to insufficient ACL permissions."
	}
	if s.get != nil {
		return "ERR GET option of SORT denied due to insufficient ACL permissions."
	}
	return ""
}

// window is the part of n elements that LIMIT selects.
func (s *sorting) window(n int) (from, to int) {
	total := int64(n)
	start, count := min(max(s.offset, 0), total), min(max(s.count, -1), total)
	if count < 0 {
		return int(start), n
	}
	return int(start), int(min(start+count, total))
}

// load copies the elements out of the key, and says which of them LIMIT selects. If they are not sorted and the value has an
// order, it reads only the selected elements, in that order.
func (s *sorting) load(e engine.Entry) (items []item, from, to int) {
	var v loader
	switch o := e.Object().(type) {
	case *list.List:
		n := o.Len()
		from, to = s.window(n)
		if !s.plain {
			v.grow(n)
			for it := o.Iter(0, false); it.Next(); {
				v.add(it.Value())
			}
			break
		}
		v.grow(to - from)
		at := from
		if s.desc {
			at = n - 1 - from
		}
		for it := o.Iter(at, s.desc); len(v.items) < to-from && it.Next(); {
			v.add(it.Value())
		}
		from, to = 0, to-from
	case *set.Set:
		from, to = s.window(o.Len())
		v.grow(o.Len())
		for it := o.Iter(); it.Next(); {
			v.add(it.Member())
		}
	case *zset.Set:
		o.Prepare(1, 0, zset.Limits{}) // as in Redis the set is a skiplist from now on
		n := o.Len()
		from, to = s.window(n)
		visit := func(member []byte, _ float64) bool { v.add(member); return true }
		switch {
		case !s.plain:
			v.grow(n)
			o.Ascend(0, n, visit)
			return v.items, from, to
		case s.desc:
			o.Descend(n-to, n-from, visit)
		default:
			o.Ascend(from, to, visit)
		}
		from, to = 0, to-from
	}
	return v.items, from, to
}

// loader gathers elements in one piece of memory.
type loader struct {
	items []item
	room
}

func (l *loader) grow(n int) {
	l.items = make([]item, 0, n)
	l.room = make([]byte, 0, 8*n)
}

func (l *loader) add(b []byte) { l.items = append(l.items, item{element: l.copy(b)}) }

// room is memory for copies with the same lifetime.
type room []byte

func (r *room) copy(b []byte) []byte {
	from := len(*r)
	*r = append(*r, b...) // after a reallocation, earlier slices keep the old memory
	return (*r)[from:len(*r):len(*r)]
}

func (s *sorting) reply(c *command.Ctx, items []item) {
	f := finder{c: c}
	c.Array(len(items) * max(len(s.get), 1))
	for i := range items {
		if s.get == nil {
			c.Bulk(items[i].element)
		}
		for g := range s.get {
			if value, ok := f.find(&s.get[g], items[i].element); ok {
				c.Bulk(value)
			} else {
				c.Null()
			}
		}
	}
}

// storeInto stores the result as a list, in which missing values are empty.
func (s *sorting) storeInto(c *command.Ctx, items []item, lim list.Limits) {
	values := make([][]byte, 0, len(items)*max(len(s.get), 1))
	f := finder{c: c}
	var kept room
	for i := range items {
		if s.get == nil {
			values = append(values, items[i].element)
		}
		for g := range s.get {
			value, _ := f.find(&s.get[g], items[i].element)
			values = append(values, kept.copy(value))
		}
	}
	if len(values) == 0 {
		if c.Delete(s.store) {
			c.Changed(s.store, engine.EventGeneric, "del")
		}
	} else {
		l := list.Of(values, lim)
		c.GetWrite(s.store) // an expired key is removed first
		c.PutObject(s.store, engine.KindList, &l, 0)
		c.Changed(s.store, engine.EventList, "sortstore")
	}
	c.Int(int64(len(values)))
}
