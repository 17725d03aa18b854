package commands

// Dispatch: from a command's arguments to its reply. The checks every command
// goes through are here and nowhere else, in Redis's order.

import (
	"fmt"
	"strings"

	"github.com/limitkv/limitkv/commands/command"
	"github.com/limitkv/limitkv/commands/hashslot"
	"github.com/limitkv/limitkv/commands/longrun"
	"github.com/limitkv/limitkv/engine"
)

// outcome is what became of a command of a connection.
type outcome uint8

const (
	ran     outcome = iota
	waits           // the connection is to be paused; the command was taken
	retry           // the connection is to be paused; the command is to be run again
	replied         // refused or queued
	away            // it ran, and the connection is another goroutine's by now
)

// run executes one command of a session, of which f is foreseen, on the worker's
// context. c.Now is set. The caller counts it if it ran.
func (s *server) run(w *command.Worker, sess *command.Session, args [][]byte, f *command.Foreseen) (result outcome) {
	c := &w.Ctx
	out, mark := c.Writer, c.Writer.Mark()
	defer func() {
		if r := recover(); r != nil {
			result = ran
			c.Writer, c.Mark, c.Args, c.Cmd = out, mark, args, f.Cmd
			s.rescue(c, r)
			if c.Long != nil {
				result = s.endLong(c)
			}
		}
	}()
	w.Risk = false
	c.LSN = 0
	c.Trust()
	c.Args = args
	c.Session = sess
	c.Mark = mark
	c.Failure = ""
	c.Waits = false
	c.DB = sess.DB()
	c.NoTouch = sess.NoTouch
	c.Who = sess.ID
	c.Forget()

	cmd := f.Cmd
	c.Cmd = cmd
	if cmd == nil || !f.Known {
		sess.SetLastCommand(nil)
		if cmd == nil && sess.Conn != nil && fromBrowser(args[0]) {
			s.Logf('w', "a client at %s speaks HTTP, perhaps a browser made to attack this server: disconnected", sess.Conn.RemoteAddr())
			sess.Conn.Close(false)
			return replied
		}
		s.refuse(c, unknown(cmd, args))
		return replied
	}
	sess.SetLastCommand(cmd)
	if text := s.check(c, cmd, args); text != "" {
		w.Counters[cmd.Index()].Rejected.Add(1)
		s.refuse(c, text)
		return replied
	}
	if cmd.Prepare != nil && sess.Conn != nil && cmd.Prepare(c, args) {
		return retry
	}
	c.OutOfMemory = false
	if sess.Conn != nil && (s.MaxMemory.Load() != 0 || s.TooFewReplicas.Load() || s.RefusesWrites() != nil) {
		w.Risk = true
		text, evicted := s.scarce(c, cmd, args)
		w.Risk = false
		if evicted && s.Tracking.Load() != 0 {
			sess.Conn.Post(sess.Conn.Resume) // it is told of what was evicted before it gets the reply
			return retry
		}
		if text != "" {
			s.refuse(c, text)
			return replied
		}
	}
	if run := s.Long.Slow(); run != nil && cmd.Flags&command.AllowBusy == 0 && sess.Conn != nil && !s.Long.KeysOnly.Load() {
		s.refuse(c, run.Busy())
		return replied
	}
	if s.Pause.On() && s.pauses(c, cmd, args, sess) {
		return retry
	}
	if sess.Multi.Active && cmd.Flags&command.InMulti == 0 {
		s.queue(c, cmd, args)
		return replied
	}

	w.Wanted.Reset()
	var h *engine.Reservation
	long := false
	if w.Kept.All() {
		w.Wanted, w.Kept = w.Kept, engine.LockSet{}
	} else if f.Key > 0 {
		c.NeedAt(&w.Wanted, args[f.Key], f.Place)
		w.Risk = true
		h = c.KS.Lock(w.Wanted)
	} else {
		long = s.locks(c, cmd, args, &w.Wanted)
		w.Risk = true
		h = lock(c, cmd, w.Wanted)
		if h != nil && cmd.Plan != nil { // it may find that less will do: a script is analysed then
			w.Risk = false
			w.Wanted.Reset()
			long = s.locks(c, cmd, args, &w.Wanted)
			w.Risk = true
			h = lock(c, cmd, w.Wanted)
		}
	}
	set := w.Wanted
	if h != nil {
		if h.Slow() && cmd.Flags&command.AllowBusy == 0 {
			s.refuse(c, h.Info.(*longrun.Run).Busy())
			return replied
		}
		if sess.Conn == nil {
			for h != nil { // the server's own session may wait
				h.Wait()
				h = lock(c, cmd, set)
			}
		} else {
			resume := func() { sess.Conn.Post(sess.Conn.Resume) }
			if cmd.Flags&command.AllowBusy != 0 {
				h.OnRelease(resume)
			} else {
				h.OnReleaseOrSlow(resume) // it may have become slow just now
			}
			return retry
		}
	}
	w.Locked, c.Held = set, set
	if long {
		s.goLong(c, engine.Monotonic())
	}
	w.Risk = false
	s.execute(c, cmd)
	w.Risk = true
	c.Commit()
	if c.LSN != 0 {
		sess.Wrote = c.LSN
	}
	if c.KS.Gated.Load() {
		w.Seen = max(w.Seen, c.LSN, c.KS.ChangedAt(set))
	}
	if c.Long != nil {
		return s.endLong(c)
	}
	if set != (engine.LockSet{}) {
		c.ServeReady()
		w.Changes += c.TakeChanges()
	}
	if w.Keep && set.All() {
		w.Kept = set
	} else {
		c.KS.Unlock(w.Locked)
	}
	w.Locked = engine.LockSet{}
	w.Risk = false
	if c.Waits {
		w.Counters[cmd.Index()].Calls.Add(1)
		return waits
	}
	return ran
}

