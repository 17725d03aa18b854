package luavm

// The calls from a script to the server: all that luavm knows about commands.

// Host runs the commands of one script. It is called on the goroutine that called Run, between Run's start and
// its return, and never twice at a time.
type Host interface {
	// Lookup returns a handle for a command name in any case, nil if there is no such command. The VM stores the
	// handle, so all Hosts must return the same handle for a name as long as the VM lives.
	Lookup(name []byte) any

	// Call runs one command and returns its reply in wire form, of protocol version proto (2 or 3). cmd is the handle that
	// Lookup returned for args[0], nil for an unknown command. For an unknown command, and for one that a script may not
	// call, the reply is an error. The arguments alias the script's strings: Call must not change them, and must not store
	// them. The next Call may reuse the buffer of the reply.
	Call(cmd any, args [][]byte, proto int) (reply []byte)

	// ACLCheck tells whether the user running the script may run a command. known is false if there is no such command.
	ACLCheck(args [][]byte) (allowed, known bool)

	// Log is redis.log: level 0 to 3, debug to warning.
	Log(level int, message string)

	// SetRepl is redis.set_repl: flags says where the script's writes go, AOF (1) and replicas (2).
	SetRepl(flags int)
}
