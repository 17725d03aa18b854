// Package command, internal to the server, is the base for families of commands: the row that describes a command, the context
// in which it runs, the cursor over its arguments, and the texts of errors. It knows no single command.
package command

import (
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/server/notation"
)

// Flags are properties of a command; COMMAND shows them by name.
type Flags uint32

// The flags of commands, as Redis names them.
const (
	Write Flags = 1 << iota
	ReadOnly
	DenyOOM
	Admin
	PubSub
	NoScript
	Blocking
	Loading
	Stale
	SkipMonitor
	SkipSlowlog
	Asking
	Fast
	NoAuth
	MayReplicate
	AllowBusy
	NoMulti
	MovableKeys
	NoAsyncLoading
	NoMandatoryKeys
	TouchesArbitraryKeys

	// WholeKeyspace locks every shard: KEYS, SCAN, FLUSHALL. It is a flag of limitkv only and not shown.
	WholeKeyspace
	// InMulti runs at once inside MULTI instead of being queued (EXEC, DISCARD).
	InMulti
	// TakesTime: the clock is read again after the command, which may take long.
	TakesTime
	// KeepsLocks: calls of the same script in a row in a pipeline keep the locks of all shards in between, since taking them
	// costs as much as a script.
	KeepsLocks
	// InSubscribed may be used by a RESP2 connection that has subscribed.
	InSubscribed
	// Test makes the command exist with --test only.
	Test
	// System marks commands for developers of the server: COMMAND DOCS says syscmd.
	System
	// Pushes: the command replies even with CLIENT REPLY OFF, as SUBSCRIBE does.
	Pushes
	// WithWrites: the command is refused when writes cannot be written to disk, as PING is.
	WithWrites
	// Applied: the command occurs in journals only; clients cannot call it.
	Applied
)

var flagNames = []struct {
	flag Flags
	name string
}{
	{Write, "write"}, {ReadOnly, "readonly"}, {DenyOOM, "denyoom"}, {Admin, "admin"},
	{PubSub, "pubsub"}, {NoScript, "noscript"}, {Blocking, "blocking"}, {Loading, "loading"},
	{Stale, "stale"}, {SkipMonitor, "skip_monitor"}, {SkipSlowlog, "skip_slowlog"},
	{Asking, "asking"}, {Fast, "fast"}, {NoAuth, "no_auth"},
	{NoMandatoryKeys, "no_mandatory_keys"}, {NoAsyncLoading, "no_async_loading"},
	{NoMulti, "no_multi"}, {MovableKeys, "movablekeys"}, {AllowBusy, "allow_busy"},
}

// Names lists the flags as COMMAND INFO shows them; may_replicate and
// touches_arbitrary_keys are not shown, as in Redis.
func (f Flags) Names() (names []string) {
	for _, n := range flagNames {
		if f&n.flag != 0 {
			names = append(names, n.name)
		}
	}
	return names
}

// KeyFlags say what a command does with the keys of a key spec.
type KeyFlags uint16

// The flags of key specs, as Redis names them.
const (
	RW KeyFlags = 1 << iota
	RO
	OW
	RM
	Access
	Update
	Insert
	Delete
	NotKey
	Incomplete
	VariableFlags
)

var keyFlagNames = []struct {
	flag KeyFlags
	name string
}{
	{RO, "RO"}, {RW, "RW"}, {OW, "OW"}, {RM, "RM"}, {Access, "access"}, {Update, "update"},
	{Insert, "insert"}, {Delete, "delete"}, {NotKey, "not_key"}, {Incomplete, "incomplete"},
	{VariableFlags, "variable_flags"},
}

// Names lists the flags as COMMAND INFO shows them.
func (f KeyFlags) Names() (names []string) {
	for _, n := range keyFlagNames {
		if f&n.flag != 0 {
			names = append(names, n.name)
		}
	}
	return names
}

// KeySpec says which arguments are keys: where they begin, and which follow.
type KeySpec struct {
	Flags KeyFlags
	Notes string
	// Begin: at Index, or after Keyword, which clients search for from StartFrom (negative: backwards from the end). With
	// Unknown neither is used. The server itself uses Seek instead of Keyword, since a value, such as the name of a consumer,
	// may equal the keyword. Seek returns where the keys begin, -1 if there are none, and must agree with the handler.
	Index     int
	Keyword   string
	StartFrom int
	Seek      func(args [][]byte) int
	Unknown   bool
	// Find: a range up to Last (relative to the beginning; negative: from the end) by Step; with Limit > 1 only one part of
	// Limit is taken. Or, with Numbered, the number of keys is at NumAt, and the keys begin at FirstAt (both relative), by
	// Step.
	Last, Step, Limit int
	Numbered          bool
	NumAt, FirstAt    int
}

// Key returns the spec of a single key at an argument index.
func Key(index int, flags KeyFlags) KeySpec {
	return KeySpec{Flags: flags, Index: index, Last: 0, Step: 1}
}

// KeyRange returns the spec of keys from index to last by step. Both count from the command's name; a negative last counts
// from the end.
func KeyRange(index, last, step int, flags KeyFlags) KeySpec {
	if last >= 0 {
		last -= index
	}
	return KeySpec{Flags: flags, Index: index, Last: last, Step: step}
}

// NumKeys returns the spec of keys that follow their number, which is at index.
func NumKeys(index int, flags KeyFlags) KeySpec {
	return KeySpec{Flags: flags, Index: index, Numbered: true, NumAt: 0, FirstAt: 1, Step: 1}
}

