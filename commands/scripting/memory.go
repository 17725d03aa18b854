package scripting

// What scripts and functions take in memory. The texts and the compiled forms are counted. The rest is estimated from their
// number, because nobody counts what an interpreter allocates. The interpreters themselves are left out: each loop makes one
// when it first needs it, so the first EVAL would look like a megabyte of data. All interpreters share a compiled form, which
// counts with the text.

import (
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/server/command"
)

// What a script or library takes beside its text and compiled form: the server's records about it, and the closures that
// interpreters make of it. Measured, text and compiled form take 0.5 kB for "return 1", 1.0 kB for 200 bytes and 6.1 kB for
// 1.3 kB; the statistics of a script's runs take 0.7 kB.
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

// memory is the memory of all scripts and of a keyspace's functions.
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
