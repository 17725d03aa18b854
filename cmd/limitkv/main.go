// Command limitkv is the server: flags and config file, listeners, signals,
// wiring, and nothing else.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/limitkv/limitkv/commands"
)

func main() {
	s, err := commands.New(commands.Options{Shutdown: os.Exit})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	addr, err := s.Listen("tcp", "127.0.0.1:6379")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("listening on", addr)
	sig := make(chan os.Signal, 1)
	signal.Notify(sig, syscall.SIGTERM, syscall.SIGINT)
	<-sig
	s.Close()
}
