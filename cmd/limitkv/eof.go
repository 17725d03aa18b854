package main

// --until-eof ties the server to the process that started it. That process holds the other end of a pipe that is the
// server's standard input. The system closes it when the process ends, however it ends, also by SIGKILL. Linux could signal
// the death of a parent; a pipe works everywhere, and it is the process that counts, not the thread that started the server.

import (
	"io"
	"os"
	"slices"
)

// without takes a flag that has no value from the arguments, and says whether it was there.
func without(args []string, flag string) (rest []string, given bool) {
	if !slices.Contains(args, flag) {
		return args, false
	}
	return slices.DeleteFunc(slices.Clone(args), func(a string) bool { return a == flag }), true
}

// inputEnds returns a channel that is closed when standard input has ended. What comes in until then is not looked at.
func inputEnds() <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // an input that cannot be read has ended too
		close(ended)
	}()
	return ended
}
