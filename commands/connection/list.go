package connection

// CLIENT LIST, INFO and KILL: looking at connections and ending them.

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/limitkv/limitkv/resp"
	"github.com/limitkv/limitkv/resp/number"
	"github.com/limitkv/limitkv/server/command"
)

func (f *family) listRow(acl []string, flags command.Flags) *command.Command {
	return &command.Command{
		Name: "list", Arity: -2, Since: "2.4.0", Flags: flags | command.Admin, ACL: acl,
		Summary:    "Shows the connections, one a line.",
		Complexity: "O(N) in the number of connections",
		Tips:       []string{"nondeterministic_output"},
		Syntax:     "[TYPE client-type=(normal | master | replica | pubsub)] [ID client-id:integer...]",
		Run:        f.list,
	}
}

func (f *family) clientInfo(c *command.Ctx) {
	mark := c.Writer.Mark()
	c.Buf = appendClient(c.Buf, c, c.Session)
	c.MakeVerbatim(mark, "txt")
}

func (f *family) list(c *command.Ctx) {
	a := c.Cursor(2)
	var sessions []*command.Session
	switch {
	case a.Left() == 0:
		sessions = f.s.ClientsOf(c.Session)
	case a.Left() == 2 && a.Is("TYPE"):
		class, ok := clientType(&a)
		if !ok {
			break
		}
		for _, s := range f.s.ClientsOf(c.Session) {
			if class.matches(s) {
				sessions = append(sessions, s)
			}
		}
	case a.Left() > 1 && a.Is("ID"):
		for a.More() {
			if s := f.s.Clients.Get(a.IntOr("ERR Invalid client ID")); s != nil {
				sessions = append(sessions, s)
			}
		}
	default:
		a.Syntax()
	}
	if a.Failed(c) {
		return
	}
	mark := c.Writer.Mark()
	for _, s := range sessions {
		c.Buf = appendClient(c.Buf, c, s)
	}
	c.MakeVerbatim(mark, "txt")
}

// class is a type of clients as TYPE names them.
type class uint8

const (
	anyClass class = iota
	normalClass
	masterClass
	replicaClass
	pubsubClass
)

var classByName = map[string]class{"normal": normalClass, "master": masterClass, "slave": replicaClass, "replica": replicaClass, "pubsub": pubsubClass}

// clientType reads a type's name.
func clientType(a *command.Args) (class, bool) {
	name := a.Bytes()
	cl, ok := classByName[command.Lower(name)]
	if !ok {
		a.Fail("ERR Unknown client type '" + string(name) + "'")
	}
	return cl, ok
}

// matches tells whether a session is of the class. A client that monitors is a normal
// one.
func (cl class) matches(s *command.Session) bool {
	subscribed, replica := s.Subscriptions.Load() > 0, s.Shown.Flags.Load()&command.ShownReplica != 0
	switch primary := s.Conn == nil; cl {
	case normalClass:
		return !subscribed && !replica && !primary
	case pubsubClass:
		return subscribed && !replica
	case masterClass:
		return primary
	case replicaClass:
		return replica
	default:
		return true
	}
}

var flagLetters = []struct {
	bit    uint32
	letter byte
}{
	{command.ShownReplica, 'S'}, {command.ShownMonitor, 'O'},
	{command.ShownTracking, 't'}, {command.ShownTrackingBroken, 'R'}, {command.ShownTrackingBroadcast, 'B'},
	{command.ShownUnixSocket, 'U'}, {command.ShownNoEvict, 'e'}, {command.ShownNoTouch, 'T'},
}

// letters are the flags of a session in the order in which Redis shows them:
// S O M P x b t R B d U e T, or N for none.
func letters(s *command.Session) string {
	var b []byte
	bits := s.Shown.Flags.Load()
	put := func(on bool, letter byte) {
		if on {
			b = append(b, letter)
		}
	}
	for _, f := range flagLetters {
		put(bits&f.bit != 0, f.letter)
		switch f.letter {
		case 'O':
			put(s.Conn == nil, 'M')
			put(s.Subscriptions.Load() > 0, 'P')
			put(s.Shown.Multi.Load() > 0, 'x')
			put(s.Blocked.Load() != nil, 'b')
		case 'B':
			put(s.Multi.Watcher.Dirty(), 'd')
		}
	}
	if b == nil {
		return "N"
	}
	return string(b)
}