// lock takes the shards that a command needs, or returns who has one.
func lock(c *command.Ctx, cmd *command.Command, set engine.LockSet) *engine.Reservation {
	if cmd.Flags&command.LeavesCold != 0 {
		return c.KS.LockCold()
	}
	return c.KS.Lock(set)
}

// execute calls the handler and counts failures.
func (s *server) execute(c *command.Ctx, cmd *command.Command) {
	// MONITOR shows a script before what it does, all else once it has run, and
	// nothing that administers.
	monitored := s.Monitors.Load() != 0 && cmd.Flags&command.Admin == 0
	if monitored && cmd.Flags&command.SkipMonitor != 0 {
		s.Monitor.Feed(c, c.Args)
		monitored = false
	}
	c.Writes = cmd.Flags&command.Write != 0
	cmd.Run(c)
	c.EndCommand(c.Args)
	if n := c.TakeChanges(); n != 0 {
		c.Worker.Changes += n
	}
	if monitored {
		s.Monitor.Feed(c, c.Args)
	}
	// Of a script the commands count that it calls.
	if cmd.Flags&(command.ReadOnly|command.SkipMonitor) == command.ReadOnly && s.Tracking.Load() != 0 {
		s.Tracker.Read(c, cmd, c.Args)
	}
	if c.Failure != "" {
		c.Worker.Counters[cmd.Index()].Failed.Add(1)
		if !c.Counted {
			s.CountError(c.Failure)
		}
	}
	c.Counted = false
}

// nested runs a command inside EXEC, under the locks of c.
func (s *server) nested(c *command.Ctx, args [][]byte) {
	cmd, known := s.Table.Resolve(args)
	text := ""
	if cmd == nil || !known {
		text = unknown(cmd, args)
	} else if text = s.check(c, cmd, args); text != "" {
		c.Worker.Counters[cmd.Index()].Rejected.Add(1)
	}
	if text != "" {
		c.Writer.Error(text)
		s.CountError(text)
		return
	}
	began := engine.Monotonic()
	s.inner(c, cmd, args)
	s.took(c, cmd, args, engine.Monotonic()-began)
}

// fromScript executes a checked command that a script calls. Reading the clock
// costs a good part of what most of them take: those that are slow only as part
// of a slow script are not timed.
func (s *server) fromScript(c *command.Ctx, cmd *command.Command, args [][]byte) {
	if cmd.Brief() && !s.timedApart() {
		s.inner(c, cmd, args)
		return
	}
	began := engine.Monotonic()
	s.inner(c, cmd, args)
	s.took(c, cmd, args, engine.Monotonic()-began)
}

// inner executes a checked command inside another one.
func (s *server) inner(c *command.Ctx, cmd *command.Command, args [][]byte) {
	outerArgs, outerCmd, outerMark, outerFailure := c.Args, c.Cmd, c.Mark, c.Failure
	c.Args, c.Cmd, c.Mark, c.Failure = args, cmd, c.Writer.Mark(), ""
	c.Forget()
	if i := cmd.SoleKey(args); i > 0 {
		c.Hint(args[i])
	}
	s.execute(c, cmd)
	c.Worker.Counters[cmd.Index()].Calls.Add(1)
	c.Args, c.Cmd, c.Mark, c.Failure = outerArgs, outerCmd, outerMark, outerFailure
	c.Forget()
}

