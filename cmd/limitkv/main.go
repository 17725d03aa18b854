// Command limitkv is the server: flags and config file, listeners, signals,
// wiring, and nothing else.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/limitkv/limitkv/commands"
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/server"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/params"
	"github.com/limitkv/limitkv/server/persistence"
)

func main() {
	began := time.Now()
	serve(began, os.Args[1:], server.Options{Log: os.Stdout})
}

// serve is the whole program, with arguments and options.
func serve(began time.Time, args []string, options server.Options) {
	switch {
	case slices.Contains(args, "--version"), slices.Contains(args, "-v"):
		// Programs that start servers for tests look here for Redis's version, in the format of redis-server: the first number
		// with dots, or the text after v=.
		fmt.Printf("Redis server v=%s sha=00000000:0 malloc=go bits=%d build=0 limitkv=%s\n",
			command.RedisVersion, strconv.IntSize, server.Version)
		return
	case slices.Contains(args, "--help"), slices.Contains(args, "-h"):
		help(args)
		return
	case len(args) > 0 && args[0] == "check":
		check(args[1:])
		return
	case len(args) > 0 && args[0] == "export":
		export(args[1:])
		return
	case len(args) > 0 && args[0] == "ping":
		ping(args[1:])
		return
	}
	args, options.Test = without(args, "--test")
	args, untilEOF := without(args, "--until-eof")
	if n := len(args); untilEOF && n > 0 && (args[0] == "-" || args[n-1] == "-") {
		fail(errors.New("--until-eof: standard input is the configuration file"))
	}
	settings, file, err := params.ParseArgs(args)
	if err != nil {
		fail(err)
	}
	options.Settings = settings
	if file != "" && file != "-" {
		options.ConfigFile, _ = filepath.Abs(file) // it was just read
	}
	exit := make(chan struct{}, 1)
	options.LoadLater = true
	options.Shutdown = func() {
		select {
		case exit <- struct{}{}:
		default: // it was notified already, and will read the present request
		}
	}
	// A busy event loop occupies a P of the Go scheduler. One more is for timers and all that runs beside the loops.
	options.Loops = runtime.GOMAXPROCS(0)
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(options.Loops + 1)
	}
	paceGC()
	memory := newKeeper()
	options.Freed = memory.tell
	options.Fatal = func(text string) {
		fmt.Fprintln(os.Stderr, "limitkv:", text) // the log may go elsewhere
		os.Exit(exitFatal)
	}
	var stuck atomic.Pointer[time.Timer]
	options.Served = func() {
		if t := stuck.Load(); t != nil {
			t.Stop() // a large snapshot may take long
		}
	}
	s, err := commands.New(options)
	if err != nil {
		fail(err)
	}
	addrs, err := s.Listen()
	if err != nil {
		_ = s.Close()
		fail(err)
	}
	go memory.keep(func() int64 { _, n := s.MeasureMemory(); return n }, s.MaxMemory.Load)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	signal.Ignore(syscall.SIGHUP, syscall.SIGPIPE) // a reader of the log may go
	report(s)
	supervisor := supervised(s)
	var inputEnded <-chan struct{}
	if untilEOF {
		inputEnded = inputEnds()
	}
	loaded := make(chan error, 1)
	go func() { loaded <- s.Load() }()
	code := 0
	for ending := false; !ending; {
		select {
		case got := <-signals:
			s.Shutdown.Ask(signalled(s, got), nil)
			ending = prepare(s, supervisor, &stuck, signals)
		case <-inputEnded:
			inputEnded = nil
			s.Logf('w', "Standard input ended, scheduling shutdown...")
			s.Shutdown.Ask(parseEnd(s, "shutdown-on-sigterm"), nil)
			ending = prepare(s, supervisor, &stuck, signals)
		case <-exit:
			ending = prepare(s, supervisor, &stuck, signals)
		case err := <-loaded:
			if err != nil { // already logged
				supervisor.ending()
				fail(err)
			}
			fmt.Printf("limitkv %s listens on %s (pid %d, up in %.1f ms)\n", server.Version,
				strings.Join(addrs, " "), os.Getpid(), float64(time.Since(began).Microseconds())/1000)
			s.Ready()
			supervisor.ready()
		}
	}
	// The process ends even if something is stuck, such as the reader of the log.
	stuck.Store(time.AfterFunc(s.ShutdownTimeout()+lastWords, func() { os.Exit(exitStuck) }))
	go func() { // the sender of a second signal does not want to wait
		<-signals
		os.Exit(exitStuck)
	}()
	if err := s.Close(); err != nil {
		s.Logf('w', "%v", err)
		code = exitStuck
	}
	s.Logf('w', "limitkv is now ready to exit, bye bye...")
	os.Exit(code)
}