// Show is a session's line without the line's end, for the others.
func (f *family) Show(c *command.Ctx, s *command.Session) string {
	return strings.TrimSuffix(string(appendClient(nil, c, s)), "\n")
}

// appendClient appends a session's line. What belongs to the protocol's
// buffers in Redis and has no like here (rbs, rbp, obl, oll) is 0.
func appendClient(b []byte, c *command.Ctx, s *command.Session) []byte {
	conn := s.Conn
	if conn == nil { // a primary's
		conn = new(resp.Conn)
	}
	qbuf, args, cmd := conn.QueryBytes(), 0, "NULL"
	remote, local := s.Addresses()
	user := s.UserName()
	if s.Conn == nil {
		user = "(superuser)"
	}
	if w := s.Blocked.Load(); w != nil {
		args = command.ArgBytes(w.Args)
	}
	if s == c.Session {
		args = command.ArgBytes(c.Args)
		qbuf = max(qbuf, int64(requestBytes(c.Args)))
	}
	if last := s.LastCommand(); last != nil {
		cmd = last.FullName()
	}
	lib, version := s.Lib()
	shown := &s.Shown
	omem := conn.OutputBytes()
	events := "r"
	if omem > 0 {
		events = "rw"
	}
	l := line(b)
	l.number("id=", s.ID)
	l.text(" addr=", remote)
	l.text(" laddr=", local)
	l.number(" fd=", int64(conn.Fd))
	l.text(" name=", s.Name())
	l.number(" age=", (c.Now-s.Created)/1e6)
	l.number(" idle=", max(0, c.Now-max(s.LastUsed.Load(), s.Created))/1e6)
	l.text(" flags=", letters(s))
	l.number(" db=", int64(s.DB()))
	l.number(" sub=", int64(shown.Subs.Load()))
	l.number(" psub=", int64(shown.PSubs.Load()))
	l.number(" ssub=", int64(shown.SSubs.Load()))
	l.number(" multi=", int64(shown.Multi.Load()-1))
	l.number(" watch=", int64(s.Watching()))
	l.number(" qbuf=", qbuf)
	l.number(" qbuf-free=0 argv-mem=", int64(args))
	l.number(" multi-mem=", conn.QueuedBytes.Load()+pointerBytes*int64(shown.Words.Load()))
	l.number(" rbs=0 rbp=0 obl=0 oll=0 omem=", omem)
	l.number(" tot-mem=", bytesOf(s)+conn.SharedBytes()+qbuf-conn.QueryBytes()+int64(args))
	l.text(" events=", events)
	l.text(" cmd=", cmd)
	l.text(" user=", user)
	l.number(" redir=", shown.Redirect.Load()-1)
	l.number(" resp=", int64(s.Proto()))
	l.text(" lib-name=", lib)
	l.text(" lib-ver=", version)
	l.number(" io-thread=", int64(conn.Loop+1))
	return append(l, '\n')
}

// line is a session's, field by field.
type line []byte

func (l *line) text(name, value string) { *l = append(append(*l, name...), value...) }

func (l *line) number(name string, n int64) { *l = strconv.AppendInt(append(*l, name...), n, 10) }

// bytesOf is what a session takes; a primary's, which has no connection like the others, is not counted.
func bytesOf(s *command.Session) int64 {
	if s.Conn == nil {
		return 0
	}
	return s.Bytes()
}

// pointerBytes is what Redis counts for each queued argument besides its bytes.
const pointerBytes = 8

// requestBytes is how long a command is on the wire.
func requestBytes(args [][]byte) int {
	n := len("*\r\n") + len(strconv.Itoa(len(args)))
	for _, a := range args {
		n += len("$\r\n\r\n") + len(strconv.Itoa(len(a))) + len(a)
	}
	return n
}

