// Package clients, internal to the server, limits connections: their number, how long they may be idle, and how many bytes
// they may send and leave unread.
package clients

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/limitkv/limitkv/server/acl"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/params"
)

const errMaxClients = "ERR max number of clients reached"

// errProtected is the error for a client from another machine while the server has no password and protected-mode is on.
const errProtected = "DENIED limitkv is in protected mode: it has no password, so it serves clients of this machine only. Set requirepass, or turn protected-mode off if every client on the network may do everything."

// unauthOutputBytesMax is how many bytes a client that has not authenticated may leave unread.
const unauthOutputBytesMax = 1024

// idleCheckMicros is how often idle clients are searched for while timeout is set.
const idleCheckMicros = 1e6

// Limits holds the limits of a server's connections.
type Limits struct {
	s       *command.Server
	users   *acl.Users
	started bool

	idleSeconds, queryBuffer, maxBulk *atomic.Int64
	maxClients                        atomic.Int64
	protected                         *atomic.Bool
	output                            atomic.Pointer[outputLimits]
	connected                         atomic.Int64
	checking                          atomic.Bool
	shortage                          atomic.Int64 // when a shortage of descriptors was last logged
}

// The classes of clients in client-output-buffer-limit.
const (
	classNormal = iota
	classReplica
	classPubSub
	classes
)

var classNames = [classes]string{"normal", "slave", "pubsub"}

// outputLimits are the limits of each class.
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

// parse sets the limits of the classes in value.
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

// New declares the limits of a server.
func New(s *command.Server, users *acl.Users) *Limits {
	l := &Limits{s: s, users: users}
	c := s.Config
	l.declareMaxClients()
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
	c.OnChange(l.everywhere, "client-query-buffer-limit", "proto-max-bulk-len", "client-output-buffer-limit")
	c.OnChange(l.watchIdle, "timeout")
	return l
}

// Begin gives a session the rights it has before AUTH.
func (l *Limits) Begin(s *command.Session) {
	s.SetUser(l.users.Default())
	s.Authenticated = !l.users.Required()
	if s.Conn != nil {
		s.Conn.SetUnauthenticated(!s.Authenticated)
	}
}

// Admit initialises a new session, or returns the error why it is refused.
func (l *Limits) Admit(s *command.Session) string {
	l.Begin(s)
	l.Limit(s)
	unix := !s.Conn.Remote().IsValid()
	s.Show(command.ShownUnixSocket, unix)
	if !s.Conn.Inside && l.connected.Add(1) > l.maxClients.Load() {
		return errMaxClients
	}
	if l.protected.Load() && !l.users.Required() && !unix && !s.Conn.Remote().Addr().Unmap().IsLoopback() {
		return errProtected
	}
	return ""
}

// TooMany returns the error for one more client, "" if there is room for it.
func (l *Limits) TooMany() string {
	if l.connected.Load() >= l.maxClients.Load() {
		return errMaxClients
	}
	return ""
}

// Closed is called when a connection has ended.
func (l *Limits) Closed(s *command.Session) {
	if !s.Conn.Inside {
		l.connected.Add(-1)
	}
	l.s.Pause.Leave(s.Conn)
}

// Limit sets a connection's limits by its class.
func (l *Limits) Limit(s *command.Session) {
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
	o := &l.output.Load()[class]
	s.Conn.OutputHard, s.Conn.OutputSoft, s.Conn.OutputSoftMicros = o.hard, o.soft, o.seconds*1e6
	if class == classReplica && o.hard > 0 { // a replica may be behind by as much as the backlog stores anyway
		s.Conn.OutputHard = max(o.hard, l.s.BacklogBytes.Load())
	}
	if !s.Authenticated && l.users.Required() {
		s.Conn.OutputHard = unauthOutputBytesMax
	}
	s.Conn.QueryBufferLimit = l.queryBuffer.Load()
	s.Conn.SetMaxBulk(l.maxBulk.Load())
}

// everywhere sets the limits of all connections again.
func (l *Limits) everywhere() {
	for _, s := range l.s.Clients.All() {
		s.Conn.Post(func() { l.Limit(s) })
	}
}

// watchIdle begins the search for idle clients, if timeout is set and it has not begun.
func (l *Limits) watchIdle() {
	if l.idleSeconds.Load() > 0 && l.checking.CompareAndSwap(false, true) {
		l.s.Keyspace.Sched.At(l.s.Keyspace.Clock.Now()+idleCheckMicros, l.dropIdle)
	}
}

// dropIdle disconnects clients that have been idle for too long. Blocked, subscribed and monitoring clients and replicas are
// not idle.
func (l *Limits) dropIdle(now int64) {
	limit := l.idleSeconds.Load() * 1e6
	if limit == 0 {
		l.checking.Store(false)
		l.watchIdle() // timeout may have been set meanwhile
		return
	}
	for _, s := range l.s.Clients.All() {
		idle := func() bool {
			return now-max(s.LastUsed.Load(), s.Created) > limit && s.Blocked.Load() == nil &&
				s.Subscriptions.Load() == 0 && !s.Busy.Load() && s.Shown.Flags.Load()&(command.ShownMonitor|command.ShownReplica) == 0
		}
		if idle() {
			s.Conn.Post(func() {
				if idle() {
					l.s.Logf('v', "closing idle client %d %s", s.ID, s.Conn.RemoteAddr())
					s.Conn.Close(false)
				}
			})
		}
	}
	l.s.Keyspace.Sched.At(now+idleCheckMicros, l.dropIdle)
}
