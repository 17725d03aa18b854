package server

// SYNC for redis-cli --rdb and --cluster backup, which fetch all that the server
// has as a file that redis-server loads: the way to take data away, for nothing
// is saved here. Such a client says REPLCONF rdb-only first, or nothing at all. A
// replica says more about itself, and is refused. All wait while the file is
// made, as for SAVE in Redis; it is made in memory.

import (
	"strconv"
	"strings"

	"github.com/limitkv/limitkv/commands/command"
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/rdb"
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
	file := rdb.NewFile(f.dumps.Format(),
		[2]string{"redis-ver", command.RedisVersion},
		[2]string{"redis-bits", strconv.Itoa(strconv.IntSize)},
		[2]string{"ctime", strconv.FormatInt(c.Now/1e6, 10)},
		[2]string{"used-mem", strconv.FormatUint(memoryUsage().objects, 10)},
		[2]string{"aof-base", "0"})
	if !x.noFunctions {
		for _, code := range f.s.Libraries(c.KS) {
			file.Library(code)
		}
	}
	if !x.noData && !f.exportKeys(c, file) {
		return
	}
	b := file.End()
	c.Raw([]byte("$" + strconv.Itoa(len(b)) + "\r\n"))
	c.Raw(b)
	c.Session.Closing = true
}

// exportKeys adds all keys. It reports false, with the error replied, if there is
// one that Redis has no type for: a file without it would be no copy.
func (f *family) exportKeys(c *command.Ctx, file *rdb.File) bool {
	db := c.DB
	defer func() { c.DB = db }()
	tally := c.Tally()
	for c.DB = range tally.DBs {
		st := &tally.DBs[c.DB]
		if st.Keys == 0 {
			continue
		}
		file.Database(c.DB, st.Keys, st.Expires)
		ok := true
		c.Each(func(e engine.Entry) bool {
			if ok = file.Key(e); !ok {
				c.Error("ERR the key " + strconv.Quote(string(e.Key())) + " of database " + strconv.Itoa(c.DB) + " has a value of type " +
					e.Kind().String() + ", which has no form in Redis's dump format")
			}
			return ok
		})
		if !ok {
			return false
		}
	}
	return true
}
