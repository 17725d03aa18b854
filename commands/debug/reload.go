package debug

// DEBUG RELOAD and LOADAOF write all keys and read them back. Redis's tests use them to find out whether values survive that.

import (
	"bytes"
	"io"
	"os"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/dumpfile"
)

const errReload = "ERR Error trying to load the RDB dump, check server logs."

func debugReload(f *family, c *command.Ctx) {
	save, flush, merge := true, true, false
	for a := c.Cursor(2); a.More(); {
		switch {
		case a.Is("MERGE"):
			merge = true
		case a.Is("NOFLUSH"):
			flush = false
		case a.Is("NOSAVE"):
			save = false
		default:
			c.Error("ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options.")
			return
		}
	}
	c.NoEffect()                                    // the journal need not change
	defer func() { c.KS.Dirty.Add(-c.Changes()) }() // save points do not count these changes, as in Redis
	file, size, err := f.reloadFrom(c, save)
	if err != nil && save {
		c.Error("ERR")
		return
	}
	if err != nil && flush { // as in Redis, which opens the file after it flushed
		c.FlushAll()
		_ = f.s.Functions.LoadCode(c, nil, true, true)
		other(c, true)
		if c.Logging() {
			c.LogBefore([]byte("FUNCTION"), []byte("FLUSH"))
		}
	}
	if err == nil {
		defer file.Close()
		if !save { // a damaged file changes nothing
			err = dumpfile.Check(c, file, size)
		}
	}
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		f.s.Logf('w', "DEBUG RELOAD: %v", err)
		c.Error(errReload)
		return
	}
	if !flush && !merge {
		clashes, err := dumpfile.Clashes(c, file, size)
		if err == nil {
			_, err = file.Seek(0, io.SeekStart)
		}
		if clashes || err != nil {
			c.Error(errReload)
			return
		}
	}
	f.s.Loading.Begin(c.Now, false)
	defer f.s.Loading.End()
	f.s.Loading.Expect(size)
	if flush {
		over(c)
		c.FlushAll()
	}
	if err := dumpfile.Enter(c, file, size, flush, merge); err != nil {
		f.s.Logf('w', "DEBUG RELOAD: %v", err)
		c.Error(errReload)
		return
	}
	if !save {
		other(c, flush)
	}
	f.s.Logf('n', "DB reloaded by DEBUG RELOAD")
	c.OK()
}

// over logs the removal of expired keys, which are missing in the file that is read back. All shards are locked.
func over(c *command.Ctx) {
	if !c.Logging() {
		return
	}
	defer func(db int) { c.DB = db }(c.DB)
	for c.DB = range c.KS.Databases() {
		c.EachStored(func(e engine.Entry) {
			if at := e.Deadline(); at != 0 && at <= c.Now/1000 {
				c.KS.Causes.Gone(&c.View, e.Key(), false)
			}
		})
	}
}

// other logs all keys after a file was read, because they are not those from before. All shards are locked.
func other(c *command.Ctx, flushed bool) {
	if !c.Logging() {
		return
	}
	if flushed {
		c.LogBefore([]byte("FLUSHALL"))
	}
	defer func(db int) { c.DB = db }(c.DB)
	for c.DB = range c.KS.Databases() {
		c.EachStored(func(e engine.Entry) { c.KS.Causes.Image(&c.View, e.Key()) })
	}
}

// reloadFrom returns the file to read back: dbfilename, written first if save is set, or a file in memory so that tests leave
// nothing behind.
func (f *family) reloadFrom(c *command.Ctx, save bool) (file io.ReadSeekCloser, size int64, err error) {
	if c.KS == f.s.Keyspace && !f.s.TestMode {
		if save {
			if err := f.s.Persistence.SaveFile(c); err != nil {
				return nil, 0, err
			}
		}
		disk, err := os.Open(f.s.Config.Value("dbfilename"))
		if err != nil {
			return nil, 0, err
		}
		info, err := disk.Stat()
		if err != nil {
			_ = disk.Close()
			return nil, 0, err
		}
		return disk, info.Size(), nil
	}
	saved := f.saved.Of(c.KS)
	if save || *saved == nil {
		var b bytes.Buffer
		if err := dumpfile.Write(c, &b, dumpfile.What{}); err != nil {
			return nil, 0, err
		}
		*saved = b.Bytes()
	}
	return inMemory{bytes.NewReader(*saved)}, int64(len(*saved)), nil
}

// inMemory is a file that need not be closed.
type inMemory struct{ io.ReadSeeker }

func (inMemory) Close() error { return nil }

// debugLoadAOF locks no keys: the log's commands lock them. Clients learn that the server loads.
func debugLoadAOF(f *family, c *command.Ctx) {
	if !c.CanBlock() {
		c.Error("ERR DEBUG LOADAOF isn't allowed in a transaction or a script")
		return
	}
	c.NoEffect()
	flush := func(c *command.Ctx) {
		c.FlushAll()
		c.NoEffect() // the log is read next
		c.EndCommand(nil)
	}
	if err := f.s.Persistence.ReloadLog(flush); err != nil {
		f.s.Logf('w', "DEBUG LOADAOF: %v", err)
		c.Error("ERR Error trying to load the AOF files, check server logs.")
		return
	}
	f.s.Logf('n', "Append Only File loaded by DEBUG LOADAOF")
	c.OK()
}
