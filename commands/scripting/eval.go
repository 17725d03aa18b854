package scripting

// EVAL and its kin.

import (
	"github.com/limitkv/limitkv/commands/command"
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/luavm"
	"github.com/limitkv/limitkv/resp/number"
)

const evalFlags = command.NoScript | command.SkipMonitor | command.NoMandatoryKeys | command.Stale | command.TakesTime | command.KeepsLocks

// evalRow is a row of the four; they differ in how the script is named and in
// what it may do.
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
	row.Plan = func(c *command.Ctx, args [][]byte, set *engine.LockSet) bool {
		return f.plan(c, args, set, bySHA)
	}
	row.FlagsOf = func(c *command.Ctx, args [][]byte) command.Flags {
		if s, err := f.resolve(f.worker(c), args[1], bySHA); err == nil && s != nil {
			return declared(row, s.Flags)
		}
		return row.Flags
	}
	if !bySHA {
		row.Prepare = func(c *command.Ctx, args [][]byte) bool { return f.prepareScript(c, args[1]) }
	}
	row.Run = func(c *command.Ctx) { f.eval(c, bySHA, readOnly) }
	return row
}

// declared are the flags of a call of a script: those that it declares, or the
// command's if it declares none.
func declared(row *command.Command, flags luavm.Flags) command.Flags {
	if flags&luavm.Compat != 0 {
		return row.Flags
	}
	is := row.Flags &^ command.MayReplicate
	if flags&luavm.NoWrites == 0 {
		is |= command.Write
		if flags&luavm.AllowOOM == 0 {
			is |= command.DenyOOM
		}
	}
	return is
}

// resolve finds the script that a request names; nil, nil if a SHA is unknown.
func (f *family) resolve(w *worker, arg []byte, bySHA bool) (*script, error) {
	if bySHA {
		return f.cache.find(&w.scripts, arg), nil
	}
	return f.cache.compile(&w.scripts, arg)
}

// plan locks the shards of the script's KEYS if analysis has proven that it
// uses no others, else all of them.
func (f *family) plan(c *command.Ctx, args [][]byte, set *engine.LockSet, bySHA bool) (long bool) {
	n, ok := number.ParseInt(args[2])
	if !ok || n < 0 || n > int64(len(args)-3) {
		return false // an error, for eval to find
	}
	s, err := f.resolve(f.worker(c), args[1], bySHA)
	if err != nil || s == nil {
		return false
	}
	if s.plan(f.keys).KeysProven {
		for _, key := range args[3 : 3+n] {
			set.AddKey(key)
		}
	} else {
		set.AddAll()
	}
	return false
}

// shaLength is the length of a SHA-1 in hexadecimal.
const shaLength = 40

func (f *family) eval(c *command.Ctx, bySHA, readOnly bool) {
	if c.Session.Debugging {
		refuseDebugging(c, bySHA)
		return
	}
	n, ok := number.ParseInt(c.Args[2])
	switch {
	case bySHA && len(c.Args[1]) != shaLength:
		c.Error(command.ErrNoScript)
		return
	case !ok:
		c.Error(command.ErrNotInt)
		return
	case n > int64(len(c.Args)-3):
		c.Error("ERR Number of keys can't be greater than number of args")
		return
	case n < 0:
		c.Error("ERR Number of keys can't be negative")
		return
	}
	w := f.worker(c)
	s, err := f.resolve(w, c.Args[1], bySHA)
	switch {
	case err != nil:
		w.scripts.failed = failure{} // it may be long
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
	h.c, h.readOnly = c, readOnly || s.Flags&luavm.NoWrites != 0
	if !h.enter(s.Flags) {
		return
	}
	began := engine.Monotonic()
	w.watch.script = s
	w.run(c, w.vm, nil, began, func(args [][]byte) luavm.Outcome {
		return w.vm.Run(s.Script, args[3:3+n], args[3+n:], h, c.Writer)
	})
	s.ran(w.slot, began, engine.Monotonic()-began)
}

// run runs a script or a function with the arguments of c's command.
func (w *worker) run(c *command.Ctx, vm *luavm.VM, function *string, now int64, call func(args [][]byte) luavm.Outcome) {
	db, inScript := c.DB, c.Script
	c.Script = true
	w.host.vm = vm
	w.watch.begin(c, function, now)
	defer w.watch.end()
	outcome := call(c.Args)
	c.Script, c.DB = inScript, db
	c.Failure, c.Counted = outcome.Failure, outcome.Counted
	w.host.c = nil
}
