package scripting

// FUNCTION and its subcommands.

import (
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/rdb"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/glob"
	"github.com/limitkv/limitkv/server/longrun"
)

func (f *family) functionRow() *command.Command {
	acl := []string{"scripting"}
	// Changes wait for functions that run, and those hold all keys.
	const change = command.NoScript | command.Write | command.WholeKeyspace
	everywhere := []string{"request_policy:all_shards", "response_policy:all_succeeded"}
	return &command.Command{
		Name: "function", Arity: -2, Group: command.GroupScripting, Since: "7.0.0",
		Summary:    "Manages the libraries of functions.",
		Complexity: "That of the subcommand",
		Sub: []*command.Command{
			{
				Name: "load", Arity: -3, Since: "7.0.0", Flags: change | command.DenyOOM, ACL: acl,
				Summary:    "Adds a library.",
				Complexity: "O(1), compiling aside",
				Tips:       everywhere,
				Syntax:     "[REPLACE] function-code:string",
				Prepare:    func(c *command.Ctx) bool { return f.prepareLibrary(c, c.Args[len(c.Args)-1]) },
				Plan:       planLoad,
				Run:        f.functionLoad,
			},
			{
				Name: "delete", Arity: 3, Since: "7.0.0", Flags: change, ACL: acl,
				Summary:    "Removes a library with its functions.",
				Complexity: "O(1)",
				Tips:       everywhere,
				Syntax:     "library-name:string",
				Run:        f.functionDelete,
			},
			{
				Name: "flush", Arity: -2, Since: "7.0.0", Flags: change, ACL: acl,
				Summary:    "Removes all libraries.",
				Complexity: "O(N) in the number of functions",
				Tips:       everywhere,
				Syntax:     "[flush-type=(ASYNC | SYNC)]",
				Run:        f.functionFlush,
			},
			{
				Name: "list", Arity: -2, Since: "7.0.0", Flags: command.NoScript, ACL: acl,
				Summary:    "Describes the libraries.",
				Complexity: "O(N) in the number of functions",
				Tips:       []string{"nondeterministic_output_order"},
				Syntax:     "[LIBRARYNAME library-name-pattern:string] [WITHCODE]",
				Run:        f.functionList,
			},
			{
				Name: "dump", Arity: 2, Since: "7.0.0", Flags: command.NoScript, ACL: acl,
				Summary:    "Returns all libraries as bytes that RESTORE takes.",
				Complexity: "O(N) in the number of functions",
				Run:        f.functionDump,
			},
			{
				Name: "restore", Arity: -3, Since: "7.0.0", Flags: change | command.DenyOOM, ACL: acl,
				Summary:    "Adds the libraries that DUMP returned.",
				Complexity: "O(N) in the number of functions",
				Tips:       everywhere,
				Syntax:     "serialized-value:string [policy=(FLUSH | APPEND | REPLACE)]",
				Plan:       planLoad,
				Run:        f.functionRestore,
			},
			{
				Name: "kill", Arity: 2, Since: "7.0.0", Flags: command.NoScript | command.AllowBusy, ACL: acl,
				Summary:    "Stops a function that runs and has not written yet.",
				Complexity: "O(1)",
				Tips:       []string{"request_policy:all_shards", "response_policy:one_succeeded"},
				Run:        func(c *command.Ctx) { f.kill(c, true) },
			},
			{
				Name: "stats", Arity: 2, Since: "7.0.0", Flags: command.NoScript | command.AllowBusy, ACL: acl,
				Summary:    "Tells what function runs, and how many there are.",
				Complexity: "O(1)",
				Tips:       []string{"nondeterministic_output", "request_policy:all_shards", "response_policy:special"},
				Run:        f.functionStats,
			},
			command.HelpRow("7.0.0", acl...),
		},
	}
}

// change replaces the set of libraries by what edit makes of a copy, unless
// that returns an error text.
func (f *family) change(c *command.Ctx, edit func(set *libraries) (problem string)) bool {
	if problem := f.edit(c.KS, edit); problem != "" {
		c.Error("ERR " + problem)
		return false
	}
	c.ForceEffect()
	return true
}

func (f *family) edit(ks *engine.Keyspace, edit func(set *libraries) (problem string)) (problem string) {
	r := f.registries.Of(ks)
	r.mu.Lock()
	defer r.mu.Unlock()
	set := r.now.Load().clone()
	if problem := edit(set); problem != "" {
		return problem
	}
	r.now.Store(set)
	f.s.Keyspace.Dirty.Add(1)
	return ""
}

