package replication

// The commands with which a replica begins: REPLCONF, PSYNC, SYNC.

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/limitkv/limitkv/resp/number"
	"github.com/limitkv/limitkv/resp/words"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/replication"
)

// addressMax is the length of the longest address that a replica may announce.
const addressMax = 255

func (f *family) replconfRow() *command.Command {
	return &command.Command{
		Name: "replconf", Arity: -1, Group: command.GroupServer, Since: "3.0.0",
		Flags:      command.Admin | command.NoScript | command.Loading | command.Stale | command.AllowBusy | command.System,
		Summary:    "What a replica says of itself: for replicas.",
		Complexity: "O(1)",
		Run:        f.replconf,
	}
}

func (f *family) replconf(c *command.Ctx) {
	if len(c.Args)%2 == 0 {
		c.Error(command.ErrSyntax)
		return
	}
	p := replication.PeerOf(c.Session)
	for i := 1; i < len(c.Args); i += 2 {
		switch name, value := c.Args[i], c.Args[i+1]; command.Lower(name) {
		case "ack":
			f.ack(c, i)
			return
		case "getack": // what a primary asks of its replica
			return
		default:
			if text := says(p, name, value); text != "" {
				c.Error(text)
				return
			}
		}
	}
	c.OK()
}

// says stores a pair of REPLCONF's arguments, or returns the error.
func says(p *replication.Peer, name, value []byte) string {
	switch command.Lower(name) {
	case "listening-port":
		n, ok := number.ParseInt(value)
		if !ok {
			return command.ErrNotInt
		}
		p.Port = n
	case "ip-address":
		if len(value) > addressMax {
			return fmt.Sprintf("ERR REPLCONF ip-address provided by replica instance is too long: %d bytes", len(value))
		}
		p.IP = string(value)
	case "capa": // unknown ones are ignored
		switch command.Lower(value) {
		case "eof":
			p.EOF = true
		case "psync2":
			p.PSYNC2 = true
		case "limitkv":
			p.Native = true
		}
	case "version":
		if n, ok := parseVersion(string(value)); ok {
			p.Version = n
		} else {
			return "ERR Unrecognized version format: " + command.Repeat(value, command.RepeatBytesMax)
		}
	case "rdb-only":
		n, ok := number.ParseInt(value)
		switch {
		case !ok:
			return command.ErrNotInt
		case n < 0 || n > 1:
			return errNotFlag
		}
		p.Only = n == 1
	case "rdb-filter-only":
		parts, ok := words.Split(string(value))
		if !ok {
			return "ERR Missing rdb-filter-only values"
		}
		p.NoKeys, p.NoFunctions = true, true
		for _, part := range parts {
			if !strings.EqualFold(part, "functions") {
				return "ERR Unsupported rdb-filter-only option: " + part
			}
			p.NoFunctions = false
		}
	default:
		return "ERR Unrecognized REPLCONF option: " + command.Repeat(name, len(name))
	}
	return ""
}

// errNotFlag is the error for a number that must be 0 or 1.
const errNotFlag = "ERR value is out of range, value must between 0 and 1"

// parseVersion reads a version of Valkey, of three numbers below 256.
func parseVersion(text string) (n int64, ok bool) {
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return 0, false
	}
	for _, part := range parts {
		v, err := strconv.ParseUint(part, 10, 8)
		if err != nil {
			return 0, false
		}
		n = n<<8 | int64(v)
	}
	return n, true
}

// ack takes an acknowledgement, to which there is no reply.
func (f *family) ack(c *command.Ctx, i int) {
	offset, ok := number.ParseInt(c.Args[i+1])
	if !ok {
		return
	}
	synced := int64(0)
	if len(c.Args) > i+3 && command.EqualFold(c.Args[i+2], "FACK") {
		if synced, ok = number.ParseInt(c.Args[i+3]); !ok {
			return
		}
	}
	f.node.Acknowledged(c.Session, offset, synced)
}

const errPending = "ERR SYNC and PSYNC are invalid with pending output"

// mayAsk reports whether a session may become a replica. If not, it has replied the error, or no reply is sent.
func (f *family) mayAsk(c *command.Ctx) bool {
	sess := c.Session
	switch p := replication.PeerOf(sess); {
	case !c.CanBlock(): // possible only if scripts may call everything
		c.Error("ERR a replica's connection cannot begin inside a script or a transaction")
	case f.node.IsReplica(sess): // Redis does not reply either
		return false
	case sess.Namespace() != nil:
		c.Error("ERR a namespace is not replicated")
	case f.node.FailingOver():
		c.Error("NOMASTERLINK Can't SYNC while failing over")
	case f.node.PrimaryDown():
		c.Error("NOMASTERLINK Can't SYNC while not connected with my master")
	case c.Mark > 0 || sess.Conn.Loop >= 0 && sess.Conn.OutputBytes() > 0:
		c.Error(errPending)
	case (p.NoKeys || p.NoFunctions) && !p.EOF:
		c.Error("ERR Filtered replica requires EOF capability")
	default:
		return true
	}
	return false
}

// forReplicas are the flags of what only replicas call.
const forReplicas = command.NoAsyncLoading | command.Admin | command.NoMulti | command.NoScript

func (f *family) psyncRow() *command.Command {
	return &command.Command{
		Name: "psync", Arity: -3, Group: command.GroupServer, Since: "2.8.0", Flags: forReplicas | command.WholeKeyspace,
		Summary: "Makes the connection a replica's, which goes on where it left off if it can: for replicas.",
		Syntax:  "replicationid:string offset:integer",
		Run:     f.psync,
	}
}

func (f *family) psync(c *command.Ctx) {
	if len(c.Args) > 3 && command.EqualFold(c.Args[3], "FAILOVER") && c.CanBlock() && !f.node.IsReplica(c.Session) {
		if text := f.node.Promoted(c, c.Args[1]); text != "" {
			c.Error(text)
			return
		}
	}
	if !f.mayAsk(c) {
		return
	}
	from, ok := number.ParseInt(c.Args[2])
	name := replication.PeerOf(c.Session).Name(c.Session)
	f.s.Logf('n', "Replica %s asks for synchronization", name)
	if !ok {
		f.s.Logf('w', "Replica %s asks for synchronization but with a wrong offset", name)
		c.Error(command.ErrNotInt)
		return
	}
	f.node.Continue(c.Session, command.Repeat(c.Args[1], command.RepeatBytesMax), from)
}

func (f *family) syncRow() *command.Command {
	return &command.Command{
		Name: "sync", Arity: 1, Group: command.GroupServer, Since: "1.0.0", Flags: forReplicas,
		Summary: "Makes the connection a replica's, or sends it a snapshot: for old replicas, and for programs that fetch one.",
		Run:     f.sync,
	}
}

// sync is PSYNC of old replicas, and of programs that fetch a snapshot.
func (f *family) sync(c *command.Ctx) {
	if !f.mayAsk(c) {
		return
	}
	f.s.Logf('n', "Replica %s asks for synchronization", replication.PeerOf(c.Session).Name(c.Session))
	f.node.Sync(c.Session)
}
