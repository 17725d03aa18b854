package scripting

// What scripts and functions take in memory. It is estimated from how many there
// are and how long: what an interpreter has allocated, nobody counts. Nor are
// the interpreters themselves, of which each loop makes one when it first needs
// it: the first EVAL would look like a megabyte of data.

import (
	"github.com/limitkv/limitkv/commands/command"
	"github.com/limitkv/limitkv/engine"
)

// What there is beside the text of a script or library: its compiled form, which
// grows with the text, and what is kept about each.
const (
	compiledFactor = 6
	scriptBytes    = 1 << 10
	libraryBytes   = 1 << 9
	functionBytes  = 1 << 7
)

// memory is in bytes. eval and functions are the interpreters' parts.
type memory struct {
	scripts, libraries, eval, functions int64
}

func (m memory) total() int64 { return m.scripts + m.libraries + m.eval + m.functions }

// memory is that of all scripts and of the functions of a keyspace.
func (f *family) memory(ks *engine.Keyspace) memory {
	set := f.registries.Of(ks).now.Load()
	f.cache.mu.Lock()
	scripts := int64(len(f.cache.bySHA))
	f.cache.mu.Unlock()
	text := f.cache.bytes.Load()
	return memory{
		scripts:   text + scripts*scriptBytes,
		eval:      text * compiledFactor,
		libraries: set.bytes + int64(set.byName.Len())*libraryBytes + int64(set.functions.Len())*functionBytes,
		functions: set.bytes * compiledFactor,
	}
}

func (f *family) infoMemory(w *command.InfoWriter) {
	set, m := f.registries.Of(w.View.KS).now.Load(), f.memory(w.View.KS)
	w.Bytes("used_memory_lua", uint64(m.eval)) // has a new name below
	w.Line("used_memory_vm_eval", m.eval)
	w.Line("used_memory_scripts_eval", m.scripts)
	w.Line("number_of_cached_scripts", len(f.cache.all()))
	w.Line("number_of_functions", set.functions.Len())
	w.Line("number_of_libraries", set.byName.Len())
	w.Line("used_memory_vm_functions", m.functions)
	w.Bytes("used_memory_vm_total", uint64(m.eval+m.functions))
	w.Line("used_memory_functions", m.libraries)
	w.Bytes("used_memory_scripts", uint64(m.scripts+m.libraries))
}
