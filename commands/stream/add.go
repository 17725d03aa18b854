package stream

// Adding entries and taking them out: XADD, XTRIM, XDEL, XSETID.

import (
	"errors"
	"slices"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/stream"
	"github.com/limitkv/limitkv/server/command"
)

const trimSyntax = "trim={strategy=(MAXLEN | MINID) [operator=(equal== | approximately=~)] threshold:string [LIMIT count:integer]}"

func (f *family) xaddRow() *command.Command {
	return &command.Command{
		Name: "xadd", Arity: -5, Group: command.GroupStream, Since: "5.0.0",
		Flags:      command.Write | command.DenyOOM | command.Fast,
		ACL:        streamACL,
		Keys:       []command.KeySpec{command.Key(1, command.RW|command.Update)},
		Summary:    "Adds an entry to a stream, and may trim it.",
		Complexity: "O(1), and O(N) for N entries that are trimmed",
		Tips:       varies,
		Syntax:     "key [NOMKSTREAM] [" + trimSyntax + "] id-selector=(auto-id=* | id:string) data={field:string value:string}...",
		History:    [][2]string{{"6.2.0", "NOMKSTREAM, MINID and LIMIT."}, {"7.0.0", "IDs of milliseconds alone, as <ms>-*."}},
		Run:        f.xadd,
	}
}

func (f *family) xtrimRow() *command.Command {
	return &command.Command{
		Name: "xtrim", Arity: -4, Group: command.GroupStream, Since: "5.0.0",
		Flags:      command.Write,
		ACL:        streamACL,
		Keys:       []command.KeySpec{command.Key(1, deleteKey)},
		Summary:    "Takes entries out at the beginning of a stream.",
		Complexity: "O(N) for N entries that are taken out, in whole blocks as far as possible",
		Tips:       varies,
		Syntax:     "key " + trimSyntax,
		History:    [][2]string{{"6.2.0", "MINID and LIMIT."}},
		Run:        f.xtrim,
	}
}

// trimming is what the arguments of XADD and XTRIM say about trimming.
type trimming struct {
	stream.Trim
	given   bool
	limited bool
	limit   int64
	args    int // how many arguments there are
	at      int // the threshold's place among them
}

// parse takes an option of trimming; it reports false if there is none.
func (t *trimming) parse(a *command.Args) bool {
	switch {
	case a.IsWith("MAXLEN", 1):
		t.threshold(a)
		n := a.Int()
		if n < 0 {
			a.Fail("ERR The MAXLEN argument must be >= 0.")
		}
		t.MaxLen, t.ByID = int(n), false
	case a.IsWith("MINID", 1):
		t.threshold(a)
		t.MinID, t.ByID = idArg(a), true
	case a.IsWith("LIMIT", 1):
		if t.limit = a.Int(); t.limit < 0 {
			a.Fail("ERR The LIMIT argument must be >= 0.")
		}
		t.limited = true
	default:
		return false
	}
	return true
}

// threshold takes the sign before a threshold.
func (t *trimming) threshold(a *command.Args) {
	if t.given {
		a.Fail("ERR syntax error, MAXLEN and MINID options at the same time are not compatible")
		return
	}
	t.given = true
	if a.Left() >= 2 {
		t.Whole = a.Is("~")
		if !t.Whole {
			a.Is("=")
		}
	}
	t.at = t.args - a.Left()
}

// exact turns a command that trims approximately into one that trims exactly to what the stream has now.
func (t *trimming) exact(args [][]byte, s *stream.Stream) [][]byte {
	if !t.given || !t.Whole {
		return args
	}
	args = slices.Clone(args)
	args[t.at-1] = []byte("=")
	if t.ByID {
		args[t.at] = s.EdgeID().Append(nil)
	} else {
		args[t.at] = command.Number(int64(s.Len()))
	}
	return args
}

// Without LIMIT, a trim of whole blocks removes at most the entries of trimBlocks blocks at once, within these bounds.
const (
	trimBlocks       = 100
	trimEntriesNone  = 10_000 // if blocks have no limit
	trimEntriesAtMax = 1_000_000
)

// finish checks the options together, and sets the limit.
// With exact, as in a journal, the threshold is what was left, whatever the limit was.
func (t *trimming) finish(f *family, a *command.Args, must, exact bool) {
	if t.limit != 0 && !t.given {
		a.Fail("ERR syntax error, LIMIT cannot be used without specifying a trimming strategy")
	}
	if must && !t.given {
		a.Fail("ERR syntax error, XTRIM must be called with a trimming strategy")
	}
	if t.limited && !t.Whole && !exact {
		a.Fail("ERR syntax error, LIMIT cannot be used without the special ~ option")
	}
	if t.Limit = int(t.limit); exact {
		t.Limit = 0
	}
	if t.Whole && !t.limited {
		entries := f.nodeEntries.Load()
		t.Limit = trimBlocks * int(min(entries, trimEntriesAtMax))
		if entries == 0 {
			t.Limit = trimEntriesNone
		}
		t.Limit = min(t.Limit, trimEntriesAtMax)
	}
}

