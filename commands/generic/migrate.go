package generic

// MIGRATE sends keys to another server, which restores them from their DUMP payloads. It runs off the event loop with the
// keys' shards reserved. So it is as atomic as in Redis, and other clients are served meanwhile. Unlike Redis it does not
// keep the connection for the next time.

import (
	"bufio"
	"bytes"
	"errors"
	"net"
	"slices"
	"syscall"
	"time"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/rdb"
	"github.com/limitkv/limitkv/resp"
	"github.com/limitkv/limitkv/server/command"
)

const (
	// migrateMillis is the default time-out, migrateMillisMax the longest: that long others wait for the keys if the target
	// is silent.
	migrateMillis    = 1000
	migrateMillisMax = 24 * 60 * 60 * 1000
	// migrateLineMax is the longest reply that the target may give.
	migrateLineMax = 1024
)

func (d *dumper) migrateRow() *command.Command {
	return &command.Command{
		Name: "migrate", Arity: -6, Group: command.GroupGeneric, Since: "2.6.0",
		Flags: command.Write,
		ACL:   []string{"keyspace", "dangerous"},
		Keys: []command.KeySpec{
			command.Key(3, migrateKey),
			{Flags: migrateKey | command.Incomplete, Keyword: "KEYS", StartFrom: -2, Last: -1, Step: 1},
		},
		GetKeys:    migrateKeys,
		KeyFlags:   func([][]byte, int) command.KeyFlags { return migrateKey },
		Plan:       planMigrate,
		Summary:    "Moves or copies keys to another server.",
		Complexity: "That of DUMP here and RESTORE there, for each key",
		Tips:       varies,
		Syntax: `host:string port:integer key-selector=(key | empty-string=) destination-db:integer timeout:integer [COPY] [REPLACE] ` +
			`[authentication=(AUTH auth~password:string | AUTH2 auth2={username:string password:string})] [KEYS keys~key:key@1...]`,
		History: [][2]string{{"3.0.0", "COPY and REPLACE."}, {"3.0.6", "KEYS."}, {"4.0.7", "AUTH."}, {"6.0.0", "AUTH2."}},
		Secret:  migrateSecret,
		Run:     d.migrate,
	}
}

const migrateKey = command.RW | command.Access | command.Delete

// migrateWords are MIGRATE's options before KEYS, and how many arguments each has.
var migrateWords = map[string]int{"COPY": 0, "REPLACE": 0, "AUTH": 1, "AUTH2": 2}

// migrateKeys finds the keys: the key argument or, if it is empty, the arguments after KEYS.
func migrateKeys(args [][]byte) (keys []int) {
next:
	for i := 6; i < len(args); i++ {
		if command.EqualFold(args[i], "KEYS") {
			if len(args[3]) > 0 {
				return nil
			}
			for j := i + 1; j < len(args); j++ {
				keys = append(keys, j)
			}
			return keys
		}
		for word, n := range migrateWords {
			if command.EqualFold(args[i], word) {
				i += n
				continue next
			}
		}
	}
	return []int{3}
}

// migrateSecret hides passwords.
func migrateSecret(args [][]byte, i int) bool {
	return i > 6 && (command.EqualFold(args[i-1], "AUTH") || command.EqualFold(args[i-1], "AUTH2") || command.EqualFold(args[i-2], "AUTH2"))
}

// planMigrate reserves the keys' shards: the target may be slow.
func planMigrate(c *command.Ctx, set *engine.LockSet) (long bool) {
	for _, i := range migrateKeys(c.Args) {
		set.AddKey(c.Args[i])
	}
	return true
}

// migration is what MIGRATE's arguments say.
type migration struct {
	copy, replace  bool
	user, password []byte // nil if not given
	db, millis     int64
	keys           [][]byte
}

func parseMigrate(c *command.Ctx) (m migration, ok bool) {
	a := c.Cursor(6)
	m.keys = c.Args[3:4]
	for a.More() {
		switch {
		case a.Is("COPY"):
			m.copy = true
		case a.Is("REPLACE"):
			m.replace = true
		case a.IsWith("AUTH", 1):
			m.password = a.Bytes()
		case a.IsWith("AUTH2", 2):
			m.user, m.password = a.Bytes(), a.Bytes()
		case a.Is("KEYS"):
			if len(c.Args[3]) > 0 {
				a.Fail("ERR When using MIGRATE KEYS option, the key argument must be set to the empty string")
				break
			}
			m.keys = a.Rest()
		default:
			a.Syntax()
		}
	}
	if a.Err() == "" {
		a = command.ArgsOf(c.Args[5], c.Args[4])
		m.millis, m.db = a.Int(), a.Int()
	}
	if m.millis <= 0 {
		m.millis = migrateMillis
	}
	m.millis = min(m.millis, migrateMillisMax)
	return m, !a.Failed(c)
}

