package server

// Admission: whether a request may run is decided here and nowhere else, in Redis's order. Four ask:
//
//	a client  all of it: what the command and its caller are (check), then what the server is (admit)
//	EXEC      check again, of each command that it comes to: rights may have changed since it was queued
//	a script  AdmitCall: the same questions in the order and the words that Redis has for scripts
//	a waiter  its rights again, when it is about to be served (command.Wait)

import (
	"fmt"
	"strings"

	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/hashslot"
)

// admit finds out whether a command may go on: ran if it may.
func (s *Server) admit(c *command.Ctx) outcome {
	w, cmd, sess := c.Worker, c.Cmd, c.Session
	if !c.Known {
		sess.SetLastCommand(nil)
		if cmd == nil && sess.Conn != nil && fromBrowser(c.Args[0]) {
			s.Logf('w', "a client at %s speaks HTTP, perhaps a browser made to attack this server: disconnected", sess.Conn.RemoteAddr())
			sess.Conn.Close(false)
			return replied
		}
		s.refuse(c, unknown(cmd, c.Args))
		return replied
	}
	if sess.LastCommand() != cmd { // a pipeline mostly repeats one command, and the store costs a bus lock
		sess.SetLastCommand(cmd)
	}
	if text := s.check(c); text != "" {
		s.refuse(c, text)
		return replied
	}
	if cmd.Prepare != nil && cmd.Prepare(c) {
		return retry
	}
	c.OutOfMemory = false
	if conn := sess.Conn; conn != nil { // the server's own sessions are always admitted
		if s.MaxMemory.Load() != 0 || s.TooFewReplicas.Load() || s.RefusesWrites() != nil || s.Follows() {
			w.Risk = true
			text, evicted := s.scarce(c)
			w.Risk = false
			if evicted && s.Tracking.Load() != 0 {
				conn.Post(conn.Resume) // the client hears of evicted keys before it gets the reply
				return retry
			}
			if text != "" {
				s.refuse(c, text)
				return replied
			}
		}
		if s.Loading.Keeps(cmd.Flags) && !(s.Loading.On() && s.allOf(c, command.Loading)) {
			s.refuse(c, command.ErrLoading)
			return replied
		}
		if run := s.Long.Slow(); run != nil && cmd.Flags&command.AllowBusy == 0 && !s.Long.KeysOnly.Load() {
			s.refuse(c, run.Busy())
			return replied
		}
		if s.Pause.On() && s.pauses(c) {
			return retry
		}
	} else if cmd.OfConnection() { // what a primary or a foreign log sends may be anything
		s.refuse(c, command.ErrNoConnection)
		return replied
	}
	if sess.Multi.Active && cmd.Flags&command.InMulti == 0 {
		s.queue(c)
		return replied
	}
	return ran
}

// check returns the error text for a command that its caller may not run, whatever the state of the server is.
func (s *Server) check(c *command.Ctx) string {
	cmd, args := c.Cmd, c.Args
	if !cmd.Takes(len(args)) {
		return command.ErrArity(cmd.FullName())
	}
	sess := c.Session
	if !sess.Authenticated && s.ACL.Required() && cmd.Flags&command.NoAuth == 0 {
		return command.ErrNoAuth
	}
	if !sess.Unrestricted() {
		if text := s.Refuses(c, cmd, args); text != "" {
			return text
		}
	}
	if s.Cluster && !c.Exec {
		if _, ok := cmd.Slot(args, hashslot.None); !ok {
			return command.ErrCrossSlot
		}
	}
	if sess.Subscriptions.Load() > 0 && sess.Proto() == 2 && cmd.Flags&command.InSubscribed == 0 && !c.Script {
		return fmt.Sprintf(command.ErrSubscribed, cmd.FullName())
	}
	if sess.Multi.Active && cmd.Flags&command.NoMulti != 0 && !c.Exec {
		return "ERR Command not allowed inside a transaction"
	}
	if (sess.Aside&command.AsideReplica != 0 || s.Monitors.Load() != 0 && sess.Shown.Flags.Load()&command.ShownMonitor != 0) &&
		cmd.Flags&(command.Write|command.ReadOnly|command.MayReplicate) != 0 {
		return "ERR Replica can't interact with the keyspace" // Redis says so to monitors, too
	}
	return ""
}

// allOf tells whether a command has a flag. EXEC has it if all its queued commands do.
func (s *Server) allOf(c *command.Ctx, flag command.Flags) bool {
	all := c.Cmd.Flags
	if c.Cmd.FlagsOf != nil {
		all = c.Cmd.FlagsOf(c)
	}
	eachOfExec(c, func() bool {
		if !s.allOf(c, flag) {
			all &^= flag
		}
		return true
	})
	return all&flag != 0
}

// fromBrowser tells whether a line is the beginning of an HTTP request: a web
// page may make a browser send one here, with commands in its body.
func fromBrowser(name []byte) bool {
	return command.EqualFold(name, "POST") || command.EqualFold(name, "HOST:")
}

