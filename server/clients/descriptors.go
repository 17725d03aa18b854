package clients

// maxclients and the process's limit of file descriptors. With too few descriptors the server could not even send the last
// clients an error.

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/limitkv/limitkv/resp/number"
	"github.com/limitkv/limitkv/server/params"
	"github.com/limitkv/limitkv/web"
)

// descriptorsReserved is the number of descriptors for all else: listeners, the log, files, links to other servers, the page.
// Each event loop takes two more.
const descriptorsReserved = 32

// reserved returns how many descriptors are not for clients.
func (l *Limits) reserved() int64 {
	n := descriptorsReserved + 2*int64(l.s.Loops)
	if l.s.Config.Value("http") != "" { // so that health checks and scrapes connect even when clients cannot
		n += web.ConnectionsMax
	}
	return n
}

// declareMaxClients declares maxclients. Once the server has started, it cannot be raised above what the system allows.
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

// Start lowers maxclients to what the system allows. The parameters must have been read.
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

// fit returns how many of n clients the system allows. It raises the limit of descriptors if needed, and logs that in Redis's
// words. The result may be less than 1.
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

// shortageMicros is how often the shortage of descriptors is logged, as any number of clients may be affected.
const shortageMicros = 60e6

// Full is called for a client that gets no descriptor, and returns its error. maxclients leaves enough of them, but the limit
// can be lowered under a running process, and the whole system can run out.
func (l *Limits) Full() string {
	now, last := l.s.Keyspace.Clock.Now(), l.shortage.Load()
	if (last == 0 || now-last >= shortageMicros) && l.shortage.CompareAndSwap(last, now) {
		l.s.Logf('w', "Accepting client connection: no file descriptor is left for it (ulimit -n)")
	}
	return errMaxClients
}