// Command is a row of the table.
type Command struct {
	// Name is in lower case, without the container's name for a subcommand.
	Name string
	// Arity counts the name; negative means "at least".
	Arity int
	Flags Flags
	// ACL lists the categories beyond those that the flags and the group imply, without the @.
	ACL  []string
	Keys []KeySpec
	// GetKeys finds the keys if Keys cannot describe them (SORT ... STORE, MIGRATE). It may be nil.
	GetKeys func(args [][]byte) []int
	// Channels says which arguments are channels.
	Channels Channels
	// KeyFlags returns the flags of the key at a position if they depend on other arguments; nil if those in Keys apply.
	KeyFlags func(args [][]byte, pos int) KeyFlags

	Group      Group
	Since      string
	Summary    string
	Complexity string
	Tips       []string
	// Syntax describes the arguments for COMMAND DOCS, in the notation of package notation.
	Syntax string
	// History lists changes as pairs of a version and a text.
	History [][2]string
	// DeprecatedSince is the version that deprecated the command, ReplacedBy its replacement.
	DeprecatedSince, ReplacedBy string

	// Secret tells which arguments SLOWLOG and MONITOR must not show.
	Secret func(args [][]byte, i int) bool

	// FlagsOf returns the flags of a call if they depend on its arguments, as for EVAL of a script that declares its flags;
	// nil if Flags apply.
	FlagsOf func(c *Ctx) Flags
	// Looks, if set, tells whether a call of a write command only reads (PEEK). It then has the flags of a read command.
	Looks func(args [][]byte) bool
	// Spares, if set, tells whether a call of a command with DenyOOM frees memory or only reads, so that it runs even if
	// memory is full. c says which locks are held.
	Spares func(c *Ctx, args [][]byte) bool

	// Prepare, if set, finds what the command needs besides keys, such as EVAL's compiled script, and leaves it in the
	// request. If it reports true, the command starts again once Prepare resumes the connection.
	Prepare func(c *Ctx) (wait bool)

	// Plan, if set, adds the locks that the command needs to the set, instead of those of its keys' shards. It tells whether
	// the command will take long, so that the event loop continues without it before it begins (DEBUG SLEEP, MIGRATE).
	Plan func(c *Ctx, set *engine.LockSet) (long bool)

	// Also, if set, adds the shards of keys that are named in the values of the command's keys, such as the limiter of a
	// queue. The value may name another key by the time the command runs.
	Also func(c *Ctx, set *engine.LockSet)

	// Refused, if set, is called when the command is refused before it runs, and returns the error to reply (EXEC, which then
	// ends the transaction).
	Refused func(c *Ctx, text string) string

	// Guard, if set, is called for each queued command before EXEC runs the first one. If it returns an error text, EXEC
	// replies that and runs nothing.
	Guard func(c *Ctx, args [][]byte) string

	// Run does the command's work.
	Run func(c *Ctx)
	// Sub are subcommands; Run may be nil then.
	Sub []*Command

	// Filled in by the table.
	full   string // "client|getname"
	parent *Command
	index  int
	acl    []string
	plan   keyPlan
	brief  bool
	subs   map[string]*Command
}

// FullName returns the name with the container's, as in client|getname.
func (c *Command) FullName() string { return c.full }

// Parent returns the container of a subcommand, or nil.
func (c *Command) Parent() *Command { return c.parent }

// Brief tells whether the command takes only a few microseconds whatever its arguments, so that the clock need not be read
// after each call.
func (c *Command) Brief() bool { return c.brief }

// OfConnection tells whether the command changes the state of its connection, and so means nothing without one.
func (c *Command) OfConnection() bool {
	return (c.Group == GroupConnection || c.Group == GroupPubSub) && c.Flags&NoScript != 0
}

// Index is the command's number, from 0, subcommands included (for ACL bit sets).
func (c *Command) Index() int { return c.index }

// Categories lists the ACL categories, without the @.
func (c *Command) Categories() []string { return c.acl }

// Arguments returns the command's arguments. It panics if the row's Syntax is invalid, which a test rules out.
func (c *Command) Arguments() []*notation.Arg {
	args, err := notation.Parse(c.Syntax)
	if err != nil {
		panic(err)
	}
	return args
}

// Usage returns the command's arguments as a usage line.
func (c *Command) Usage() string { return notation.Line(c.Arguments(), " ") }

// Group is a group of commands in the documentation.
type Group string

// The groups of commands.
const (
	GroupGeneric      Group = "generic"
	GroupString       Group = "string"
	GroupBitmap       Group = "bitmap"
	GroupHash         Group = "hash"
	GroupList         Group = "list"
	GroupSet          Group = "set"
	GroupSortedSet    Group = "sorted-set"
	GroupStream       Group = "stream"
	GroupGeo          Group = "geo"
	GroupHyperLogLog  Group = "hyperloglog"
	GroupPubSub       Group = "pubsub"
	GroupTransactions Group = "transactions"
	GroupScripting    Group = "scripting"
	GroupConnection   Group = "connection"
	GroupServer       Group = "server"
	GroupCluster      Group = "cluster"
	GroupLimiter      Group = "ratelimit"
	GroupDelayQueue   Group = "delayqueue"
	GroupLock         Group = "lock"
	GroupTest         Group = "test"
)

// CallFlags returns the flags of a call with these arguments.
func (c *Command) CallFlags(args [][]byte) Flags {
	if c.Looks != nil && c.Looks(args) {
		return c.Flags&^(Write|DenyOOM|Blocking) | ReadOnly
	}
	return c.Flags
}

// Spared tells whether a call may run when memory is full, although the command has DenyOOM.
func (c *Command) Spared(ctx *Ctx, args [][]byte) bool { return c.Spares != nil && c.Spares(ctx, args) }
