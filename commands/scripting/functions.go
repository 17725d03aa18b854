package scripting

// The libraries of functions there are. A set of them is immutable: a change
// makes another, and workers notice that it is not the one they know.

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/limitkv/limitkv/commands/command"
	"github.com/limitkv/limitkv/luavm"
)

// function is a function that can be called.
type function struct {
	*luavm.Function
	library *luavm.Library
}

// libraries are loaded libraries by name and their functions by name
// in lower case, since any case calls them.
type libraries struct {
	byName    map[string]*luavm.Library
	functions map[string]function
}

func newLibraries() *libraries {
	return &libraries{byName: map[string]*luavm.Library{}, functions: map[string]function{}}
}

func (l *libraries) clone() *libraries {
	return &libraries{byName: maps.Clone(l.byName), functions: maps.Clone(l.functions)}
}

// find returns the function with a name, in any case.
func (l *libraries) find(name []byte) (function, bool) {
	fn, ok := l.functions[string(name)]
	if !ok {
		fn, ok = l.functions[lower(name)]
	}
	return fn, ok
}

// remove takes a library out.
func (l *libraries) remove(name string) {
	lib := l.byName[name]
	maps.DeleteFunc(l.functions, func(_ string, fn function) bool { return fn.library == lib })
	delete(l.byName, name)
}

// add puts a library in; it returns the name of a function that is there
// already, which prevents it. Of a library's own functions whose names differ
// in case alone, the first is the one that can be called.
func (l *libraries) add(lib *luavm.Library) (taken string) {
	for i := range lib.Functions {
		if _, there := l.functions[strings.ToLower(lib.Functions[i].Name)]; there {
			return lib.Functions[i].Name
		}
	}
	for i := range lib.Functions {
		name := strings.ToLower(lib.Functions[i].Name)
		if _, there := l.functions[name]; !there {
			l.functions[name] = function{&lib.Functions[i], lib}
		}
	}
	l.byName[lib.Name] = lib
	return ""
}

// sorted lists the libraries by name.
func (l *libraries) sorted() []*luavm.Library {
	list := make([]*luavm.Library, 0, len(l.byName))
	for _, name := range slices.Sorted(maps.Keys(l.byName)) {
		list = append(list, l.byName[name])
	}
	return list
}

// registry is the set in use.
type registry struct {
	mu  sync.Mutex // guards changes
	now atomic.Pointer[libraries]
}

// libraries are those that the context's command may call.
func (f *family) libraries(c *command.Ctx) *libraries { return f.registries.Of(c.KS).now.Load() }

// functionVM is what a worker has for functions: an interpreter apart from
// that of scripts, as in Redis.
type functionVM struct {
	vm      *luavm.VM
	known   *libraries // whose libraries it may have
	flushes int64
}

// functionVM returns the worker's interpreter, without libraries that are gone.
func (f *family) functionVM(c *command.Ctx, w *worker) *luavm.VM {
	now, flushes := f.libraries(c), f.flushes.Load()
	v := &w.functions
	if v.vm == nil || v.flushes != flushes {
		v.vm, v.flushes, v.known = luavm.New(vmConfig), flushes, now
	}
	if v.known != now {
		v.vm.KeepLibraries(func(l *luavm.Library) bool { return now.byName[l.Name] == l })
		v.known = now
	}
	return v.vm
}

// create loads a library into a set.
func (f *family) create(c *command.Ctx, set *libraries, code []byte, replace bool) (name, problem string) {
	lib, err := luavm.ParseLibrary(code)
	if err != nil {
		return "", err.Error()
	}
	if !command.EqualFold([]byte(lib.Engine), "LUA") {
		return "", "Engine '" + lib.Engine + "' not found"
	}
	if set.byName[lib.Name] != nil {
		if !replace {
			return "", "Library '" + lib.Name + "' already exists"
		}
		set.remove(lib.Name)
	}
	h := &f.worker(c).host
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
		if l.byName[lib.Name] != nil {
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
