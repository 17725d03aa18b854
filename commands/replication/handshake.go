package replication

// What a replica says first, and where it begins: REPLCONF, PSYNC, SYNC.

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/limitkv/limitkv/replication"
	"github.com/limitkv/limitkv/resp/number"
	"github.com/limitkv/limitkv/resp/words"
	"github.com/limitkv/limitkv/server/command"
)

// addressMax is how long the address may be that a replica says it has.
const addressMax = 255

func (f *family) replconf(c *command.Ctx) {
	if len(c.Args)%2 == 0 {
		c.Error(command.ErrSyntax)
		return
	}
	p := peerOf(c.Session)
	for i := 1; i < len(c.Args); i += 2 {
		switch name, value := c.Args[i], c.Args[i+1]; command.Lower(name) {
		case "ack":
			f.ack(c, i)
			return
		case "getack": // what a primary asks of its replica
			return
		default:
			if text := p.says(name, value); text != "" {
				c.Error(text)
				return
			}
		}
	}
	c.OK()
}

// says takes over a pair of REPLCONF, or returns the error.
func (p *peer) says(name, value []byte) string {
	switch command.Lower(name) {
	case "listening-port":
		n, ok := number.ParseInt(value)
		if !ok {
			return command.ErrNotInt
		}
		p.port = n
	case "ip-address":
		if len(value) > addressMax {
			return fmt.Sprintf("ERR REPLCONF ip-address provided by replica instance is too long: %d bytes", len(value))
		}
		p.ip = string(value)
	case "capa": // those that are not known are passed over
		switch command.Lower(value) {
		case "eof":
			p.eof = true
		case "psync2":
			p.psync2 = true
		case "limitkv":
			p.native = true
		}
	case "version":
		if n, ok := parseVersion(string(value)); ok {
			p.version = n
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
		p.only = n == 1
	case "rdb-filter-only":
		parts, ok := words.Split(string(value))
		if !ok {
			return "ERR Missing rdb-filter-only values"
		}
		p.noKeys, p.noFunctions = true, true
		for _, part := range parts {
			if !strings.EqualFold(part, "functions") {
				return "ERR Unsupported rdb-filter-only option: " + part
			}
			p.noFunctions = false
		}
	default:
		return "ERR Unrecognized REPLCONF option: " + command.Repeat(name, len(name))
	}
	return ""
}

// errNotFlag is the error for a number that is to be 0 or 1.
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
	r := replicaOf(c.Session)
	if r == nil {
		return
	}
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
	r.acknowledged(offset, synced)
	f.countGood()
	f.look()
}

// peerName is how the log calls who asks.
func peerName(sess *command.Session, p *peer) string {
	if p.port == 0 {
		return fmt.Sprintf("client id #%d", sess.ID)
	}
	ip := p.ip
	if ip == "" {
		ip = sess.Conn.Remote().Addr().Unmap().String()
	}
	return ip + ":" + strconv.FormatInt(p.port, 10)
}

const errPending = "ERR SYNC and PSYNC are invalid with pending output"

// mayAsk tells whether a session may become a replica. If not, the reply is there, or there is none.
func (f *family) mayAsk(c *command.Ctx) bool {
	sess := c.Session
	switch p := peerOf(sess); {
	case !c.CanBlock(): // only where scripts may call everything
		c.Error("ERR a replica's connection cannot begin inside a script or a transaction")
	case replicaOf(sess) != nil: // Redis, too, says nothing
		return false
	case sess.Namespace() != nil:
		c.Error("ERR a namespace is not replicated")
	case f.failingOver():
		c.Error("NOMASTERLINK Can't SYNC while failing over")
	case f.follower.down():
		c.Error("NOMASTERLINK Can't SYNC while not connected with my master")
	case c.Mark > 0 || sess.Conn.Loop >= 0 && sess.Conn.OutputBytes() > 0:
		c.Error(errPending)
	case (p.noKeys || p.noFunctions) && !p.eof:
		c.Error("ERR Filtered replica requires EOF capability")
	default:
		return true
	}
	return false
}

func (f *family) psync(c *command.Ctx) {
	if len(c.Args) > 3 && command.EqualFold(c.Args[3], "FAILOVER") && c.CanBlock() && replicaOf(c.Session) == nil {
		if text := f.promoted(c); text != "" {
			c.Error(text)
			return
		}
	}
	if !f.mayAsk(c) {
		return
	}
	from, ok := number.ParseInt(c.Args[2])
	p := peerOf(c.Session)
	name := peerName(c.Session, p)
	f.s.Logf('n', "Replica %s asks for synchronization", name)
	if !ok {
		f.s.Logf('w', "Replica %s asks for synchronization but with a wrong offset", name)
		c.Error(command.ErrNotInt)
		return
	}
	id := command.Repeat(c.Args[1], command.RepeatBytesMax)
	r := f.newReplica(c.Session, *p)
	cursor, why := f.stream.FollowFrom(id, from, r.more)
	if cursor == nil {
		f.logRefusal(id, from, name, why)
		if !strings.HasPrefix(id, "?") {
			f.refused.Add(1)
		}
		f.askSnapshot(r)
		return
	}
	f.partial.Add(1)
	f.activate()
	r.head = []byte("+CONTINUE\r\n")
	if p.psync2 {
		r.head = []byte("+CONTINUE " + f.stream.State().ID + "\r\n")
	}
	f.s.Logf('n', "Partial resynchronization request from %s accepted. Sending %d bytes of backlog starting from offset %d.", name, cursor.Lag(), from)
	r.begin(cursor)
	r.state.Store(int32(online))
	f.enter(r)
}

func (f *family) logRefusal(id string, from int64, name string, why replication.Refusal) {
	st := f.stream.State()
	switch {
	case strings.HasPrefix(id, "?"):
		f.s.Logf('n', "Full resync requested by replica %s", name)
	case why == replication.OtherID:
		f.s.Logf('n', "Partial resynchronization not accepted: Replication ID mismatch (Replica asked for '%s', my replication IDs are '%s' and '%s')", id, st.ID, st.ID2)
	case why == replication.SecondPassed:
		f.s.Logf('n', "Partial resynchronization not accepted: Requested offset for second ID was %d, but I can reply up to %d", from, st.Second)
	default:
		f.s.Logf('n', "Unable to partial resync with replica %s for lack of backlog (Replica request was: %d).", name, from)
		if from > st.Offset {
			f.s.Logf('w', "Warning: replica %s tried to PSYNC with an offset that is greater than the master replication offset.", name)
		}
	}
}

// sync is PSYNC of old replicas, and of programs that fetch a snapshot.
func (f *family) sync(c *command.Ctx) {
	if !f.mayAsk(c) {
		return
	}
	p := *peerOf(c.Session)
	f.s.Logf('n', "Replica %s asks for synchronization", peerName(c.Session, &p))
	r := f.newReplica(c.Session, p)
	r.old = true
	f.askSnapshot(r)
}

// native tells whether a command is for limitkv alone: its name has a dot, or it restores a value of a type that Redis
// does not have.
func native(cmd []byte) bool {
	name, rest := replication.Word(cmd, true)
	if bytes.IndexByte(name, '.') >= 0 {
		return true
	}
	if len(name) < len("RESTORE") || !command.EqualFold(name[:len("RESTORE")], "RESTORE") { // or RESTORE-ASKING
		return false
	}
	var payload []byte
	for range 3 {
		payload, rest = replication.Word(rest, false)
	}
	return len(payload) > 0 && payload[0] == moduleType
}

// moduleType is the first byte of a payload with the value of a module, which those of limitkv's own types are for Redis.
const moduleType = 7
