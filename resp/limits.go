package resp

// The limits of the package: everything that a client can make grow is bounded
// by a name in this file. Those that Redis lets a user configure are fields of
// Options or of Conn, and these are their defaults.

const (
	// DefaultMaxBulkBytes is the longest argument accepted (proto-max-bulk-len).
	DefaultMaxBulkBytes = 512 << 20

	// DefaultQueryBufferBytes is how much unparsed input a connection may hold
	// before it is dropped (client-query-buffer-limit).
	DefaultQueryBufferBytes = 1 << 30

	// chokeBytes is how much unsent output makes a connection's commands wait:
	// they are read and kept, and run once the peer has taken half of it, since
	// most commands are smaller than their replies. Redis runs them and keeps
	// the replies. See Conn.chokes for when they are run all the same.
	chokeBytes = 1 << 20

	// writeTurnBytes is how much kept output one connection is sent before the
	// next one has its turn.
	writeTurnBytes = 1 << 20

	// handshakeMillis is how long TLS's handshake may take.
	handshakeMillis = 5000

	// batchCommandsMax is the most commands given to Serve at once.
	batchCommandsMax = 64

	// lineBytesMax is the longest line: an inline command, or the count of a
	// multibulk or bulk with whatever stands before its end.
	lineBytesMax = 64 << 10

	// multibulkArgsMax is the most arguments of a command.
	multibulkArgsMax = 1<<31 - 1

	// largeBytes is how long an argument is that gets memory of its own. Less is copied in no time.
	largeBytes = 1 << 20

	// largeRestMin and largeRestMax are how large the pieces are in which the other arguments of such a command are put.
	largeRestMin = 1 << 10
	largeRestMax = 64 << 10

	// CommandBytesMax is the most bytes of a command with all its arguments.
	// Redis moves each large argument out of the query buffer and so has no
	// such limit; here a command lies in one piece, and positions in it are
	// kept as 32-bit numbers.
	CommandBytesMax = 1<<32 - 1

	// unauthArgsMax, unauthBulkBytesMax and unauthQueryBytesMax bound what a
	// client may send before it has authenticated.
	unauthArgsMax       = 10
	unauthBulkBytesMax  = 16 << 10
	unauthQueryBytesMax = 1 << 20

	// spansKeptMax is how many argument positions a parser keeps allocated
	// between commands.
	spansKeptMax = 256

	// scratchKeptMax is how large the buffer of unquoted inline arguments may
	// stay between commands.
	scratchKeptMax = 4 << 10

	// argsKeptMax is how many arguments a loop's batch keeps room for.
	argsKeptMax = 4 << 10

	// turnCommandsMax is how many commands of one connection are run before the
	// next one has its turn.
	turnCommandsMax = 4 << 10

	// readBytes is the size of a loop's read buffer, and so the most that is
	// taken from one connection before the next one has its turn.
	readBytes = 64 << 10

	// readTurnBytes is the most that one read takes where a connection has a
	// buffer of its own.
	readTurnBytes = 256 << 10

	// mailKeptMax is for how many posted functions a loop keeps room.
	mailKeptMax = 4 << 10

	// sharedInputBytes is how long an incomplete command may be for its next
	// bytes to be read, behind a copy of it, into the loop's buffer. Longer ones
	// have a buffer of their own that grows with them.
	sharedInputBytes = 16 << 10

	// acceptsMax is how many clients are accepted before others are served.
	acceptsMax = 64

	// restMillis is for how long a listening socket is left alone when there is no descriptor even to refuse with.
	restMillis = 50

	// shutdownGrace is how long a stopping server waits for clients to take
	// their last replies.
	shutdownGraceMillis = 1000

	// writeChunkBytes is when replies are sent although more commands wait.
	writeChunkBytes = 64 << 10

	// fullBytes is how many replies of one batch of commands gather before the rest of it waits until they are sent. A buffer
	// of this size stays in the processor's cache, and need not be made anew for each batch of long replies. Twice as much takes
	// half as much again of the processor's time for replies of 100 KB, since the copy is then cold when it is sent.
	fullBytes = writeChunkBytes

	// rawSendBytes is how much is sent at once without telling the scheduler: some ten microseconds' work. What takes longer the
	// scheduler is told of, since others may want the processor; then it may have the loop go on from another thread, which costs.
	rawSendBytes = 2 * writeChunkBytes

	// outputBytes is the size of a loop's reply buffer. It is for all connections that
	// are ready at once: their replies are sent together, when lateMax have gathered,
	// less than lateBytesMax of the buffer are left, or their turns took LateMicrosMax. A
	// connection with more replies than that has them sent at the end of its turn.
	outputBytes  = 64 << 10
	lateBytesMax = 16 << 10
	lateMax      = 32

	// LateMicrosMax is how long replies wait for the turns of other connections that are ready.
	LateMicrosMax = 200

	// outKeptBytes is how large a loop's reply buffer may stay between turns.
	outKeptBytes = 1 << 20

	// eventsPerWait is how many ready connections one epoll_wait reports.
	eventsPerWait = 128
)