func (f *family) killRow(acl []string, flags command.Flags) *command.Command {
	return &command.Command{
		Name: "kill", Arity: -3, Since: "2.4.0", Flags: flags | command.Admin, ACL: acl,
		Summary:    "Ends connections.",
		Complexity: "O(N) in the number of connections",
		Syntax:     "filter=(old-format~ip:port:string | new-format=([ID client-id:integer] | [TYPE client-type=(normal | master | slave | replica | pubsub)] | [USER username:string] | [ADDR addr~ip:port:string] | [LADDR laddr~ip:port:string] | [SKIPME skipme=(YES | NO)] | [MAXAGE maxage:integer])...)",
		Run:        f.kill,
	}
}

// filter says which connections are meant.
type filter struct {
	addr, laddr []byte
	user        []byte
	class       class
	id          int64
	age         int64 // seconds, at least
	skipMe      bool
}

func (f *family) kill(c *command.Ctx) {
	old := len(c.Args) == 3
	var what filter
	if old {
		what.addr = c.Args[2]
	} else {
		what.skipMe = true
		a := c.Cursor(2)
		for a.More() {
			f.killOption(&what, &a)
		}
		if a.Failed(c) {
			return
		}
	}
	killed := 0
	for _, s := range f.s.ClientsOf(c.Session) {
		if what.matches(c, s) {
			f.end(c, s)
			killed++
		}
	}
	switch {
	case !old:
		c.Int(int64(killed))
	case killed == 0:
		c.Error("ERR No such client")
	default:
		c.OK()
	}
}

func (f *family) killOption(what *filter, a *command.Args) {
	switch {
	case a.IsWith("ID", 1):
		id, ok := number.ParseInt(a.Bytes())
		if !ok || id < 1 {
			a.Fail("ERR client-id should be greater than 0")
		}
		what.id = id
	case a.IsWith("MAXAGE", 1):
		what.age = a.IntOr("ERR maxage is not an integer or out of range")
		if a.Err() == "" && what.age <= 0 {
			a.Fail("ERR maxage should be greater than 0")
		}
	case a.IsWith("TYPE", 1):
		what.class, _ = clientType(a)
	case a.IsWith("ADDR", 1):
		what.addr = a.Bytes()
	case a.IsWith("LADDR", 1):
		what.laddr = a.Bytes()
	case a.IsWith("USER", 1):
		what.user = a.Bytes()
		if !f.s.ACL.UserExists(what.user) {
			a.Fail("ERR No such user '" + string(what.user) + "'")
		}
	case a.IsWith("SKIPME", 1):
		switch {
		case a.Is("YES"):
			what.skipMe = true
		case a.Is("NO"):
			what.skipMe = false
		default:
			a.Syntax()
		}
	default:
		a.Syntax()
	}
}

func (w *filter) matches(c *command.Ctx, s *command.Session) bool {
	remote, local := s.Addresses()
	switch {
	case w.addr != nil && remote != string(w.addr),
		w.laddr != nil && local != string(w.laddr),
		!w.class.matches(s),
		w.id != 0 && s.ID != w.id,
		w.user != nil && !bytes.Equal([]byte(s.UserName()), w.user),
		w.skipMe && s == c.Session,
		w.age != 0 && (c.Now-s.Created)/1e6 < w.age:
		return false
	}
	return true
}

// end ends a session: another's at once, the own one after the reply.
func (f *family) end(c *command.Ctx, s *command.Session) {
	if s == c.Session {
		s.Closing = true
		return
	}
	if s.Conn == nil {
		s.Peer.Drop()
		return
	}
	f.s.Kill(s)
}

// errSubcommand is the error for a subcommand with too many arguments, where
// its arity alone does not refuse them.
func errSubcommand(c *command.Ctx) string {
	return command.ErrSubcommandSyntax(strings.ToUpper(c.Cmd.Parent().Name), c.Args[1])
}
