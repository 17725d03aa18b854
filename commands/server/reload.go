package server

// DEBUG RELOAD: all keys and functions, written in Redis's dump format and read back. Redis's tests use it to find out
// whether a value survives that; so it does that, though there is no file.

import (
	"bytes"

	"github.com/limitkv/limitkv/commands/command"
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
		if _, err := f.writeFile(c, &file, true, true); err != nil {
			c.Error(errReload)
			return
		}
		*saved = file.Bytes()
	}
	if !flush && !merge {
		if clashes, err := f.clashes(c, bytes.NewReader(*saved), int64(len(*saved))); clashes || err != nil {
			c.Error(errReload)
			return
		}
	}
	if flush {
		f.flushAll(c)
	}
	if err := f.readFile(c, bytes.NewReader(*saved), int64(len(*saved)), flush, merge); err != nil {
		f.s.Logf('w', "DEBUG RELOAD: %v", err)
		c.Error(errReload)
		return
	}
	f.s.Logf('n', "reloaded %d keys by DEBUG RELOAD", f.lastLoaded.Load())
	c.OK()
}
