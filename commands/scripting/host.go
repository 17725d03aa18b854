package scripting

// host lets a running script call commands: by the same dispatch as any
// connection's, under the locks of the EVAL and at its time.

import (
	"strings"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/luavm"
	"github.com/limitkv/limitkv/resp"
	"github.com/limitkv/limitkv/server/acl"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/hashslot"
)

type host struct {
	c        *command.Ctx
	request  command.Request // that the script makes
	vm       *luavm.VM       // that runs the script
	watch    *watch
	out      resp.Writer
	readOnly bool // *_RO, or the no-writes flag
	spends   bool // may use memory that there is not: the allow-oom flag
	slot     slot
}

// outBytesKept is how much room for replies is kept between scripts.
const outBytesKept = 64 << 10

// rest forgets what the last script has asked for and got, if that may be much.
func (h *host) rest() {
	h.request.Args = nil
	if cap(h.out.Buf) > outBytesKept {
		h.out.Buf = nil
	}
}

// Lookup finds a command by name.
func (h *host) Lookup(name []byte) any {
	if cmd := h.c.Server.Table.Find(name); cmd != nil {
		return cmd
	}
	return nil
}

// Call runs one command and returns its reply's bytes.
func (h *host) Call(handle any, args [][]byte, proto int) []byte {
	h.out.Buf, h.out.Proto = h.out.Buf[:0], proto
	cmd, _ := handle.(*command.Command)
	if text := h.refuse(&cmd, args); text != "" {
		h.c.Server.CountError(text)
		if cmd != nil {
			h.c.Worker.Counters[cmd.Index()].Rejected.Add(1)
		}
		h.out.Error(text)
		return h.out.Buf
	}
	if cmd.Flags&command.TakesTime != 0 || !cmd.Brief() {
		h.vm.Charge(slowSteps)
	}
	c := h.c
	reply := c.Writer
	c.Writer = &h.out
	h.request.Call(cmd, args)
	h.watch.f.s.Called(c, &h.request)
	c.Writer = reply
	if len(h.out.Buf) == 0 { // it ends the connection, or the server
		h.out.NullArray()
	}
	return h.out.Buf
}

// refuse checks what a script may not call. It resolves subcommands.
func (h *host) refuse(cmd **command.Command, args [][]byte) string {
	if *cmd == nil {
		return "ERR Unknown Redis command called from script"
	}
	c := *cmd
	if c.HasSub() && len(args) > 1 {
		if sub := c.SubCommand(args[1]); sub != nil {
			c, *cmd = sub, sub
		} else if c.Run == nil {
			*cmd = nil
			return "ERR Unknown Redis command called from script"
		}
	}
	if c.Arity > 0 && len(args) != c.Arity || len(args) < -c.Arity || c.Run == nil {
		return "ERR Wrong number of args calling Redis command from script"
	}
	if c.Flags&command.NoScript != 0 && !h.mayAll(c, args) {
		return command.ErrScriptCommand
	}
	if text := h.c.Server.Refuses(h.c, c, args); text != "" {
		return "ERR ACL failure in script: " + strings.TrimPrefix(text, "NOPERM ")
	}
	flags := c.CallFlags(args)
	if h.readOnly && flags&(command.Write|command.MayReplicate) != 0 {
		return "ERR Write commands are not allowed from read-only scripts."
	}
	own := h.c.Session.Conn == nil // a log that is read, or a master's: what was written once is written again
	replica := h.c.Server.Replica.Load()
	if own {
		replica = 0
	}
	if replica&command.ReplicaStale != 0 && c.Flags&command.Stale == 0 {
		return "ERR Can not execute the command on a stale replica"
	}
	if flags&command.Write != 0 && !h.watch.wrote && !own { // once it has, it cannot be stopped in the middle
		if replica&command.ReplicaReadOnly != 0 {
			return command.ErrReadOnly
		}
		if text := h.c.Server.RefusesWrites(); text != nil {
			return *text
		}
		if h.c.Server.TooFewReplicas.Load() && replica == 0 {
			return command.ErrNoReplicas
		}
	}
	if h.c.OutOfMemory && !h.spends {
		// Once it has written it cannot be stopped in the middle.
		if flags&command.DenyOOM != 0 && !c.Spared(h.c, args) {
			return command.ErrOutOfMemory
		}
		h.spends = flags&command.Write != 0
	}
	if h.c.Server.Cluster {
		if text := h.slot.refuse(c, args); text != "" {
			return text
		}
	}
	if flags&command.Write != 0 && !h.watch.writes() {
		return "ERR " + errKilled.Error()
	}
	return ""
}

