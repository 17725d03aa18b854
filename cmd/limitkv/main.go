// Command limitkv is the server: flags and config file, listeners, signals,
// wiring, and nothing else.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/limitkv/limitkv/commands"
	"github.com/limitkv/limitkv/commands/command"
)

func main() {
	began := time.Now()
	args := os.Args[1:]
	test := false
	for i := 0; i < len(args); i++ {
		switch args[i] {
		case "--version", "-v":
			fmt.Println("limitkv", commands.Version)
			return
		case "--test":
			test = true
			args = append(args[:i:i], args[i+1:]...)
			i--
		}
	}
	settings, err := command.ParseArgs(args)
	if err != nil {
		fail(err)
	}
	exit := make(chan int, 1)
	s, err := commands.New(commands.Options{
		Settings: settings,
		Test:     test,
		Log:      os.Stdout,
		Shutdown: func(code int) {
			select {
			case exit <- code:
			default: // it is ending already
			}
		},
	})
	if err != nil {
		fail(err)
	}
	addrs, err := s.Listen()
	if err != nil {
		fail(err)
	}
	fmt.Printf("limitkv %s listens on %s (pid %d, up in %.1f ms)\n", commands.Version,
		strings.Join(addrs, " "), os.Getpid(), float64(time.Since(began).Microseconds())/1000)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	code := 0
	select {
	case <-signals:
	case code = <-exit:
	}
	s.Close()
	os.Exit(code)
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "limitkv:", err)
	os.Exit(1)
}
