package limitkvtest

// Faults, and the log of received commands.

import (
	"bytes"
	"fmt"
	"strconv"
	"time"
)

// FailNext makes the next n commands that match a pattern reply an error. The pattern is a name with * and ? ("get", "z*",
// "config|set"), or, if it has a blank, a whole line ("GET user:*"). text begins with the error's code, such as "LOADING Redis
// is loading the dataset in memory".
func (s *Server) FailNext(pattern string, n int, text string) {
	s.t.Helper()
	s.must("LKV.FAULT", "ADD", pattern, fmt.Sprint(n), "ERROR", text)
}

// DelayNext delays the next n commands that match a pattern, by the server's clock. What a client sends after such a command
// waits too.
func (s *Server) DelayNext(pattern string, n int, d time.Duration) {
	s.t.Helper()
	s.must("LKV.FAULT", "ADD", pattern, fmt.Sprint(n), "DELAY", fmt.Sprint(d.Milliseconds()))
}

// DisconnectNext makes the next n commands that match a pattern close their connection instead of running.
func (s *Server) DisconnectNext(pattern string, n int) {
	s.t.Helper()
	s.must("LKV.FAULT", "ADD", pattern, fmt.Sprint(n), "DISCONNECT")
}

// ClearFaults removes the faults that have not happened yet.
func (s *Server) ClearFaults() { s.t.Helper(); s.must("LKV.FAULT", "CLEAR") }

// Record begins to record the commands of clients, and drops those recorded before.
func (s *Server) Record() {
	s.t.Helper()
	s.must("LKV.LOG", "ON")
	s.must("LKV.LOG", "RESET")
}

// Received returns the commands received since Record that match a pattern as in FailNext, the oldest first; "*" matches all.
func (s *Server) Received(pattern string) (commands [][]string) {
	s.t.Helper()
	reply := []byte(s.Do("LKV.LOG", "GET", "MATCH", pattern))
	for range number(&reply, '*') {
		number(&reply, '*') // skip the time, the client and the database
		for range 3 {
			number(&reply, ':')
		}
		args := make([]string, number(&reply, '*'))
		for i := range args {
			n := number(&reply, '$')
			args[i] = string(reply[:n])
			reply = reply[n+len("\r\n"):]
		}
		commands = append(commands, args)
	}
	return commands
}

// number reads a line with a type byte and a number.
func number(reply *[]byte, kind byte) int {
	line, rest, _ := bytes.Cut(*reply, []byte("\r\n"))
	if len(line) == 0 || line[0] != kind {
		panic(fmt.Sprintf("limitkvtest: %q where a %q was expected", line, kind))
	}
	n, err := strconv.Atoi(string(line[1:]))
	if err != nil {
		panic(err)
	}
	*reply = rest
	return n
}