// mayAll tells whether DEBUG SET-DISABLE-DENY-SCRIPTS lets a script call a command
// that is not for scripts: one that administers, and needs no key that the script
// does not hold, for analysis has not foreseen the call.
func (h *host) mayAll(c *command.Command, args [][]byte) bool {
	if !h.c.Server.ScriptsMayAll.Load() || c.Flags&(command.Admin|command.Test) != command.Admin {
		return false
	}
	var set engine.LockSet
	eval := h.c.Request
	h.request.Call(c, args)
	h.c.Request = &h.request
	long := h.watch.f.s.Plan(h.c, &set)
	h.c.Request = eval
	return set.Within(h.c.Held) && (!long || h.c.Held.All())
}

// slot is what a cluster's scripts are held to.
type slot struct {
	of  int // that of the keys seen so far
	any bool
}

// enter begins with the slot of the keys that the script was given. It replies
// the error for a script that is not to run on a cluster, and reports false.
func (h *host) enter(flags luavm.Flags) bool {
	if flags&luavm.Compat != 0 && h.c.Server.Replica.Load()&command.ReplicaStale != 0 {
		h.c.Error(command.ErrMasterDown)
		return false
	}
	h.spends = flags&(luavm.Compat|luavm.AllowOOM) == luavm.AllowOOM
	if h.c.OutOfMemory && flags&(luavm.Compat|luavm.AllowOOM|luavm.NoWrites) == 0 {
		h.c.Error("OOM allow-oom flag is not set on the script, can not run it when used memory > 'maxmemory'")
		return false
	}
	if c := h.c; c.Server.Cluster {
		if flags&luavm.NoCluster != 0 {
			c.Error("ERR Can not run script on cluster, 'no-cluster' flag is set.")
			return false
		}
		h.slot.of, _ = c.Cmd.Slot(c.Args, hashslot.None)
		h.slot.any = flags&(luavm.Compat|luavm.AllowCrossSlotKeys) != 0
	}
	return true
}

// refuse checks the keys of a command: they are of one slot, and unless the
// script may use any, all its commands' are.
func (s *slot) refuse(c *command.Command, args [][]byte) string {
	of, ok := c.Slot(args, hashslot.None)
	switch {
	case !ok:
		return "ERR Command '" + c.FullName() + "' in script attempted to access keys that don't hash to the same slot"
	case of == hashslot.None || s.any:
	case s.of == hashslot.None:
		s.of = of
	case s.of != of:
		return "ERR Script attempted to access keys that do not hash to the same slot"
	}
	return ""
}

// ACLCheck tells whether the user may run a command.
func (h *host) ACLCheck(args [][]byte) (allowed, known bool) {
	cmd, known := h.c.Server.Table.Resolve(args)
	if cmd == nil || !known {
		return false, false
	}
	u := h.c.Session.User()
	return u == nil || u.Unrestricted.Load() || acl.Allows(u, cmd, args), true
}

// logLevels are the letters of redis.log's levels, debug to warning.
const logLevels = "dvnw"

// Log writes a line of the server's log.
func (h *host) Log(level int, message string) {
	h.c.Server.Logf(logLevels[level], "%s", message)
}

// SetRepl changes nothing: what a script writes goes to the log and to replicas, whatever it asks for. A write that is kept
// from them would be gone after a restart.
func (h *host) SetRepl(int) {}
