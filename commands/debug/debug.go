// Package debug, internal to the server, is the family of DEBUG, for tests and for the authors of clients. Kinds that would
// only show Redis's internals are left out.
package debug

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/list"
	"github.com/limitkv/limitkv/engine/rdb"
	"github.com/limitkv/limitkv/resp"
	"github.com/limitkv/limitkv/resp/number"
	"github.com/limitkv/limitkv/server"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/params"
	"github.com/limitkv/limitkv/server/value"
)

type family struct {
	s     *server.Server
	from  *atomic.Pointer[string]     // enable-debug-command
	saved command.PerKeyspace[[]byte] // by DEBUG RELOAD, guarded by the locks of all the keyspace's shards
}

// Commands are the rows of the family.
func Commands(s *server.Server) []*command.Command {
	f := &family{s: s}
	f.saved.Begin(s.Server, nil)
	from := "no"
	if s.TestMode {
		from = "yes" // a client that may move the clock may use DEBUG too
	}
	f.from = s.Config.Enum("enable-debug-command", from, []string{"no", "yes", "local"}, "who may use DEBUG: nobody, everybody, clients of this machine")
	s.Config.Find("enable-debug-command").Immutable = true
	return []*command.Command{f.debugRow()}
}

// debugCommand is a kind of DEBUG. Redis has no rows for the kinds, so replies of COMMAND do not contain them.
type debugCommand struct {
	name     string
	min, max int // how many arguments follow it
	usage    string
	summary  string
	// keyspace is set if it may touch any key, key if it looks at the keys that it is given. long is set if it takes so long
	// that it runs off the event loop, stalls if it locks the keys only to keep others from them.
	keyspace, key, long, stalls bool
	// waits is set if it is refused while the server loads.
	waits bool
	run   func(f *family, c *command.Ctx)
}