func (f *family) xadd(c *command.Ctx) {
	a := c.Cursor(2)
	trim := trimming{args: len(c.Args)}
	var id stream.ID
	noMake, given, autoSeq := false, false, false
	for a.More() {
		if len(a.Peek()) == 1 && a.Peek()[0] == '*' {
			a.Bytes()
			break
		}
		if trim.parse(&a) {
			continue
		}
		if a.Is("NOMKSTREAM") {
			noMake = true
			continue
		}
		var ok bool
		if id, autoSeq, ok = stream.ParseNewID(a.Bytes()); !ok {
			a.Fail(errID)
		}
		given = true
		break
	}
	trim.finish(f, &a, false, c.Follows())
	if a.Failed(c) {
		return
	}
	pairs := a.Rest()
	key := c.Args[1]
	switch {
	case len(pairs) < 2 || len(pairs)%2 != 0:
		c.Error(command.ErrArity(c.Cmd.FullName()))
		return
	case given && !autoSeq && id.Zero():
		c.Error("ERR The ID specified in XADD must be greater than 0-0")
		return
	}
	s, ok := lookupWrite(c, key)
	if !ok {
		return
	}
	if s == nil {
		if noMake {
			c.Null()
			return
		}
		s = &stream.Stream{}
		c.PutObject(key, engine.KindStream, s, 0)
	}
	if s.LastID() == stream.MaxID {
		c.Error("ERR The stream has exhausted the last possible ID, unable to add more items")
		return
	}
	fits := true
	switch {
	case !given:
		now := c.Now
		if s.LastID() != (stream.ID{}) { // a new stream has given nobody an id yet
			now = c.KS.Clock.ForNumbers(now)
		}
		id, fits = s.NextID(now / 1000)
	case autoSeq:
		id, fits = s.NextSeq(id.Millis)
	}
	err := stream.ErrSmallID
	if fits {
		err = s.Add(id, pairs, f.limits())
	}
	switch {
	case errors.Is(err, stream.ErrSmallID):
		c.Error("ERR The ID specified in XADD is equal or smaller than the target stream top item")
		return
	case err != nil:
		c.Error("ERR Elements are too large to be stored")
		return
	}
	replyID(c, id)
	c.Changed(key, engine.EventStream, "xadd")
	if trim.given && s.Trim(trim.Trim) > 0 {
		c.Notify(engine.EventStream, "xtrim", key)
	}
	if c.Logging() {
		args := trim.exact(c.Args, s)
		if !given || autoSeq {
			args = slices.Clone(args)
			args[len(args)-len(pairs)-1] = id.Append(nil)
		}
		c.Effect(args...)
	}
}

func (f *family) xtrim(c *command.Ctx) {
	a := c.Cursor(2)
	trim := trimming{args: len(c.Args)}
	for a.More() {
		if !trim.parse(&a) {
			a.Syntax()
		}
	}
	trim.finish(f, &a, true, c.Follows())
	if a.Failed(c) {
		return
	}
	key := c.Args[1]
	s, ok := lookupWrite(c, key)
	if !ok {
		return
	}
	n := 0
	if s != nil {
		n = s.Trim(trim.Trim)
	}
	if n > 0 {
		c.Lessened(key, engine.EventStream, "xtrim")
		if c.Logging() {
			c.Effect(trim.exact(c.Args, s)...)
		}
	}
	c.Int(int64(n))
}

var xdelRow = &command.Command{
	Name: "xdel", Arity: -3, Group: command.GroupStream, Since: "5.0.0",
	Flags:      command.Write | command.Fast,
	ACL:        streamACL,
	Keys:       []command.KeySpec{command.Key(1, deleteKey)},
	Summary:    "Takes entries out of a stream.",
	Complexity: "O(1) for each entry",
	Syntax:     "key ID:string...",
	Run:        xdel,
}

func xdel(c *command.Ctx) {
	key := c.Args[1]
	s, ok := lookupWrite(c, key)
	if !ok {
		return
	}
	if s == nil {
		c.Int(0)
		return
	}
	a := c.Cursor(2)
	ids := idArgs(&a)
	if a.Failed(c) {
		return
	}
	n := int64(0)
	for _, id := range ids {
		if s.Delete(id) {
			n++
		}
	}
	if n > 0 {
		c.Lessened(key, engine.EventStream, "xdel")
	}
	c.Int(n)
}

var xsetidRow = &command.Command{
	Name: "xsetid", Arity: -3, Group: command.GroupStream, Since: "5.0.0",
	Flags:      command.Write | command.DenyOOM | command.Fast,
	ACL:        streamACL,
	Keys:       []command.KeySpec{command.Key(1, command.RW|command.Update)},
	Summary:    "Sets what a stream knows of the entries it had.",
	Complexity: "O(1)",
	Syntax:     "key last-id:string [ENTRIESADDED entries-added:integer] [MAXDELETEDID max-deleted-id:string]",
	History:    [][2]string{{"7.0.0", "ENTRIESADDED and MAXDELETEDID."}},
	Run:        xsetid,
}

func xsetid(c *command.Ctx) {
	a := c.Cursor(2)
	last := idArg(&a)
	added, deleted := int64(-1), stream.ID{}
	for a.More() {
		switch {
		case a.IsWith("ENTRIESADDED", 1):
			if added = a.Int(); added < 0 {
				a.Fail("ERR entries_added must be positive")
			}
		case a.IsWith("MAXDELETEDID", 1):
			if deleted = idArg(&a); last.Compare(deleted) < 0 {
				a.Fail("ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id")
			}
		default:
			a.Syntax()
		}
	}
	if a.Failed(c) {
		return
	}
	key := c.Args[1]
	s, ok := lookupWrite(c, key)
	switch {
	case !ok:
	case s == nil:
		c.Error(command.ErrNoSuchKey)
	case last.Compare(s.MaxDeletedID()) < 0:
		c.Error("ERR The ID specified in XSETID is smaller than current max_deleted_entry_id")
	case s.Len() > 0 && last.Compare(s.LastEntryID()) < 0:
		c.Error("ERR The ID specified in XSETID is smaller than the target stream top item")
	case s.Len() > 0 && added >= 0 && int64(s.Len()) > added:
		c.Error("ERR The entries_added specified in XSETID is smaller than the target stream length")
	default:
		s.SetID(last, added, deleted)
		c.Altered(key, engine.EventStream, "xsetid")
		c.OK()
	}
}
