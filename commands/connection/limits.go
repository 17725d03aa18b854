package connection

// What a connection may use: how many there may be, how long one may be idle,
// how much it may send and leave unread.

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/params"
)

const errMaxClients = "ERR max number of clients reached"

// errProtected is what a client from elsewhere is told by a server without a
// password that listens on more than the loopback interface.
const errProtected = "DENIED limitkv is in protected mode: it has no password, so it serves clients of this machine only. Set requirepass, or turn protected-mode off if every client on the network may do everything."

// unauthOutputBytesMax is how much a client that has yet to authenticate may
// leave unread.
const unauthOutputBytesMax = 1024

// idleCheckMicros is how often idle clients are looked for while timeout is
// set.
const idleCheckMicros = 1e6

type limits struct {
	idleSeconds, queryBuffer, maxBulk *atomic.Int64
	maxClients                        atomic.Int64
	protected                         *atomic.Bool
	output                            atomic.Pointer[outputLimits]
	connected                         atomic.Int64
	checking                          atomic.Bool
	shortage                          atomic.Int64 // when the log was told that there is no descriptor
}

// The classes of clients that client-output-buffer-limit tells apart.
const (
	classNormal = iota
	classReplica
	classPubSub
	classes
)

var classNames = [classes]string{"normal", "slave", "pubsub"}

// outputLimits are the limits by class.
type outputLimits [classes]struct {
	hard, soft, seconds int64
}

func (l *outputLimits) String() string {
	var b []string
	for i, name := range classNames {
		b = append(b, fmt.Sprintf("%s %d %d %d", name, l[i].hard, l[i].soft, l[i].seconds))
	}
	return strings.Join(b, " ")
}

// parse takes over what value says of some of the classes.
func (l *outputLimits) parse(value string) error {
	words := strings.Fields(value)
	if len(words)%4 != 0 {
		return errors.New("Wrong number of arguments in buffer limit configuration.")
	}
	for ; len(words) > 0; words = words[4:] {
		class := -1
		switch strings.ToLower(words[0]) {
		case "normal":
			class = classNormal
		case "slave", "replica":
			class = classReplica
		case "pubsub":
			class = classPubSub
		default:
			return errors.New("Invalid client class specified in buffer limit configuration.")
		}
		hard, err1 := params.ParseMemory(words[1])
		soft, err2 := params.ParseMemory(words[2])
		seconds, err3 := strconv.ParseInt(words[3], 10, 64)
		if err1 != nil || err2 != nil || err3 != nil || seconds < 0 {
			return errors.New("Error in hard, soft or soft_seconds setting in buffer limit configuration.")
		}
		l[class].hard, l[class].soft, l[class].seconds = hard, soft, seconds
	}
	return nil
}

func (f *family) declareLimits() {
	c, l := f.s.Config, &f.limits
	f.declareMaxClients()
	l.protected = c.Bool("protected-mode", true, "without a password, serve clients of this machine only")
	l.idleSeconds = c.Int("timeout", 0, 0, math.MaxInt32, "seconds after which an idle client is disconnected, 0 = never")
	l.queryBuffer = c.Memory("client-query-buffer-limit", 1<<30, 1<<20, math.MaxInt64, "most bytes of a request that is not complete")
	l.maxBulk = c.MaxBulk()
	l.output.Store(&outputLimits{classReplica: {256 << 20, 64 << 20, 60}, classPubSub: {32 << 20, 8 << 20, 60}})
	c.Add(&params.Param{
		Name: "client-output-buffer-limit", Words: true, Help: "class hard soft seconds …: most bytes of replies that a client has not read",
		Get: func() string { return l.output.Load().String() },
		Set: func(value string) error {
			next := *l.output.Load()
			err := next.parse(value)
			if err == nil {
				l.output.Store(&next)
			}
			return err
		},
	})
	c.OnChange(f.everywhere, "client-query-buffer-limit", "proto-max-bulk-len", "client-output-buffer-limit")
	c.OnChange(f.watchIdle, "timeout")
}

