package main

// Signals of a fault write the stacks of all goroutines to the log; then the process ends. SIGALRM writes them too, and the
// process continues, as in Redis.

import (
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/limitkv/limitkv/server"
)

// reportMax is how long a report may take, since the log may be a pipe that nobody reads.
const reportMax = 5 * time.Second

// stackMax is the largest size of the stacks in a report.
const stackMax = 16 << 20

// report handles the fault signals that others send: it writes a report, unless crash-log-enabled is no. The server's own
// faults are panics.
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
				number, _ := got.(syscall.Signal) // always true
				s.Logf('w', "limitkv %s crashed by signal: %d (%v)", server.Version, int(number), got)
				stacks(s)
				s.Logf('w', "=== LIMITKV BUG REPORT END ===")
				os.Exit(exitFatal)
			}
		}
	}()
}

// stacks logs the stacks of all goroutines.
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