// planLoad locks everything. A call with a long source does not run on its event loop.
func planLoad(c *command.Ctx, set *engine.LockSet) (long bool) {
	set.AddAll()
	for _, a := range c.Args {
		long = long || len(a) >= longSource
	}
	return long
}

func (f *family) functionLoad(c *command.Ctx) {
	replace := false
	code := c.Args[len(c.Args)-1]
	for _, option := range c.Args[2 : len(c.Args)-1] {
		if !command.EqualFold(option, "REPLACE") {
			c.Error("ERR Unknown option given: " + string(option))
			return
		}
		replace = true
	}
	name := ""
	if f.change(c, func(set *libraries) (problem string) {
		name, problem = f.create(c, set, code, replace)
		return problem
	}) {
		c.BulkString(name)
	}
}

func (f *family) functionDelete(c *command.Ctx) {
	if f.change(c, func(set *libraries) string {
		if !set.named(string(c.Args[2])) {
			return "Library not found"
		}
		set.remove(string(c.Args[2]))
		return ""
	}) {
		c.OK()
	}
}

// lazyFunctionsMin is the number of functions above which Redis frees them on another thread, and counts them as lazily
// freed.
const lazyFunctionsMin = 64

func (f *family) functionFlush(c *command.Ctx) {
	switch {
	case len(c.Args) > 3:
		c.Error(command.ErrSubcommandSyntax("FUNCTION", c.Args[1]))
		return
	case len(c.Args) == 3 && !command.EqualFold(c.Args[2], "SYNC") && !command.EqualFold(c.Args[2], "ASYNC"):
		c.Error("ERR FUNCTION FLUSH only supports SYNC|ASYNC option")
		return
	}
	r := f.registries.Of(c.KS)
	r.mu.Lock()
	n := r.now.Swap(newLibraries()).functions.Len()
	r.mu.Unlock()
	r.vm = nil
	if n > lazyFunctionsMin && len(c.Args) == 3 && command.EqualFold(c.Args[2], "ASYNC") {
		f.s.Stats.LazyFreed.Add(int64(n) + 1) // and the engine's interpreter
	}
	f.s.Keyspace.Dirty.Add(1)
	c.ForceEffect()
	c.OK()
}

func (f *family) functionList(c *command.Ctx) {
	withCode := false
	var pattern []byte
	a := c.Cursor(2)
	for a.More() {
		switch {
		case !withCode && a.Is("WITHCODE"):
			withCode = true
		case pattern == nil && a.Is("LIBRARYNAME"):
			if !a.More() {
				a.Fail("ERR library name argument was not given")
			}
			pattern = a.Bytes()
		default:
			a.Fail("ERR Unknown argument " + string(a.Bytes()))
		}
	}
	if a.Failed(c) {
		return
	}
	list := f.libraries(c).sorted()
	if pattern != nil {
		kept := list[:0]
		for _, lib := range list {
			if glob.MatchFold(pattern, []byte(lib.Name)) {
				kept = append(kept, lib)
			}
		}
		list = kept
	}
	c.Array(len(list))
	for _, lib := range list {
		fields := 3
		if withCode {
			fields++
		}
		c.Map(fields)
		c.BulkString("library_name")
		c.BulkString(lib.Name)
		c.BulkString("engine")
		c.BulkString("LUA")
		c.BulkString("functions")
		c.Array(len(lib.Functions))
		for i := range lib.Functions {
			fn := &lib.Functions[i]
			c.Map(3)
			c.BulkString("name")
			c.BulkString(fn.Name)
			c.BulkString("description")
			if fn.Described {
				c.BulkString(fn.Description)
			} else {
				c.Null()
			}
			c.BulkString("flags")
			names := fn.Flags.Names()
			c.Set(len(names))
			for _, name := range names {
				c.Status(name)
			}
		}
		if withCode {
			c.BulkString("library_code")
			c.BulkString(lib.Code)
		}
	}
}

func (f *family) functionDump(c *command.Ctx) {
	var payload []byte
	for _, lib := range f.libraries(c).sorted() {
		payload = rdb.AppendString(append(payload, rdb.Function), []byte(lib.Code), f.compress.Load())
	}
	c.Bulk(rdb.AppendFooter(payload))
}