// Admit sets a new session up, or says why it may not be.
func (f *family) Admit(s *command.Session) string {
	f.begin(s)
	f.Limit(s)
	_, unix := s.Conn.Remote(), !s.Conn.Remote().IsValid()
	s.Show(command.ShownUnixSocket, unix)
	if !s.Conn.Inside && f.limits.connected.Add(1) > f.limits.maxClients.Load() {
		return errMaxClients
	}
	if f.limits.protected.Load() && !f.s.ACL.Required() && !unix && !s.Conn.Remote().Addr().Unmap().IsLoopback() {
		return errProtected
	}
	return ""
}

// TooMany is the error for a client that would come now, "" if there is room for it.
func (f *family) TooMany() string {
	if f.limits.connected.Load() >= f.limits.maxClients.Load() {
		return errMaxClients
	}
	return ""
}

func (f *family) closed(s *command.Session) {
	if !s.Conn.Inside {
		f.limits.connected.Add(-1)
	}
	f.s.Pause.Leave(s.Conn)
}

// Limit gives a connection the limits of its class.
func (f *family) Limit(s *command.Session) {
	if s.Conn == nil {
		return
	}
	class := classNormal
	switch {
	case s.Shown.Flags.Load()&command.ShownReplica != 0:
		class = classReplica
	case s.Subscriptions.Load() > 0:
		class = classPubSub
	case s.Shown.Flags.Load()&command.ShownMonitor != 0:
		class = classReplica // Redis feeds both alike
	}
	o := &f.limits.output.Load()[class]
	s.Conn.OutputHard, s.Conn.OutputSoft, s.Conn.OutputSoftMicros = o.hard, o.soft, o.seconds*1e6
	if class == classReplica && o.hard > 0 { // what the backlog has anyway is not too much for a replica to be behind
		s.Conn.OutputHard = max(o.hard, f.s.Replication.Backlog())
	}
	if !s.Authenticated && f.s.ACL.Required() {
		s.Conn.OutputHard = unauthOutputBytesMax
	}
	s.Conn.QueryBufferLimit = f.limits.queryBuffer.Load()
	s.Conn.SetMaxBulk(f.limits.maxBulk.Load())
}

// everywhere gives all connections their limits anew.
func (f *family) everywhere() {
	for _, s := range f.s.Clients.All() {
		s.Conn.Post(func() { f.Limit(s) })
	}
}

// watchIdle begins to look for idle clients, unless it does already or need
// not.
func (f *family) watchIdle() {
	if f.limits.idleSeconds.Load() > 0 && f.limits.checking.CompareAndSwap(false, true) {
		f.s.Keyspace.Sched.At(f.s.Keyspace.Clock.Now()+idleCheckMicros, f.dropIdle)
	}
}

// dropIdle disconnects the clients that have been idle for too long. Those
// that wait for something are not idle.
func (f *family) dropIdle(now int64) {
	limit := f.limits.idleSeconds.Load() * 1e6
	if limit == 0 {
		f.limits.checking.Store(false)
		f.watchIdle() // it may have been set meanwhile
		return
	}
	for _, s := range f.s.Clients.All() {
		idle := func() bool {
			return now-max(s.LastUsed.Load(), s.Created) > limit && s.Blocked.Load() == nil &&
				s.Subscriptions.Load() == 0 && !s.Busy.Load() && s.Shown.Flags.Load()&(command.ShownMonitor|command.ShownReplica) == 0
		}
		if idle() {
			s.Conn.Post(func() {
				if idle() {
					f.s.Logf('v', "closing idle client %d %s", s.ID, s.Conn.RemoteAddr())
					s.Conn.Close(false)
				}
			})
		}
	}
	f.s.Keyspace.Sched.At(now+idleCheckMicros, f.dropIdle)
}
