package server

// SYNC for redis-cli --rdb and --cluster backup, which fetch all that the server
// has as a file that redis-server loads: the way to take data away, for nothing
// is saved here. Such a client says REPLCONF rdb-only first, or nothing at all. A
// replica says more about itself, and is refused. All wait while the file is
// made, as for SAVE in Redis; it is made in memory.

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/limitkv/limitkv/commands/command"
)

// export is what a session has said that it wants of SYNC.
type export struct {
	only                bool // the file, and nothing after it
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
			c.Error("ERR " + noReplica)
			return
		}
	}
	c.Session.Keep(exportKey{}, &x)
	c.OK()
}

// sync replies with the file, which no line end follows, and closes.
func (f *family) sync(c *command.Ctx) {
	if !c.CanBlock() { // a file is not a reply that a script or EXEC can pass on
		c.Error("ERR " + noReplica)
		return
	}
	x, _ := c.Session.Slot(exportKey{}, nil).(*export)
	switch {
	case x == nil:
		x = &export{}
	case !x.only: // a replica, or who wants to be one
		c.Error("ERR " + noReplica)
		return
	}
	var file bytes.Buffer
	if _, err := f.writeFile(c, &file, !x.noData, !x.noFunctions); err != nil {
		c.Error("ERR " + err.Error())
		return
	}
	c.Raw([]byte("$" + strconv.Itoa(file.Len()) + "\r\n"))
	c.Raw(file.Bytes())
	c.Session.Closing = true
}
