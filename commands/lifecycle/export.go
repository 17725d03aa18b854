package lifecycle

// SYNC for redis-cli --rdb and --cluster backup, which fetch all that the server
// has as a file. redis-server loads it if there are no limiters and delay queues in
// it. Such a client says REPLCONF rdb-only first, or nothing at all. A replica says
// more about itself, and is refused. All wait while the file is made, as for SAVE in
// Redis, but not while the client reads: so it is made in memory, in the reply
// itself if the client takes a file whose length it is not told before (capa eof).

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/limitkv/limitkv/commands/command"
	"github.com/limitkv/limitkv/commands/dumpfile"
)

// export is what a session has said that it wants of SYNC.
type export struct {
	only                bool // the file, and nothing after it
	marked              bool // the file may end with a mark
	noData, noFunctions bool
}

type exportKey struct{}

func (f *family) replconf(c *command.Ctx) {
	if len(c.Args)%2 == 0 {
		c.Error(command.ErrSyntax)
		return
	}
	x := *c.Session.Slot(exportKey{}, func() any { return &export{} }).(*export) // also where this is refused
	for i := 1; i < len(c.Args); i += 2 {
		switch value := c.Args[i+1]; command.Lower(c.Args[i]) {
		case "capa": // how the file may be sent
			x.marked = x.marked || command.EqualFold(value, "eof")
		case "rdb-only":
			n, err := strconv.Atoi(string(value))
			if err != nil || n < 0 || n > 1 {
				c.Error("ERR value is out of range, must be between 0 and 1")
				return
			}
			x.only = n == 1
		case "rdb-filter-only":
			x.noData, x.noFunctions = true, true
			for _, part := range strings.Fields(string(value)) {
				if !strings.EqualFold(part, "functions") {
					c.Error("ERR Unsupported rdb-filter-only option: " + part)
					return
				}
				x.noFunctions = false
			}
		default:
			c.Error("ERR " + command.NoReplication)
			return
		}
	}
	c.Session.Keep(exportKey{}, &x)
	c.OK()
}

// sync replies with the file, which no line end follows, and closes.
func (f *family) sync(c *command.Ctx) {
	if !c.CanBlock() { // a file is not a reply that a script or EXEC can pass on
		c.Error("ERR " + command.NoReplication)
		return
	}
	x, _ := c.Session.Slot(exportKey{}, nil).(*export)
	switch {
	case x == nil:
		x = &export{}
	case !x.only: // a replica, or who wants to be one
		c.Error("ERR " + command.NoReplication)
		return
	}
	c.Session.Closing = true
	what := dumpfile.What{NoKeys: x.noData, NoFunctions: x.noFunctions}
	if x.marked {
		var random [markBytes / 2]byte
		_, _ = rand.Read(random[:]) // it does not fail
		mark := hex.EncodeToString(random[:])
		c.Raw([]byte("$EOF:" + mark + "\r\n"))
		_ = dumpfile.Write(c, replyWriter{c}, what) // which does not fail either
		c.Raw([]byte(mark))
		return
	}
	var file bytes.Buffer
	_ = dumpfile.Write(c, &file, what)
	c.Raw([]byte("$" + strconv.Itoa(file.Len()) + "\r\n"))
	c.Raw(file.Bytes())
}

// markBytes is the length of the mark that a file ends with.
const markBytes = 40

// replyWriter appends to a reply.
type replyWriter struct{ c *command.Ctx }

func (w replyWriter) Write(b []byte) (int, error) {
	w.c.Raw(b)
	return len(b), nil
}