func (d *dumper) migrate(c *command.Ctx) {
	m, ok := parseMigrate(c)
	if !ok {
		return
	}
	if c.Script { // it may run on an event loop, which must not wait
		c.Error("ERR limitkv does not run MIGRATE in scripts")
		return
	}
	found := m.keys[:0:0]
	for _, key := range m.keys {
		if c.Get(key).Ok() {
			found = append(found, key)
		}
	}
	if m.keys = found; len(found) == 0 {
		c.Status("NOKEY")
		return
	}
	request, problem := d.request(c, &m)
	if problem == "" {
		problem = m.exchange(c, request)
	}
	if problem != "" {
		c.Error(problem)
		return
	}
	c.OK()
}

// request returns all bytes to send to the target: the password, the database, the keys.
func (d *dumper) request(c *command.Ctx, m *migration) (b []byte, problem string) {
	switch {
	case m.user != nil:
		b = resp.AppendCommand(b, []byte("AUTH"), m.user, m.password)
	case m.password != nil:
		b = resp.AppendCommand(b, []byte("AUTH"), m.password)
	}
	b = resp.AppendCommand(b, []byte("SELECT"), command.Number(m.db))
	restore := "RESTORE"
	if c.Server.Cluster {
		restore = "RESTORE-ASKING"
	}
	for _, key := range m.keys {
		e := c.Peek(key)
		payload := rdb.AppendDump(nil, e, d.Format())
		ttl := int64(0)
		if at := e.Deadline(); at != 0 {
			ttl = max(at-c.Now/1000, 1)
		}
		args := [][]byte{[]byte(restore), key, command.Number(ttl), payload}
		if m.replace {
			args = append(args, []byte("REPLACE"))
		}
		b = resp.AppendCommand(b, args...)
	}
	return b, ""
}

// target is a connection that closes when it is idle for too long.
type target struct {
	net.Conn
	idle *time.Timer
	wait time.Duration
}

func (t *target) Read(b []byte) (int, error) {
	t.idle.Reset(t.wait)
	return t.Conn.Read(b)
}

// chunkBytes is how much is written at once. Sending may take longer than the time-out, as long as it makes progress.
const chunkBytes = 64 << 10

func (t *target) send(b []byte) error {
	for chunk := range slices.Chunk(b, chunkBytes) {
		t.idle.Reset(t.wait)
		if _, err := t.Write(chunk); err != nil {
			return err
		}
	}
	return nil
}

// exchange sends the request, and deletes each key that the target confirms. It returns the text of the error, the first if
// there are several.
func (m *migration) exchange(c *command.Ctx, request []byte) (problem string) {
	wait := time.Duration(m.millis) * time.Millisecond
	dialer := net.Dialer{Timeout: wait}
	conn, err := dialer.Dial("tcp", net.JoinHostPort(string(c.Args[1]), string(c.Args[2])))
	const deaf = "IOERR error or timeout writing to target instance"
	switch {
	case errors.Is(err, syscall.ECONNREFUSED): // which Redis notices when it writes
		return deaf
	case err != nil:
		return "IOERR error or timeout connecting to the client"
	}
	defer conn.Close()
	t := &target{Conn: conn, wait: wait, idle: time.AfterFunc(wait, func() { conn.Close() })}
	defer t.idle.Stop()
	if t.send(request) != nil {
		return deaf
	}
	const silent = "IOERR error or timeout reading to target instance"
	r := bufio.NewReaderSize(t, migrateLineMax)
	// If the password or the database is refused, the replies about the keys do not count.
	refused := ""
	before := 1
	if m.password != nil {
		before = 2
	}
	for range before {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return silent
		}
		if line[0] == '-' && refused == "" {
			refused = repliedError(line)
		}
	}
	gone := [][]byte{[]byte("DEL")}
	for _, key := range m.keys {
		line, err := r.ReadSlice('\n')
		switch {
		case err != nil && problem == "":
			return silent
		case err != nil:
			return problem
		case refused != "":
			problem = refused
		case line[0] == '-':
			if problem == "" {
				problem = repliedError(line)
			}
		case !m.copy:
			c.Delete(key)
			c.Changed(key, engine.EventGeneric, "del")
			gone = append(gone, key)
		}
	}
	if len(gone) > 1 {
		c.Effect(gone...)
	}
	return problem
}

// repliedError is the error text for an error that the target replied.
func repliedError(line []byte) string {
	return "ERR Target instance replied with error: " + string(bytes.TrimRight(line[1:], "\r\n"))
}
