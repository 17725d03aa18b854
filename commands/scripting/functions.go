package scripting

// The libraries of functions. A set of libraries is immutable: a change makes another set, and workers notice that it is not
// the one they know.

import (
	"bytes"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tidwall/btree"

	"github.com/limitkv/limitkv/luavm"
	"github.com/limitkv/limitkv/server/command"
)

// function is a function that can be called.
type function struct {
	*luavm.Function
	library *luavm.Library
}

// libraries are loaded libraries by name, and their functions by name in lower case, because calls may use any case. The maps
// are B-trees, whose copies cost nothing: thousands of libraries are loaded one by one.
type libraries struct {
	byName    *btree.Map[string, *luavm.Library]
	functions *btree.Map[string, function]
	bytes     int64 // of their code and its compiled form
}

func newLibraries() *libraries {
	return &libraries{byName: new(btree.Map[string, *luavm.Library]), functions: new(btree.Map[string, function])}
}

func (l *libraries) clone() *libraries {
	return &libraries{byName: l.byName.Copy(), functions: l.functions.Copy(), bytes: l.bytes}
}

// find returns the function with a name, in any case.
func (l *libraries) find(name []byte) (function, bool) {
	fn, ok := l.functions.Get(string(name))
	if !ok {
		fn, ok = l.functions.Get(lower(name))
	}
	return fn, ok
}

// called is the function that a worker found last. It is looked up when the command is admitted, when the command runs, and
// most often by the next command again.
type called struct {
	in   *libraries
	name []byte
	fn   function
}

// function returns the function that c's command calls.
func (f *family) function(c *command.Ctx) (fn function, ok bool) {
	in, name := f.libraries(c), c.Args[1]
	last := &f.worker(c).called
	if last.in == in && bytes.Equal(last.name, name) {
		return last.fn, true
	}
	if fn, ok = in.find(name); ok {
		*last = called{in, append(last.name[:0], name...), fn}
	}
	return fn, ok
}

// named reports whether there is a library with a name, and has whether there is this library.
func (l *libraries) named(name string) bool { _, ok := l.byName.Get(name); return ok }

func (l *libraries) has(lib *luavm.Library) bool {
	now, _ := l.byName.Get(lib.Name)
	return now == lib
}

// remove takes a library out.
func (l *libraries) remove(name string) {
	lib, ok := l.byName.Delete(name)
	if !ok {
		return
	}
	for i := range lib.Functions {
		own := strings.ToLower(lib.Functions[i].Name)
		if fn, _ := l.functions.Get(own); fn.library == lib {
			l.functions.Delete(own)
		}
	}
	l.bytes -= lib.Bytes()
}

// add puts a library in. If a function of that name exists already, it adds nothing and returns the name. If names within the
// library differ only in case, the first function is the one that can be called.
func (l *libraries) add(lib *luavm.Library) (taken string) {
	for i := range lib.Functions {
		if _, there := l.functions.Get(strings.ToLower(lib.Functions[i].Name)); there {
			return lib.Functions[i].Name
		}
	}
	for i := range lib.Functions {
		name := strings.ToLower(lib.Functions[i].Name)
		if _, there := l.functions.Get(name); !there {
			l.functions.Set(name, function{&lib.Functions[i], lib})
		}
	}
	l.byName.Set(lib.Name, lib)
	l.bytes += lib.Bytes()
	return ""
}

// sorted lists the libraries by name.
func (l *libraries) sorted() []*luavm.Library {
	return l.byName.Values()
}

// registry is the set in use.
type registry struct {
	mu  sync.Mutex // guards changes
	now atomic.Pointer[libraries]

	// vm is the interpreter of functions, separate from those of scripts, as in Redis. There is one for all workers: what
	// functions store in local variables of their library is there for the next call. It belongs to whoever holds all keys,
	// as functions do.
	vm    *luavm.VM
	known *libraries // the set whose libraries vm may contain
	by    *worker    // the worker that used vm last
}

// libraries are those that the context's command may call.
func (f *family) libraries(c *command.Ctx) *libraries { return f.registries.Of(c.KS).now.Load() }

// interpreter returns the interpreter for a worker's call, and removes libraries that no longer exist from it.
func (r *registry) interpreter(w *worker) *luavm.VM {
	if r.vm == nil {
		r.vm, r.by = luavm.New(vmConfig), nil
	}
	if now := r.now.Load(); r.known != now {
		r.vm.KeepLibraries(func(l *luavm.Library) bool { return now.has(l) })
		r.known = now
	}
	if r.by != w {
		r.vm.Watch(w.watch.ask)
		r.vm.Room(w.watch.room)
		r.by = w
	}
	return r.vm
}

// create loads a library into a set.
func (f *family) create(c *command.Ctx, set *libraries, code []byte, replace bool) (name, problem string) {
	w := f.worker(c)
	lib, err := w.parse(code)
	if err != nil {
		return "", err.Error()
	}
	if !command.EqualFold([]byte(lib.Engine), "LUA") {
		return "", "Engine '" + lib.Engine + "' not found"
	}
	if set.named(lib.Name) {
		if !replace {
			return "", "Library '" + lib.Name + "' already exists"
		}
		set.remove(lib.Name)
	}
	h := &w.host
	outer := h.c
	h.c = c
	err = lib.Try(vmConfig, h)
	h.c = outer
	if err != nil {
		return "", err.Error()
	}
	if taken := set.add(lib); taken != "" {
		return "", "Function " + taken + " already exists"
	}
	return lib.Name, ""
}

// join puts libraries into a set.
func (l *libraries) join(from *libraries, replace bool) (problem string) {
	for _, lib := range from.sorted() {
		if l.named(lib.Name) {
			if !replace {
				return "Library " + lib.Name + " already exists"
			}
			l.remove(lib.Name)
		}
	}
	for _, lib := range from.sorted() {
		if taken := l.add(lib); taken != "" {
			return "Function " + taken + " already exists"
		}
	}
	return ""
}