// check returns the error text for a command that may not run now.
func (s *server) check(c *command.Ctx, cmd *command.Command, args [][]byte) string {
	if cmd.Arity > 0 && len(args) != cmd.Arity || len(args) < -cmd.Arity {
		return command.ErrArity(cmd.FullName())
	}
	sess := c.Session
	if !sess.Authenticated && s.ACL.Required() && cmd.Flags&command.NoAuth == 0 {
		return command.ErrNoAuth
	}
	if text := s.Refuses(c, cmd, args); text != "" {
		return text
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
	if s.Monitors.Load() != 0 && sess.Shown.Flags.Load()&command.ShownMonitor != 0 &&
		cmd.Flags&(command.Write|command.ReadOnly|command.MayReplicate) != 0 {
		return "ERR Replica can't interact with the keyspace" // what Redis calls those it feeds
	}
	return ""
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
// fail.
func (s *server) refuse(c *command.Ctx, text string) {
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

func (s *server) queue(c *command.Ctx, cmd *command.Command, args [][]byte) {
	m := &c.Session.Multi
	if len(m.Queue) >= multiCommandsMax {
		s.refuse(c, "ERR Transaction holds too many commands")
		return
	}
	if !m.Failed {
		q := command.Queued{Cmd: cmd, Args: command.Clone(args)}
		m.Queue = append(m.Queue, q)
		if conn := c.Session.Conn; conn != nil {
			bytes := 0
			for _, a := range args {
				bytes += len(a)
			}
			conn.QueuedBytes.Add(int64(bytes))
		}
		c.Session.Shown.Multi.Add(1)
	}
	c.Status("QUEUED")
}

// pauses tells whether CLIENT PAUSE holds a command back. Not so those that
// drive the clock, by which it ends.
func (s *server) pauses(c *command.Ctx, cmd *command.Command, args [][]byte, sess *command.Session) bool {
	if sess.Conn == nil || cmd.Flags&command.Test != 0 {
		return false
	}
	const mayWrite = command.Write | command.MayReplicate
	return s.Pause.Hold(sess.Conn, s.flagsOf(c, cmd, args)&mayWrite != 0)
}

// scarce returns the error for a command for which there is too little memory or there are too few replicas, and whether
// keys were evicted to make room.
func (s *server) scarce(c *command.Ctx, cmd *command.Command, args [][]byte) (text string, evicted bool) {
	flags := s.flagsOf(c, cmd, args)
	if s.MaxMemory.Load() != 0 && !s.Pause.On() { // a pause also keeps keys from going
		c.Account()
		var ok bool
		ok, evicted = s.Keeper.MakeRoom(c.Now)
		if c.OutOfMemory = !ok; !ok && flags&command.DenyOOM != 0 {
			return command.ErrOutOfMemory, evicted
		}
	}
	if text := s.RefusesWrites(); text != nil && flags&(command.Write|command.MayReplicate) != 0 {
		return *text, evicted
	}
	if s.TooFewReplicas.Load() && flags&command.Write != 0 {
		return command.ErrNoReplicas, evicted
	}
	return "", evicted
}

// flagsOf are the flags of a call, which depend on the script if it is one's; for EXEC they are also those of the
// commands that it runs.
func (s *server) flagsOf(c *command.Ctx, cmd *command.Command, args [][]byte) command.Flags {
	if cmd.FlagsOf != nil {
		return cmd.FlagsOf(c, args)
	}
	flags := cmd.Flags
	if cmd.Plan != nil && cmd.Flags&command.InMulti != 0 {
		for _, q := range c.Session.Multi.Queue {
			flags |= s.flagsOf(c, q.Cmd, q.Args)
		}
	}
	return flags
}

// locks adds what a command needs to the set, and tells whether it may run
// long.
func (s *server) locks(c *command.Ctx, cmd *command.Command, args [][]byte, set *engine.LockSet) (long bool) {
	switch {
	case cmd.Plan != nil:
		return cmd.Plan(c, args, set)
	case cmd.Flags&command.WholeKeyspace != 0:
		set.AddAll()
	case cmd.HasKeys():
		if i := cmd.SoleKey(args); i > 0 {
			c.Need(set, args[i])
		} else {
			cmd.EachKey(args, func(i int) { set.AddKey(args[i]) })
		}
	}
	return false
}
