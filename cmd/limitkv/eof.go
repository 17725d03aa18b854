package main

// --until-eof makes the server end with the process that started it. That process holds the write end of a pipe, which is the
// server's standard input. When it ends, even by SIGKILL, the system closes the pipe. Linux can also send a signal when a
// parent dies, but a pipe works on every system. And that signal comes when the thread that started the server ends, not the
// process.

import (
	"io"
	"os"
	"slices"
)

// without removes a flag without value from the arguments, and tells whether it was there.
func without(args []string, flag string) (rest []string, given bool) {
	if !slices.Contains(args, flag) {
		return args, false
	}
	return slices.DeleteFunc(slices.Clone(args), func(a string) bool { return a == flag }), true
}

// inputEnds returns a channel that is closed at the end of standard input. All input is discarded.
func inputEnds() <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // a read error is an end, too
		close(ended)
	}()
	return ended
}