// unknown is the error for a command, or for a subcommand of cmd, that does
// not exist.
func unknown(cmd *command.Command, args [][]byte) string {
	if cmd != nil {
		if len(args) < 2 {
			return command.ErrArity(cmd.FullName())
		}
		return command.ErrUnknownSubcommand(strings.ToUpper(cmd.Name), args[1])
	}
	var b strings.Builder
	b.WriteString("ERR unknown command '" + command.Repeat(args[0], command.RepeatBytesMax) + "', with args beginning with: ")
	before := b.Len()
	for _, a := range args[1:] {
		left := command.RepeatBytesMax - (b.Len() - before)
		if left <= 0 {
			break
		}
		b.WriteString("'" + command.Repeat(a, left) + "' ")
	}
	return b.String()
}

// refuse replies an error before the command ran; inside MULTI it makes EXEC
// fail. It counts as a rejected call of the command, unless there is no such command or subcommand.
func (s *Server) refuse(c *command.Ctx, text string) {
	if c.Known || c.Cmd != nil && len(c.Args) < 2 {
		c.Worker.Counters[c.Cmd.Index()].Rejected.Add(1)
	}
	if c.Cmd != nil && c.Cmd.Refused != nil {
		text = c.Cmd.Refused(c, text)
	}
	c.Error(text)
	s.CountError(text)
	if c.Session.Multi.Active {
		c.Session.Multi.Failed = true
	}
}

// multiCommandsMax limits how many commands a transaction may hold.
const multiCommandsMax = 1 << 20

// queue puts the command into the session's transaction.
func (s *Server) queue(c *command.Ctx) {
	m := &c.Session.Multi
	if len(m.Queue.Requests) >= multiCommandsMax && c.Session.Conn != nil {
		s.refuse(c, "ERR Transaction holds too many commands")
		return
	}
	if !m.Failed && !m.Watcher.Dirty() { // otherwise it will not run
		m.Queue.Add(c.Worker, c.Request)
	}
	c.Status("QUEUED")
}

// pauses tells whether a pause holds a command back. Commands that drive the test clock go on, since the pause ends by that
// clock, and so do the acknowledgements of replicas.
func (s *Server) pauses(c *command.Ctx) bool {
	return c.Cmd.Flags&command.Test == 0 && c.Session.Aside&command.AsideReplica == 0 && s.Pause.Hold(c.Session.Conn, s.flagsOf(c)&mayWrite != 0)
}

// mayWrite are the flags of commands that may change keys.
const mayWrite = command.Write | command.MayReplicate

// scarce returns the error for a command that needs what the server lacks: memory, a disk to write to, enough replicas, the
// role of a primary, or data that is up to date. It also tells whether keys were evicted to make room.
func (s *Server) scarce(c *command.Ctx) (text string, evicted bool) {
	flags := s.flagsOf(c)
	replica := s.Replica.Load()
	if s.MaxMemory.Load() != 0 && !s.Pause.On() && !s.Loading.On() && replica&command.ReplicaNoEvicts == 0 { // during a pause nothing is evicted
		c.Account()
		var ok bool
		ok, evicted = s.Keeper.MakeRoom(c.Now)
		if c.OutOfMemory = !ok; !ok && s.spends(c) {
			return command.ErrOutOfMemory, evicted
		}
	}
	if text := s.RefusesWrites(); text != nil && (flags&command.Write != 0 || c.Cmd.Flags&command.WithWrites != 0) {
		return *text, evicted
	}
	if s.TooFewReplicas.Load() && flags&command.Write != 0 && replica == 0 {
		return command.ErrNoReplicas, evicted
	}
	if replica&command.ReplicaReadOnly != 0 && flags&command.Write != 0 {
		return command.ErrReadOnly, evicted
	}
	if replica&command.ReplicaStale != 0 && !s.allOf(c, command.Stale) {
		return command.ErrMasterDown, evicted
	}
	return "", evicted
}

// flagsOf are the flags of the request. Those of EVAL depend on the script, and EXEC also has those of its queued commands.
func (s *Server) flagsOf(c *command.Ctx) command.Flags {
	flags := ownFlags(c)
	eachOfExec(c, func() bool {
		flags |= s.flagsOf(c)
		return true
	})
	return flags
}

func ownFlags(c *command.Ctx) command.Flags {
	if c.Cmd.FlagsOf != nil {
		return c.Cmd.FlagsOf(c)
	}
	return c.Cmd.CallFlags(c.Args)
}

// eachOfExec calls fn for each queued command of EXEC, which is c's request meanwhile, until fn returns false. For other
// commands it does nothing.
func eachOfExec(c *command.Ctx, fn func() bool) {
	if c.Cmd.Plan == nil || c.Cmd.Flags&command.InMulti == 0 {
		return
	}
	exec := c.Request
	for i := range c.Session.Multi.Queue.Requests {
		if c.Request = &c.Session.Multi.Queue.Requests[i]; !fn() {
			break
		}
	}
	c.Request = exec
}

// spends tells whether a request is refused when memory is full. EXEC is if one of its commands is.
func (s *Server) spends(c *command.Ctx) (spends bool) {
	if ownFlags(c)&command.DenyOOM != 0 && !c.Cmd.Spared(c, c.Args) {
		return true
	}
	eachOfExec(c, func() bool {
		spends = s.spends(c)
		return !spends
	})
	return spends
}