// debugCommands is a function because HELP is one of the kinds, and lists them all.
func debugCommands() []debugCommand {
	return []debugCommand{
		{name: "AOF-FLUSH-SLEEP", min: 1, max: 1, usage: "<microseconds>", summary: "Has every write of the append-only file wait so long first.", run: debugFlushSleep},
		{name: "CHANGE-REPL-ID", summary: "Gives the server another replication ID.", run: debugChangeReplID},
		{name: "DIGEST", summary: "Replies a digest of all keys.", keyspace: true, long: true, run: debugDigest},
		{name: "DIGEST-VALUE", max: 1 << 20, usage: "[<key> ...]", summary: "Replies a digest of each value.",
			key: true, run: debugDigestValue},
		{name: "ERROR", min: 1, max: 1, usage: "<text>", summary: "Replies the text as an error.",
			run: func(_ *family, c *command.Ctx) { c.Error(string(c.Args[2])) }},
		{name: "HELP", summary: "Tells what there is.", run: debugHelp},
		{name: "LISTPACK", min: 1, max: 1, usage: "<key>", summary: "Writes what a packed value holds to the log.", key: true, run: debugListpack},
		{name: "LOADAOF", long: true, waits: true, run: debugLoadAOF, summary: "Writes what the append-only file lacks, and reads it back."},
		{name: "LOG", min: 1, max: 1, usage: "<text>", summary: "Writes the text to the log.",
			run: func(f *family, c *command.Ctx) { f.s.Logf('w', "DEBUG LOG: %s", c.Args[2]); c.OK() }},
		{name: "OBJECT", min: 1, max: 1, usage: "<key>", summary: "Shows how a value is stored.", key: true, run: debugObject},
		{name: "POPULATE", min: 1, max: 3, usage: "<count> [<prefix>] [<bytes>]", summary: "Makes so many strings, <prefix>:<n> (prefix key).",
			keyspace: true, waits: true, run: debugPopulate},
		{name: "PROTOCOL", min: 1, max: 1, usage: "<type>", summary: "Replies a sample of a type of reply: " + strings.Join(protocolNames(), " ") + ".",
			run: debugProtocol},
		{name: "PAUSE-CRON", min: 1, max: 1, usage: "<0|1>", summary: "As SET-ACTIVE-EXPIRE, the other way round: nothing else runs by itself.",
			run: debugSwitch(func(_ *family, c *command.Ctx, on bool) { c.KS.SetActiveExpire(!on) })},
		{name: "QUICKLIST-PACKED-THRESHOLD", min: 1, max: 1, usage: "<bytes>",
			summary: "Gives elements of lists from so many bytes on a node of their own; 0 for the default.", run: debugPacked},
		{name: "RELOAD", max: 3, usage: "[NOSAVE] [NOFLUSH] [MERGE]", keyspace: true, long: true, waits: true, run: debugReload,
			summary: "Writes all keys in Redis's dump format and reads them back."},
		{name: "REPLICATE", min: 1, max: 1 << 20, usage: "<word> [<word> ...]", summary: "Sends replicas the words as a command, from which their data may differ.",
			run: func(f *family, c *command.Ctx) { f.s.Replication.Send(c.Args[2:]); c.OK() }},
		{name: "SEGFAULT", summary: "Ends the process as a fault would, with a report in the log.", run: debugSegfault},
		{name: "SET-ACTIVE-EXPIRE", min: 1, max: 1, usage: "<0|1>", summary: "Stops or lets go on that keys expire that nobody looks at.",
			run: debugSwitch(func(_ *family, c *command.Ctx, on bool) { c.KS.SetActiveExpire(on) })},
		{name: "SET-DISABLE-DENY-SCRIPTS", min: 1, max: 1, usage: "<0|1>", summary: "Lets scripts call commands that are not for scripts.",
			run: debugSwitch(func(f *family, _ *command.Ctx, on bool) { f.s.ScriptsMayAll.Store(on) })},
		{name: "SET-SKIP-CHECKSUM-VALIDATION", min: 1, max: 1, usage: "<0|1>", summary: "Takes payloads whatever their checksums are.",
			run: debugSwitch(func(f *family, _ *command.Ctx, on bool) { f.s.Config.SkipChecksums.Store(on) })},
		{name: "SLEEP", min: 1, max: 1, usage: "<seconds>", summary: "Holds all keys for so long, as if something took that long.",
			keyspace: true, long: true, stalls: true, run: debugSleep},
		{name: "STOP-SAVING", run: debugStopSaving,
			summary: "Has the snapshot or the rewrite fail that is under way, as Redis's does when its child is killed."},
	}
}

// debugSwitch turns something on or off.
func debugSwitch(set func(f *family, c *command.Ctx, on bool)) func(*family, *command.Ctx) {
	return func(f *family, c *command.Ctx) {
		n, _ := strconv.Atoi(string(c.Args[2])) // a text that is no number counts as 0, as in Redis
		set(f, c, n != 0)
		c.OK()
	}
}

func (f *family) debugRow() *command.Command {
	return &command.Command{
		Name: "debug", Arity: -2, Group: command.GroupServer, Since: "1.0.0",
		Flags:      command.Admin | command.NoScript | command.Loading | command.Stale | command.System,
		Summary:    "Commands for testing.",
		Complexity: "That of the subcommand",
		Plan: func(c *command.Ctx, set *engine.LockSet) (long bool) {
			d := findDebug(c.Args)
			switch {
			case d == nil, d.stalls && c.Script: // a script keeps the locks that it has
				return false
			case d.keyspace:
				set.AddAll()
			case d.key:
				for _, key := range c.Args[2:] {
					set.AddKey(key)
				}
			}
			return d.long
		},
		Run: f.debug,
	}
}

// findDebug finds the kind that the arguments name, nil if no such kind takes that many arguments.
func findDebug(args [][]byte) *debugCommand {
	for _, d := range debugCommands() {
		if n := len(args) - 2; n >= d.min && n <= d.max && command.EqualFold(args[1], d.name) {
			return &d
		}
	}
	return nil
}

func (f *family) debug(c *command.Ctx) {
	if !f.debugAllowed(c) {
		c.Error(`ERR DEBUG command not allowed. If the enable-debug-command option is set to "local", you can run it from a local connection, otherwise you need to set this option in the configuration file, and then restart the server.`)
		return
	}
	d := findDebug(c.Args)
	if d == nil {
		c.Error(command.ErrSubcommandSyntax("DEBUG", c.Args[1]))
		return
	}
	if d.waits && f.s.Loading.On() && c.Session.Conn != nil {
		c.Error(command.ErrLoading)
		return
	}
	d.run(f, c)
}

