package config

// Parameters that this family acts on: those of keyspace events, and the working directory.

import (
	"errors"
	"os"
	"strings"
	"syscall"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/server/params"
)

func (f *family) declareParams() {
	c, ks := f.s.Config, f.s.Keyspace
	c.Add(&params.Param{
		Name: "notify-keyspace-events", Help: "classes of keyspace events to publish, as letters",
		Get: func() string { return eventLetters(engine.EventClass(ks.EventMask.Load())) },
		Set: func(value string) error {
			mask, err := eventClasses(value)
			if err == nil {
				ks.Each(func(ks *engine.Keyspace) { ks.EventMask.Store(uint32(mask)) })
			}
			return err
		},
	})
	c.Add(&params.Param{
		Name: "dir", Protected: true, NotLoading: true, Always: true, Help: "working directory, which a relative logfile and unixsocket are in",
		Get: func() string {
			dir, _ := os.Getwd() // empty if it is unknown
			return dir
		},
		Set: func(dir string) error {
			err := os.Chdir(dir)
			var no syscall.Errno
			if errors.As(err, &no) && (f.s.Running.Load() || f.s.Loading.On()) {
				text := no.Error()
				return errors.New(strings.ToUpper(text[:1]) + text[1:]) // in the form of C's strerror
			}
			return err
		},
	})
}

// eventClassLetters are the letters of notify-keyspace-events in the order in which CONFIG GET shows them. A means all
// letters before n.
var eventClassLetters = []struct {
	letter byte
	class  engine.EventClass
}{
	{'g', engine.EventGeneric}, {'$', engine.EventString}, {'l', engine.EventList}, {'s', engine.EventSet},
	{'h', engine.EventHash}, {'z', engine.EventZSet}, {'x', engine.EventExpired}, {'e', engine.EventEvicted},
	{'t', engine.EventStream}, {'d', engine.EventModule | engine.EventLimiter | engine.EventDelayQueue | engine.EventLock}, {'n', engine.EventNew},
	{'K', engine.EventKeyspace}, {'E', engine.EventKeyevent}, {'m', engine.EventKeyMiss},
}

const allEvents = engine.EventGeneric | engine.EventString | engine.EventList | engine.EventSet | engine.EventHash |
	engine.EventZSet | engine.EventExpired | engine.EventEvicted | engine.EventStream | engine.EventModule |
	engine.EventLimiter | engine.EventDelayQueue | engine.EventLock

// eventClasses reads the letters of notify-keyspace-events.
func eventClasses(letters string) (mask engine.EventClass, err error) {
next:
	for i := range len(letters) {
		if letters[i] == 'A' {
			mask |= allEvents
			continue
		}
		for _, l := range eventClassLetters {
			if l.letter == letters[i] {
				mask |= l.class
				continue next
			}
		}
		return 0, errors.New("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.")
	}
	return mask, nil
}

// eventLetters is the reverse of eventClasses.
func eventLetters(mask engine.EventClass) string {
	var b []byte
	all := mask&allEvents == allEvents
	if all {
		b = append(b, 'A')
	}
	for _, l := range eventClassLetters {
		// Redis drops n beside A, although A does not include it.
		if mask&l.class != 0 && !(all && (l.class&allEvents != 0 || l.class == engine.EventNew)) {
			b = append(b, l.letter)
		}
	}
	return string(b)
}
