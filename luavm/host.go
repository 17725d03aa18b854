package luavm

// What a script may ask of the server: all that luavm knows of commands.

// Host runs the commands of one script. It is called on the goroutine that called Run, between Run's start and
// its return, and never twice at a time.
type Host interface {
	// Lookup returns a handle for a command name in any case, nil if there is no such command. The VM keeps what it
	// got, so a name must give the same handle for as long as the VM lives, whichever Host is asked.
	Lookup(name []byte) any

	// Call runs one command and returns its reply in wire form, of protocol version proto (2 or 3). cmd is what Lookup
	// returned for args[0], nil for an unknown command: then, and for all else that a script may not call, the reply
	// is the error. The arguments are the script's own strings: they must not be changed, and not be kept after Call
	// returns. The reply may live in a buffer that the next Call reuses.
	Call(cmd any, args [][]byte, proto int) (reply []byte)

	// ACLCheck tells whether the user running the script may run a command. known is false if there is no such command.
	ACLCheck(args [][]byte) (allowed, known bool)

	// Log is redis.log: level 0 to 3, debug to warning.
	Log(level int, message string)

	// SetRepl is redis.set_repl: which of AOF (1) and replicas (2) the script's writes go to.
	SetRepl(flags int)
}
