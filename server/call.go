package server

// Admission of what scripts call.

import (
	"strings"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/hashslot"
)

// Script is what a script that runs is held to.
type Script struct {
	ReadOnly bool // it is called by *_RO, or has the flag no-writes
	Spends   bool // it may use memory that there is not: the flag allow-oom, or it has written
	Wrote    bool // it cannot be stopped in the middle any more
	// Slot is the hash slot of the keys so far. In a cluster a script may use one slot only, unless AnySlot.
	Slot    int
	AnySlot bool
}

// AdmitCall returns the error text for a command that a script may not call. c is the context of the script's own command.
func (s *Server) AdmitCall(c *command.Ctx, r *command.Request, script *Script) string {
	cmd, args := r.Cmd, r.Args
	if !cmd.Takes(len(args)) || cmd.Run == nil {
		return "ERR Wrong number of args calling Redis command from script"
	}
	if cmd.Flags&command.NoScript != 0 && !s.mayAll(c, r) {
		return command.ErrScriptCommand
	}
	if text := s.Refuses(c, cmd, args); text != "" {
		return "ERR ACL failure in script: " + strings.TrimPrefix(text, "NOPERM ")
	}
	flags := cmd.CallFlags(args)
	if script.ReadOnly && flags&mayWrite != 0 {
		return "ERR Write commands are not allowed from read-only scripts."
	}
	own := c.Session.Conn == nil // a log that is loaded, or a primary's stream: what was written there is written here
	replica := s.Replica.Load()
	if own {
		replica = 0
	}
	if replica&command.ReplicaStale != 0 && cmd.Flags&command.Stale == 0 {
		return "ERR Can not execute the command on a stale replica"
	}
	if flags&command.Write != 0 && !script.Wrote && !own {
		if replica&command.ReplicaReadOnly != 0 {
			return command.ErrReadOnly
		}
		if text := s.RefusesWrites(); text != nil {
			return *text
		}
		if s.TooFewReplicas.Load() && replica == 0 {
			return command.ErrNoReplicas
		}
	}
	if c.OutOfMemory && !script.Spends {
		if flags&command.DenyOOM != 0 && !cmd.Spared(c, args) {
			return command.ErrOutOfMemory
		}
		script.Spends = flags&command.Write != 0
	}
	if s.Cluster {
		return script.leaves(cmd, args)
	}
	return ""
}

// leaves returns the error text for a command whose keys are in several slots, or in another one than the keys before.
func (script *Script) leaves(cmd *command.Command, args [][]byte) string {
	of, ok := cmd.Slot(args, hashslot.None)
	switch {
	case !ok:
		return "ERR Command '" + cmd.FullName() + "' in script attempted to access keys that don't hash to the same slot"
	case of == hashslot.None || script.AnySlot:
	case script.Slot == hashslot.None:
		script.Slot = of
	case script.Slot != of:
		return "ERR Script attempted to access keys that do not hash to the same slot"
	}
	return ""
}

// mayAll tells whether DEBUG SET-DISABLE-DENY-SCRIPTS lets a script call a command that is not for scripts. The command must
// be an administrative one, and need no lock that the script does not have: the analysis of the script did not expect it.
func (s *Server) mayAll(c *command.Ctx, r *command.Request) bool {
	if !s.ScriptsMayAll.Load() || r.Cmd.Flags&(command.Admin|command.Test) != command.Admin {
		return false
	}
	var set engine.LockSet
	eval := c.Request
	c.Request = r
	long := s.Plan(c, &set)
	c.Request = eval
	return set.Within(c.Held) && (!long || c.Held.All())
}
