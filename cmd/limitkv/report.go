package main

// What a signal that tells of a fault leaves in the log: where every goroutine is. Then
// the process ends. SIGALRM, as in Redis, asks for the same and lets it go on.

import (
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/limitkv/limitkv/server"
)

// reportMax is how long a report may take: the log may be a pipe that nobody reads.
const reportMax = 5 * time.Second

// stackMax is how much of the stacks a report has.
const stackMax = 16 << 20

// report has the signals of faults that others send answered with a report, unless
// crash-log-enabled is no. The server's own faults are panics.
func report(s *server.Server) {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGALRM)
	faults := make(chan os.Signal, 1)
	signal.Notify(faults, syscall.SIGABRT, syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGFPE, syscall.SIGILL)
	go func() {
		for {
			select {
			case <-asked:
				s.Logf('w', "Received SIGALRM")
				stacks(s)
			case got := <-faults:
				if s.Config.Find("crash-log-enabled").Get() != "yes" {
					os.Exit(exitFatal)
				}
				time.AfterFunc(reportMax, func() { os.Exit(exitFatal) })
				s.Logf('w', "=== LIMITKV BUG REPORT START ===")
				number, _ := got.(syscall.Signal) // every signal is one
				s.Logf('w', "limitkv %s crashed by signal: %d (%v)", server.Version, int(number), got)
				stacks(s)
				s.Logf('w', "=== LIMITKV BUG REPORT END ===")
				os.Exit(exitFatal)
			}
		}
	}()
}

// stacks logs where every goroutine is.
func stacks(s *server.Server) {
	text := make([]byte, 64<<10)
	for {
		n := runtime.Stack(text, true)
		if n < len(text) || len(text) >= stackMax {
			text = text[:n]
			break
		}
		text = make([]byte, 4*len(text))
	}
	s.Logf('w', "------ STACK TRACE ------\n%s\n------ STACK TRACE DONE ------", text)
}
