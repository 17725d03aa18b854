package scripting

// host lets a running script call commands: by the same dispatch as any
// connection's, under the locks of the EVAL and at its time.

import (
	"github.com/limitkv/limitkv/luavm"
	"github.com/limitkv/limitkv/resp"
	"github.com/limitkv/limitkv/server/acl"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/hashslot"
)

type host struct {
	c       *command.Ctx
	request command.Request // that the script makes
	vm      *luavm.VM       // that runs the script
	watch   *watch
	out     resp.Writer
}

// outBytesKept is how much room for replies is kept between scripts.
const outBytesKept = 64 << 10

// rest drops the arguments of the last script's calls, and its buffer for replies if that is large.
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
	text := "ERR Unknown Redis command called from script"
	if cmd != nil {
		if cmd = cmd.Called(args); cmd != nil {
			h.request.Call(cmd, args)
			text = h.watch.f.s.AdmitCall(h.c, &h.request, &h.watch.held)
		}
	}
	if text == "" && cmd.CallFlags(args)&command.Write != 0 && !h.watch.writes() {
		text = "ERR " + errKilled.Error()
	}
	if text != "" {
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
	h.watch.f.s.Called(c, &h.request)
	c.Writer = reply
	if len(h.out.Buf) == 0 { // the command ends the connection, or the server
		h.out.NullArray()
	}
	return h.out.Buf
}

// enter prepares to run a script with these flags. If the script may not run now, it replies the error and reports false.
func (h *host) enter(flags luavm.Flags) bool {
	if flags&luavm.Compat != 0 && h.c.Server.Replica.Load()&command.ReplicaStale != 0 {
		h.c.Error(command.ErrMasterDown)
		return false
	}
	h.watch.held.Spends = flags&(luavm.Compat|luavm.AllowOOM) == luavm.AllowOOM
	if h.c.OutOfMemory && flags&(luavm.Compat|luavm.AllowOOM|luavm.NoWrites) == 0 {
		h.c.Error("OOM allow-oom flag is not set on the script, can not run it when used memory > 'maxmemory'")
		return false
	}
	if c := h.c; c.Server.Cluster {
		if flags&luavm.NoCluster != 0 {
			c.Error("ERR Can not run script on cluster, 'no-cluster' flag is set.")
			return false
		}
		h.watch.held.Slot, _ = c.Cmd.Slot(c.Args, hashslot.None)
		h.watch.held.AnySlot = flags&(luavm.Compat|luavm.AllowCrossSlotKeys) != 0
	}
	return true
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

// SetRepl changes nothing: a script's writes always go to the log and to replicas. A write that is missing there would be
// lost after a restart.
func (h *host) SetRepl(int) {}