func (f *family) functionRestore(c *command.Ctx) {
	if len(c.Args) > 4 {
		c.Error(command.ErrSubcommandSyntax("FUNCTION", c.Args[1]))
		return
	}
	flush, replace := false, false
	if len(c.Args) == 4 {
		switch policy := c.Args[3]; {
		case command.EqualFold(policy, "APPEND"):
		case command.EqualFold(policy, "REPLACE"):
			replace = true
		case command.EqualFold(policy, "FLUSH"):
			flush = true
		default:
			c.Error("ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.")
			return
		}
	}
	body, ok := rdb.CheckFooter(c.Args[2], rdb.Limits{Valkey: c.Trusted()})
	if !ok {
		c.Error("ERR DUMP payload version or checksum are wrong")
		return
	}
	from := newLibraries()
	if problem := f.read(c, body, from); problem != "" {
		c.Error("ERR " + problem)
		return
	}
	if problem := f.put(c.KS, from, flush, replace); problem != "" {
		c.Error("ERR " + problem)
		return
	}
	c.ForceEffect()
	c.OK()
}

// put adds libraries to a keyspace's set, or with flush replaces the set.
func (f *family) put(ks *engine.Keyspace, from *libraries, flush, replace bool) (problem string) {
	return f.edit(ks, func(set *libraries) string {
		if flush {
			*set = *from.clone()
			return ""
		}
		return set.join(from, replace)
	})
}

// read loads the libraries of a payload into a set.
func (f *family) read(c *command.Ctx, body []byte, into *libraries) (problem string) {
	for r := rdb.NewReader(body, int(c.StringMax(f.s.Config.MaxBulk().Load()))); r.More(); {
		switch r.Byte() {
		case rdb.FunctionOld:
			return "Pre-GA function format not supported"
		case rdb.Function:
		default:
			return "given type is not a function"
		}
		code := r.String()
		if r.Failed() {
			return "Failed loading library payload"
		}
		if _, problem := f.create(c, into, code, false); problem != "" {
			return problem
		}
	}
	return ""
}

func (f *family) functionStats(c *command.Ctx) {
	var running *longrun.Run
	for _, run := range f.s.Long.All() {
		if run.Function() != nil {
			running = run
		} else if run.Reservation.Slow() {
			c.Error(longrun.ErrBusyScript)
			return
		}
	}
	c.Map(2)
	c.BulkString("running_script")
	if running == nil {
		c.Null()
	} else {
		c.Map(3)
		c.BulkString("name")
		c.BulkString(*running.Function())
		c.BulkString("command")
		c.Array(len(running.Args))
		for _, a := range running.Args {
			c.Bulk(a)
		}
		c.BulkString("duration_ms")
		c.Int((engine.Monotonic() - running.Since) / 1000)
	}
	set := f.libraries(c)
	c.BulkString("engines")
	c.Map(1)
	c.BulkString("LUA")
	c.Map(2)
	c.BulkString("libraries_count")
	c.Int(int64(set.byName.Len()))
	c.BulkString("functions_count")
	c.Int(int64(set.functions.Len()))
}

// Libraries returns the code of a keyspace's libraries. This method and the following ones implement command.Functions.
func (f *family) Libraries(ks *engine.Keyspace) (codes []string) {
	for _, lib := range f.registries.Of(ks).now.Load().sorted() {
		codes = append(codes, lib.Code)
	}
	return codes
}

// Save returns a keyspace's libraries. They do not change: a change makes another set.
func (f *family) Save(ks *engine.Keyspace) any { return f.registries.Of(ks).now.Load() }

// Load loads libraries that Save returned.
func (f *family) Load(ks *engine.Keyspace, saved any, flush, replace bool) (problem string) {
	return f.put(ks, saved.(*libraries), flush, replace)
}

// LoadCode loads the code of libraries.
func (f *family) LoadCode(c *command.Ctx, codes [][]byte, flush, replace bool) (problem string) {
	from := newLibraries()
	if c.Worker == nil && len(codes) > 0 { // the server's own context, when it starts
		c.Worker = c.Server.Workers.Get(c.Server)
		defer func(w *command.Worker) {
			c.Server.Workers.Put(w)
			c.Worker = nil
		}(c.Worker)
	}
	for _, code := range codes {
		if _, problem := f.create(c, from, code, false); problem != "" {
			return problem
		}
	}
	return f.put(c.KS, from, flush, replace)
}
