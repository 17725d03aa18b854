package debug

// DEBUG RELOAD: all keys and functions, written in Redis's dump format and read back. Redis's tests use it to find out
// whether a value survives that. What it saves stays in memory; with NOSAVE it reads dbfilename, if there is such a file.

import (
	"bytes"
	"io"
	"os"

	"github.com/limitkv/limitkv/commands/command"
	"github.com/limitkv/limitkv/commands/dumpfile"
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
	saved := f.saved.Of(c.KS)
	if save || *saved == nil {
		var file bytes.Buffer
		if err := dumpfile.Write(c, &file, dumpfile.What{}); err != nil {
			c.Error(errReload)
			return
		}
		*saved = file.Bytes()
	}
	var file io.ReadSeeker = bytes.NewReader(*saved)
	size := int64(len(*saved))
	if !save {
		if disk, err := os.Open(f.s.Config.Value("dbfilename")); err == nil {
			defer disk.Close()
			if info, err := disk.Stat(); err == nil && info.Mode().IsRegular() {
				file, size = disk, info.Size()
			}
		}
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
	if flush {
		c.FlushAll()
	}
	if err := dumpfile.Enter(c, file, size, flush, merge); err != nil {
		f.s.Logf('w', "DEBUG RELOAD: %v", err)
		c.Error(errReload)
		return
	}
	f.s.Logf('n', "reloaded %d keys by DEBUG RELOAD", f.s.LoadedKeys.Load())
	c.OK()
}
