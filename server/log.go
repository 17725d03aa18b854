package server

// The log: lines with a time and a level, to standard output or a file.

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/params"
)

// logLevels are the words of loglevel, and the letters of Logf, from the most
// to the least talkative; marks are how the lines show them.
var logLevels = []string{"debug", "verbose", "notice", "warning", "nothing"}

const (
	logLetters = "dvnw"
	logMarks   = ".-*#"
)

// log is where lines go.
type log struct {
	clock *engine.Clock
	level atomic.Int32 // index of the least level that is written
	mu    sync.Mutex
	out   io.Writer
	file  string // what out was opened from
}

// Printf writes a line of a level ('d', 'v', 'n' or 'w').
func (l *log) Printf(level byte, format string, args ...any) {
	i := 0
	for i < len(logLetters)-1 && logLetters[i] != level {
		i++
	}
	if int32(i) < l.level.Load() {
		return
	}
	at := time.UnixMicro(l.clock.Now()).Format("02 Jan 2006 15:04:05.000")
	line := fmt.Sprintf("%d:M %s %c %s\n", os.Getpid(), at, logMarks[i], fmt.Sprintf(format, args...))
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = io.WriteString(l.out, line) // there is no other place to complain
}

// logFunc is a log that somebody else writes.
type logFunc func(level byte, format string, args ...any)

func (f logFunc) Printf(level byte, format string, args ...any) { f(level, format, args...) }

// declare declares loglevel and logfile.
func (l *log) declare(c *params.Config) {
	word := c.Enum("loglevel", "notice", logLevels, "debug, verbose, notice, warning or nothing")
	set := func() {
		for i, name := range logLevels {
			if name == *word.Load() {
				l.level.Store(int32(i))
			}
		}
	}
	set()
	c.OnChange(set, "loglevel")
	c.Add(&params.Param{
		Name: "logfile", Immutable: true, Help: "file to log to, standard output if empty",
		Get: func() string { return l.file },
		Set: func(path string) error {
			if path == "" {
				return nil
			}
			f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
			if err != nil {
				return fmt.Errorf("can't open the log file: %w", err)
			}
			l.mu.Lock()
			l.out, l.file = f, path
			l.mu.Unlock()
			return nil
		},
	})
}

// greet logs what is about to run, before anything is loaded. Tools that start servers read these lines: the process id
// is in the one that always-show-logo asks for.
func (s *Server) greet() {
	s.Logf('n', "limitkv %s is starting; it speaks as Redis version=%s, bits=%d, pid=%d, just started", Version, command.RedisVersion,
		strconv.IntSize, os.Getpid())
	mode := "standalone"
	if s.Cluster {
		mode = "cluster"
	}
	if s.Config.Find("always-show-logo").Get() == "yes" {
		s.Logf('n', "limitkv %s (%d bit) in %s mode. Port: %s PID: %d", Version, strconv.IntSize, mode, s.params.port(), os.Getpid())
	}
	s.Logf('n', "Running mode=%s, port=%s.", mode, s.params.port())
	s.Logf('n', "Server initialized")
}
