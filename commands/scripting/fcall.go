package scripting

// FCALL and FCALL_RO.

import (
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/luavm"
	"github.com/limitkv/limitkv/server/command"
)

func (f *family) fcallRow(name, summary string, readOnly bool) *command.Command {
	row := &command.Command{
		Name: name, Arity: -3, Group: command.GroupScripting, Since: "7.0.0",
		Flags:      evalFlags | command.MayReplicate,
		ACL:        []string{"scripting"},
		Keys:       []command.KeySpec{command.NumKeys(2, command.RW|command.Access|command.Update)},
		Summary:    summary,
		Complexity: "That of the function",
		Syntax:     "function:string numkeys:integer [key...] [arg:string...]",
		Prepare: func(c *command.Ctx) bool {
			_, _ = f.function(c)
			c.NumKeys = numKeys(c.Args)
			return false
		},
		Plan: f.planCall,
	}
	if readOnly {
		row.Flags = evalFlags | command.ReadOnly
		row.Keys = []command.KeySpec{command.NumKeys(2, command.RO|command.Access)}
	}
	row.FlagsOf = func(c *command.Ctx) command.Flags {
		if fn, ok := f.function(c); ok {
			return declared(row, fn.Flags)
		}
		return row.Flags
	}
	row.Run = func(c *command.Ctx) { f.fcall(c, readOnly) }
	return row
}

// planCall locks everything, because functions are not analysed. It does so even if there is no such function: it may be
// loaded before this call runs.
func (f *family) planCall(_ *command.Ctx, set *engine.LockSet) (long bool) {
	set.AddAll()
	return false
}

func (f *family) fcall(c *command.Ctx, readOnly bool) {
	fn, ok := f.function(c)
	n := c.NumKeys
	switch {
	case !ok:
		c.Error("ERR Function not found")
		return
	case n < 0:
		c.Error(wrongNumKeys(c.Args, "ERR Bad number of keys provided"))
		return
	case readOnly && fn.Flags&luavm.NoWrites == 0:
		c.Error("ERR Can not execute a script with write flag using *_ro command.")
		return
	}
	w := f.worker(c)
	h := &w.host
	h.c, h.watch.held.ReadOnly = c, fn.Flags&luavm.NoWrites != 0
	if !h.enter(fn.Flags) {
		return
	}
	r := f.registries.Of(c.KS)
	vm := r.interpreter(w)
	r.vm = nil // in case a bug ends the call
	if w.run(c, vm, &fn.Name, c.Start(), func(args [][]byte) luavm.Outcome {
		return vm.CallFunction(fn.library, fn.Name, args[3:3+n], args[3+n:], h, c.Writer)
	}) {
		r.vm = vm
	}
}
