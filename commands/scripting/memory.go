package scripting

// What scripts and functions take in memory. The texts and the compiled forms are counted; the rest is estimated from
// how many there are: what an interpreter has allocated, nobody counts. Nor are
// the interpreters themselves, of which each loop makes one when it first needs
// it: the first EVAL would look like a megabyte of data. The compiled form is
// one for all interpreters and counts with the text.

import (
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/server/command"
)

// What there is beside the text and the compiled form of a script or library: what is kept about each, and the closures
// that interpreters make of them. By measurement the compiled form and the text are 0.5 kB for
// "return 1", 1.0 for 200 bytes, 6.1 for 1.3 kB; what is kept of a script's runs, 0.7.
const (
	scriptBytes   = 1 << 10
	libraryBytes  = 1 << 10
	functionBytes = 1 << 10
	closureBytes  = 1 << 7
)

// memory is in bytes. eval and functions are the interpreters' parts.
type memory struct {
	scripts, libraries, eval, functions int64
}

func (m memory) total() int64 { return m.scripts + m.libraries + m.eval + m.functions }

// memory is that of all scripts and of the functions of a keyspace.
func (f *family) memory(ks *engine.Keyspace) memory {
	set := f.registries.Of(ks).now.Load()
	scripts, bytes := int64(f.cache.len()), f.cache.bytes.Load()
	return memory{
		scripts:   bytes + scripts*scriptBytes,
		eval:      scripts * closureBytes,
		libraries: set.bytes + int64(set.byName.Len())*libraryBytes + int64(set.functions.Len())*functionBytes,
		functions: int64(set.functions.Len()) * closureBytes,
	}
}

func (f *family) infoMemory(w *command.InfoWriter) {
	set, m := f.registries.Of(w.View.KS).now.Load(), f.memory(w.View.KS)
	w.Bytes("used_memory_lua", uint64(m.eval)) // has a new name below
	w.Line("used_memory_vm_eval", m.eval)
	w.Line("used_memory_scripts_eval", m.scripts)
	w.Line("number_of_cached_scripts", f.cache.len())
	w.Line("number_of_functions", set.functions.Len())
	w.Line("number_of_libraries", set.byName.Len())
	w.Line("used_memory_vm_functions", m.functions)
	w.Bytes("used_memory_vm_total", uint64(m.eval+m.functions))
	w.Line("used_memory_functions", m.libraries)
	w.Bytes("used_memory_scripts", uint64(m.scripts+m.libraries))
}