func (f *family) debugAllowed(c *command.Ctx) bool {
	if c.Session.Conn == nil { // a command from a journal was allowed before
		return true
	}
	switch *f.from.Load() {
	case "yes":
		return true
	case "local":
		return c.Session.Local()
	}
	return false
}

func debugHelp(_ *family, c *command.Ctx) {
	all := debugCommands()
	c.Array(1 + 2*len(all))
	c.Status("DEBUG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:")
	for _, d := range all {
		c.Status(strings.TrimSpace(d.name + " " + d.usage))
		c.Status("    " + d.summary)
	}
}

// nodeBytesMax is the largest QUICKLIST-PACKED-THRESHOLD.
const nodeBytesMax = 1<<32 - 1<<20

func debugPacked(f *family, c *command.Ctx) {
	n, err := params.ParseMemory(string(c.Args[2]))
	if err != nil || n > nodeBytesMax {
		c.Error("ERR argument must be a memory value bigger than 1 and smaller than 4gb")
		return
	}
	f.s.Config.List().Large.Store(n)
	c.OK()
}

// flushSleepMax is the longest DEBUG AOF-FLUSH-SLEEP in microseconds.
const flushSleepMax = 60_000_000

func debugFlushSleep(f *family, c *command.Ctx) {
	micros, _ := strconv.ParseInt(string(c.Args[2]), 10, 64) // a text that is no number counts as 0, as in Redis
	f.s.Persistence.SlowLog(time.Duration(min(max(micros, 0), flushSleepMax)) * time.Microsecond)
	c.OK()
}

func debugStopSaving(f *family, c *command.Ctx) {
	if !f.s.Persistence.StopSaving() {
		c.Error("ERR nothing is being saved in the background")
		return
	}
	c.OK()
}

// debugSleepMax is the longest DEBUG SLEEP in seconds.
const debugSleepMax = 24 * 3600

func debugSleep(_ *family, c *command.Ctx) {
	// A text that is no number counts as 0, as in Redis.
	if seconds, err := strconv.ParseFloat(string(c.Args[2]), 64); err == nil && seconds > 0 {
		time.Sleep(time.Duration(min(seconds, debugSleepMax) * float64(time.Second)))
	}
	c.OK()
}

// debugObject shows an entry in Redis's form, without addresses.
func debugObject(f *family, c *command.Ctx) {
	e := c.Find(c.Args[2]) // also an entry that has expired
	if !e.Ok() {
		c.Error(command.ErrNoSuchKey)
		return
	}
	dump := rdb.AppendDump(nil, e, rdb.Format{Compress: true, AppendScore: number.AppendDouble})
	length := len(dump) - 1 - rdb.FooterBytes
	c.Status(fmt.Sprintf("Value at:0x0 refcount:1 encoding:%s serializedlength:%d lru:%d lru_seconds_idle:%d%s",
		value.Encoding(e), length, e.LastAccess()&(1<<24-1), max(0, c.Now/1e6-e.LastAccess()), f.nodes(e)))
}

// nodes describes the nodes of a quicklist. It reports inner nodes as compressed if the parameter says so, as DUMP does; in
// memory no node is.
func (f *family) nodes(e engine.Entry) string {
	l, ok := e.Object().(*list.List)
	if !ok || l.NodeSize() == 0 {
		return ""
	}
	n, size, compressed := 0, 0, 0
	l.Nodes(func(data []byte, _ bool) {
		n++
		size += len(data)
	})
	if f.s.Config.Value("list-compress-depth") != "0" {
		compressed = 1
	}
	return fmt.Sprintf(" ql_nodes:%d ql_avg_node:%.2f ql_listpack_max:%d ql_compressed:%d ql_uncompressed_size:%d",
		n, float64(l.Len())/float64(n), l.NodeSize(), compressed, size)
}

