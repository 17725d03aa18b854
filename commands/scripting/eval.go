package scripting

// EVAL and its kin.

import (
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/luavm"
	"github.com/limitkv/limitkv/resp/number"
	"github.com/limitkv/limitkv/server/command"
)

const evalFlags = command.NoScript | command.SkipMonitor | command.NoMandatoryKeys | command.Stale | command.TakesTime | command.KeepsLocks

// evalRow is the row of EVAL, EVALSHA or one of their read-only forms. They differ in how the script is named and in what it
// may do.
func (f *family) evalRow(name, since, summary string, bySHA, readOnly bool) *command.Command {
	row := &command.Command{
		Name: name, Arity: -3, Group: command.GroupScripting, Since: since,
		Flags:      evalFlags | command.MayReplicate,
		ACL:        []string{"scripting"},
		Keys:       []command.KeySpec{command.NumKeys(2, command.RW|command.Access|command.Update)},
		Summary:    summary,
		Complexity: "That of the script",
		Syntax:     "script:string numkeys:integer [key...] [arg:string...]",
	}
	if bySHA {
		row.Syntax = "sha1:string numkeys:integer [key...] [arg:string...]"
	}
	if readOnly {
		row.Flags = evalFlags | command.ReadOnly
		row.Keys = []command.KeySpec{command.NumKeys(2, command.RO|command.Access)}
	}
	row.Prepare = func(c *command.Ctx) bool {
		if c.NumKeys = numKeys(c.Args); c.NumKeys < 0 {
			return false // eval replies the error, and nothing is kept
		}
		if !bySHA && f.prepareScript(c, c.Args[1]) {
			return true
		}
		if !c.Session.Multi.Active { // EXEC compiles a script when it reaches it
			_, _ = f.script(c, bySHA)
		}
		return false
	}
	row.Plan = func(c *command.Ctx, set *engine.LockSet) bool {
		f.plan(c, set, bySHA)
		return false
	}
	row.FlagsOf = func(c *command.Ctx) command.Flags {
		if s := f.known(c, bySHA); s != nil {
			return declared(row, s.Flags)
		}
		if flags, ok := luavm.FlagsOf(c.Args[1]); ok && !bySHA {
			return declared(row, flags)
		}
		return row.Flags
	}
	row.Run = func(c *command.Ctx) { f.eval(c, bySHA, readOnly) }
	return row
}

// declared returns the flags of a call of a script: those that the script declares, or the command's if it declares none.
func declared(row *command.Command, flags luavm.Flags) command.Flags {
	if flags&luavm.Compat != 0 {
		return row.Flags
	}
	is := row.Flags &^ (command.MayReplicate | command.Stale)
	if flags&luavm.AllowStale != 0 {
		is |= command.Stale
	}
	if flags&luavm.NoWrites == 0 {
		is |= command.Write
		if flags&luavm.AllowOOM == 0 {
			is |= command.DenyOOM
		}
	}
	return is
}

// known returns the script that the request names, nil if it is not in the cache. The request keeps the script, but looks
// again if the cache has dropped it: a request that is queued in a transaction may wait for long.
func (f *family) known(c *command.Ctx, bySHA bool) *script {
	s, _ := c.Prepared.(*script)
	if s == nil || s.gone.Load() {
		l := &f.worker(c).scripts
		if bySHA {
			s = f.cache.find(l, c.Args[1])
		} else {
			s = l.knows(c.Args[1])
		}
		if s != nil {
			c.Prepared = s
		}
	}
	return s
}

// script is known, but compiles EVAL's script if it is new.
func (f *family) script(c *command.Ctx, bySHA bool) (*script, error) {
	if err, failed := c.Prepared.(error); failed {
		return nil, err
	}
	if s := f.known(c, bySHA); s != nil || bySHA {
		return s, nil
	}
	s, err := f.cache.compile(&f.worker(c).scripts, c.Args[1])
	if c.Prepared = s; err != nil {
		c.Prepared = err
	}
	return s, err
}

// plan locks the shards of the script's KEYS if analysis has proven that it uses no others, else all shards. An unknown
// script locks all too: in a transaction it may be loaded before it is called.
func (f *family) plan(c *command.Ctx, set *engine.LockSet, bySHA bool) {
	if _, failed := c.Prepared.(error); failed || c.NumKeys < 0 {
		return // eval replies the error
	}
	if s := f.known(c, bySHA); s == nil || !s.plan(f.finder).KeysProven {
		set.AddAll()
		return
	}
	for _, key := range c.Args[3 : 3+c.NumKeys] {
		set.AddKey(key)
	}
}

// shaLength is the length of a SHA-1 in hexadecimal.
const shaLength = 40

func (f *family) eval(c *command.Ctx, bySHA, readOnly bool) {
	if c.Session.Debugging {
		refuseDebugging(c, bySHA)
		return
	}
	n := c.NumKeys
	switch {
	case bySHA && len(c.Args[1]) != shaLength:
		c.Error(command.ErrNoScript)
		return
	case n < 0:
		c.Error(wrongNumKeys(c.Args, command.ErrNotInt))
		return
	}
	w := f.worker(c)
	s, err := f.script(c, bySHA)
	switch {
	case err != nil:
		c.Error("ERR " + err.Error())
		return
	case s == nil:
		c.Error(command.ErrNoScript)
		return
	case readOnly && s.Flags&(luavm.Compat|luavm.NoWrites) == 0:
		c.Error("ERR Can not execute a script with write flag using *_ro command.")
		return
	}
	h := &w.host
	h.c, h.watch.held.ReadOnly = c, readOnly || s.Flags&luavm.NoWrites != 0
	if !h.enter(s.Flags) {
		return
	}
	began := c.Start()
	w.watch.script = s
	if !w.run(c, w.vm, nil, began, func(args [][]byte) luavm.Outcome {
		return w.vm.Run(s.Script, args[3:3+n], args[3+n:], h, c.Writer)
	}) {
		c.Worker.Lua = nil
	}
	c.Ended = engine.Monotonic()
	s.ran(w.slot, began, c.Ended-began)
}

// numKeys is how many keys a call has, -1 if the number is wrong.
func numKeys(args [][]byte) int {
	if n, ok := number.ParseInt(args[2]); ok && n >= 0 && n <= int64(len(args)-3) {
		return int(n)
	}
	return -1
}

// wrongNumKeys is the error for a wrong number of keys: notInt if it is not an integer.
func wrongNumKeys(args [][]byte, notInt string) string {
	switch n, ok := number.ParseInt(args[2]); {
	case !ok:
		return notInt
	case n < 0:
		return "ERR Number of keys can't be negative"
	}
	return "ERR Number of keys can't be greater than number of args"
}

// run runs a script or a function with the arguments of c's command. It reports whether the VM can be used again.
func (w *worker) run(c *command.Ctx, vm *luavm.VM, function *string, now int64, call func(args [][]byte) luavm.Outcome) bool {
	db, inScript := c.DB, c.Script
	c.Script = true
	w.host.vm = vm
	w.watch.begin(c, function, now)
	defer w.watch.end()
	outcome := call(c.Args)
	c.Script, c.DB = inScript, db
	c.Failure, c.Counted = outcome.Failure, outcome.Counted
	w.host.c = nil
	w.host.rest()
	return !outcome.Broken
}