// signalled returns how a signal ends the server.
func signalled(s *server.Server, got os.Signal) command.End {
	name, parameter := "SIGTERM", "shutdown-on-sigterm"
	if got == syscall.SIGINT {
		name, parameter = "SIGINT", "shutdown-on-sigint"
	}
	if s.Loading.On() {
		s.Logf('w', "Received shutdown signal during loading, scheduling shutdown.")
	} else {
		s.Logf('w', "Received %s scheduling shutdown...", name)
	}
	return parseEnd(s, parameter)
}

// parseEnd returns the end that a parameter requests.
func parseEnd(s *server.Server, parameter string) command.End {
	return command.ParseEnd(strings.Fields(s.Config.Find(parameter).Get()))
}

// prepare lets replicas catch up and writes the last files. It tells whether the server shall end. A second signal ends the
// process at once, since its sender does not want to wait. But SIGTERM does not while replicas catch up, as in Redis.
func prepare(s *server.Server, supervisor *supervisor, stuck *atomic.Pointer[time.Timer], signals chan os.Signal) bool {
	supervisor.tell("STOPPING=1\n")
	done := make(chan error, 1)
	go func() {
		end, err := s.CatchUp()
		if err == nil {
			stuck.Store(time.AfterFunc(s.ShutdownTimeout()+lastWords, func() { os.Exit(exitStuck) }))
			err = s.Prepare(end)
			stuck.Load().Stop()
		}
		done <- err
	}()
	for {
		select {
		case err := <-done:
			if err == nil {
				supervisor.ending()
			}
			return err == nil
		case got := <-signals:
			if got != syscall.SIGTERM || !s.Shutdown.Waits() {
				os.Exit(exitStuck)
			}
		}
	}
}

// The exit codes after a failure: exitFatal if the data could no longer be trusted (EX_SOFTWARE), exitStuck if something did
// not end.
const (
	exitFatal = 70
	exitStuck = 1
)

// lastWords is how long after shutdown-timeout the process may still write the log.
const lastWords = 500 * time.Millisecond

// check is "limitkv check path", with options to repair a log.
func check(args []string) {
	usage := errors.New("usage: limitkv check FILE|DIRECTORY [--fix | --truncate-to-timestamp SECONDS] [--yes]\nA file or a directory is missing, or there are too many.")
	how := persistence.Mending{Agree: agreed}
	var paths []string
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case a == "--fix":
			how.Fix = true
		case a == "--yes":
			how.Agree = nil
		case a == "--truncate-to-timestamp" && i+1 < len(args):
			i++
			n, err := strconv.ParseInt(args[i], 10, 64)
			if err != nil || n <= 0 {
				fail(fmt.Errorf("--truncate-to-timestamp: %q is no time in Unix seconds", args[i]))
			}
			how.TruncateTo = n
		case strings.HasPrefix(a, "-"):
			fail(fmt.Errorf("limitkv check does not know %s\n%w", a, usage))
		default:
			paths = append(paths, a)
		}
	}
	if len(paths) != 1 {
		fail(usage)
	}
	if err := persistence.Check(paths[0], how, func(line string) { fmt.Println(line) }); err != nil {
		fail(err)
	}
}

// agreed asks the user.
func agreed(question string) bool {
	fmt.Printf("%s. Continue? [y/N] (--yes does not ask): ", question)
	var answer string
	_, _ = fmt.Scanln(&answer) // no answer means no
	return strings.EqualFold(answer, "y") || strings.EqualFold(answer, "yes")
}

// export is "limitkv export --plain source target".
func export(args []string) {
	usage := errors.New("usage: limitkv export --plain [--rdb-version 9-15] [--lossy] FILE|DIRECTORY TARGET.rdb")
	var (
		how   persistence.Exporting
		plain bool
		paths []string
	)
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case a == "--plain":
			plain = true
		case a == "--lossy":
			how.Lossy = true
		case a == "--rdb-version" && i+1 < len(args):
			i++
			n, err := strconv.Atoi(args[i])
			if err != nil || n <= 0 {
				fail(fmt.Errorf("--rdb-version: %q is no version", args[i]))
			}
			how.Version = n
		case strings.HasPrefix(a, "-"):
			fail(fmt.Errorf("limitkv export does not know %s, or it wants a value\n%w", a, usage))
		default:
			paths = append(paths, a)
		}
	}
	if !plain || len(paths) != 2 {
		fail(usage)
	}
	s, err := commands.New(server.Options{LoadLater: true, Settings: []params.Setting{{Name: "databases", Value: strconv.Itoa(engine.DatabasesMax)}}})
	if err != nil {
		fail(err)
	}
	if err := s.Persistence.Export(paths[0], paths[1], how, func(line string) { fmt.Println(line) }); err != nil {
		fail(err)
	}
}

// fail prints an error and ends the process.
func fail(err error) {
	fmt.Fprintln(os.Stderr, "limitkv:", err)
	os.Exit(1)
}