// debugChangeReplID changes the replication ID, which identifies the server's data to its replicas.
func debugChangeReplID(f *family, c *command.Ctx) {
	f.s.Replication.Rename()
	c.OK()
}

// debugSegfault lets users see how their system reacts when a server crashes.
func debugSegfault(f *family, c *command.Ctx) {
	p, err := os.FindProcess(os.Getpid())
	if !f.s.Ends() || c.Session.Conn == nil {
		err = errors.New("the server is part of another program")
	}
	if err == nil {
		err = p.Signal(syscall.SIGSEGV)
	}
	if err != nil {
		c.Error("ERR " + err.Error())
		return
	}
	c.OK()
}

// populateMax is how many keys DEBUG POPULATE makes at most.
const populateMax = 1 << 26

func debugPopulate(_ *family, c *command.Ctx) {
	a := c.Cursor(2)
	count := a.IntRange(0, populateMax, command.ErrOutOfRange)
	prefix := []byte("key")
	if a.More() {
		prefix = a.Bytes()
	}
	var size int64
	if a.More() {
		size = a.IntRange(0, 512<<20, command.ErrOutOfRange)
	}
	if a.Failed(c) {
		return
	}
	for i := range count {
		key := strconv.AppendInt(append(append([]byte(nil), prefix...), ':'), i, 10)
		if c.Peek(key).Ok() {
			continue
		}
		value := strconv.AppendInt([]byte("value:"), i, 10)
		if size > 0 {
			padded := make([]byte, size)
			copy(padded, value)
			value = padded
		}
		c.PutString(key, value, 0)
		c.Modified(key)
	}
	c.NoEffect() // as in Redis, neither files nor replicas get these keys
	c.OK()
}

// protocolSamples are the replies of DEBUG PROTOCOL. They are Redis's, because clients' tests expect those.
var protocolSamples = []struct {
	name  string
	reply func(c *command.Ctx)
}{
	{"string", func(c *command.Ctx) { c.BulkString("Hello World") }},
	{"integer", func(c *command.Ctx) { c.Int(12345) }},
	{"double", func(c *command.Ctx) { c.Double(3.141) }},
	{"bignum", func(c *command.Ctx) { c.BigNumber("1234567999999999999999999999999999999") }},
	{"null", func(c *command.Ctx) { c.Null() }},
	{"array", func(c *command.Ctx) { c.Array(3); threeInts(c) }},
	{"set", func(c *command.Ctx) { c.Set(3); threeInts(c) }},
	{"map", func(c *command.Ctx) {
		c.Map(3)
		for i := range 3 {
			c.Int(int64(i))
			c.Bool(i == 1)
		}
	}},
	{"attrib", func(c *command.Ctx) {
		if c.Proto == 3 {
			c.Attribute(1)
			c.BulkString("key-popularity")
			c.Array(2)
			c.BulkString("key:123")
			c.Int(90)
		}
		c.BulkString("Some real reply following the attribute")
	}},
	{"push", func(c *command.Ctx) {
		if c.Proto != 3 {
			c.Error("ERR RESP2 is not supported by this command")
			return
		}
		c.PushOwn(func(w *resp.Writer) {
			w.Push(2)
			w.BulkString("server-cpu-usage")
			w.Int(42)
		})
		c.BulkString("Some real reply following the push reply")
	}},
	{"verbatim", func(c *command.Ctx) { c.Verbatim("txt", "This is a verbatim\nstring") }},
	{"true", func(c *command.Ctx) { c.Bool(true) }},
	{"false", func(c *command.Ctx) { c.Bool(false) }},
}

func protocolNames() (names []string) {
	for _, s := range protocolSamples {
		names = append(names, s.name)
	}
	return names
}

func threeInts(c *command.Ctx) {
	for i := range 3 {
		c.Int(int64(i))
	}
}

func debugProtocol(_ *family, c *command.Ctx) {
	for _, s := range protocolSamples {
		if command.Lower(c.Args[2]) == s.name {
			s.reply(c)
			return
		}
	}
	c.Error("ERR Wrong protocol type name. Please use one of the following: " + strings.Join(protocolNames(), "|"))
}
