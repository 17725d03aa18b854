package server

// DEBUG RELOAD: all keys and functions, written in Redis's dump format and read back. Redis's tests use it to find out
// whether a value survives that; so it does that, though there is no file.

import (
	"github.com/limitkv/limitkv/commands/command"
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/rdb"
)

// image is what DEBUG RELOAD has saved.
type image struct {
	keys      *engine.Saved
	functions any
}

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
	if save || saved.keys == nil {
		*saved = image{c.Save(f.freeze), f.s.SaveFunctions(c.KS)}
	}
	if !flush && !merge && saved.keys.Has(&c.View) {
		c.Error(errReload)
		return
	}
	if problem := f.s.LoadFunctions(c.KS, saved.functions, flush, merge); problem != "" {
		c.Error(errReload)
		return
	}
	if flush {
		f.flushAll(c)
	}
	c.Restore(saved.keys, f.thaw)
	f.s.Logf('n', "reloaded %d keys by DEBUG RELOAD", saved.keys.Len())
	c.OK()
}

// freeze writes an object. One that Redis has no type for is copied.
func (f *family) freeze(e engine.Entry) any {
	if b, ok := rdb.AppendDump(nil, e, f.dumps.Format()); ok {
		return b
	}
	return command.CloneObject(e.Object())
}

func (f *family) thaw(_ engine.Kind, frozen any) any {
	b, ok := frozen.([]byte)
	if !ok {
		return command.CloneObject(frozen)
	}
	v, err := rdb.Load(b, f.dumps.Limits())
	if err != nil {
		panic("what was written cannot be read: " + err.Error())
	}
	return v.Object
}
