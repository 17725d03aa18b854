package clients

// maxclients and the file descriptors that the system lets the process have: a server that promised more clients than that
// could not even tell the last ones that they are too many.

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/limitkv/limitkv/resp/number"
	"github.com/limitkv/limitkv/server/params"
	"github.com/limitkv/limitkv/web"
)

// descriptorsReserved are for what is no client: listeners, the log, files that are written, links to other servers, the
// page. Each event loop takes two more.
const descriptorsReserved = 32

// reserved is how many descriptors are not for clients.
func (l *Limits) reserved() int64 {
	n := descriptorsReserved + 2*int64(l.s.Loops)
	if l.s.Config.Value("http") != "" { // checks and scrapes find room also where clients do not
		n += web.ConnectionsMax
	}
	return n
}

// declareMaxClients: once the server has started, maxclients is not raised above what the system allows.
func (l *Limits) declareMaxClients() {
	l.maxClients.Store(10000)
	l.s.Config.Add(&params.Param{
		Name: "maxclients", Help: "most clients at a time",
		Get: func() string { return strconv.FormatInt(l.maxClients.Load(), 10) },
		Set: func(value string) error {
			n, ok := number.ParseInt([]byte(value))
			switch {
			case !ok:
				return params.ErrNotInteger
			case n < 1 || n > math.MaxUint32:
				return params.ErrNotBetween(1, math.MaxUint32)
			}
			if l.started {
				if fits := l.fit(n); fits < n {
					return fmt.Errorf("The operating system is not able to handle the specified number of clients, try with %d", max(fits, 1))
				}
			}
			l.maxClients.Store(n)
			return nil
		},
	})
}

// Start lowers maxclients to what the system allows, once the parameters are there.
func (l *Limits) Start() error {
	l.started = true
	n := l.maxClients.Load()
	fits := l.fit(n)
	if fits < 1 {
		return errors.New(tooFew(fits+l.reserved(), n+l.reserved()))
	}
	l.maxClients.Store(fits)
	return nil
}

func tooFew(have, need int64) string {
	return fmt.Sprintf("Your current 'ulimit -n' of %d is not enough for the server to start. Please increase your open file limit to at least %d. Exiting.", have, need)
}

// fit is how many of n clients the system allows, which is asked for more descriptors if need be; the log says so in Redis's
// words. It may be less than 1.
func (l *Limits) fit(n int64) int64 {
	need := n + l.reserved()
	before, now, err := descriptors(need)
	if now >= need {
		if before < need {
			l.s.Logf('n', "Increased maximum number of open files to %d (it was originally set to %d).", need, before)
		}
		return n
	}
	fits := now - l.reserved()
	if fits < 1 {
		l.s.Logf('w', "%s", tooFew(now, need))
		return fits
	}
	l.s.Logf('w', "You requested maxclients of %d requiring at least %d max file descriptors.", n, need)
	l.s.Logf('w', "Server can't set maximum open files to %d because of OS error: %v.", need, err)
	l.s.Logf('w', "Current maximum open files is %d. maxclients has been reduced to %d to compensate for low ulimit. If you need higher maxclients increase 'ulimit -n'.", now, fits)
	return fits
}

// shortageMicros is how often the log is told that clients find no descriptor: each is an event of its own,
// of which there may be any number.
const shortageMicros = 60e6

// Full is told that a client came for whom there is no descriptor: maxclients leaves room for more files than are in use,
// but the limit can be lowered under a running process, and the whole system can run out. It returns what the client is
// told.
func (l *Limits) Full() string {
	now, last := l.s.Keyspace.Clock.Now(), l.shortage.Load()
	if (last == 0 || now-last >= shortageMicros) && l.shortage.CompareAndSwap(last, now) {
		l.s.Logf('w', "Accepting client connection: no file descriptor is left for it (ulimit -n)")
	}
	return errMaxClients
}
