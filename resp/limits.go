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

	// chokeBytes is how much unsent output makes a connection's commands wait.
	// They are read and stored, and run once unsent output is half of this, since
	// most commands are smaller than their replies. Redis runs them and stores
	// the replies. Conn.mayKeep has the exceptions, where they run without waiting.
	chokeBytes = 1 << 20

	// writeTurnBytes is how much stored output is sent on one connection before the
	// next one has its turn.
	writeTurnBytes = 1 << 20

	// handshakeMillis is how long TLS's handshake may take.
	handshakeMillis = 5000

	// batchCommandsMax is the most commands given to Serve at once.
	batchCommandsMax = 64

	// lineBytesMax is the longest line: an inline command, or the line with the
	// count of a multibulk or the length of a bulk.
	lineBytesMax = 64 << 10

	// multibulkArgsMax is the most arguments of a command.
	multibulkArgsMax = 1<<31 - 1

	// largeBytes is the size from which an argument gets its own memory. To copy a shorter one takes little time.
	largeBytes = 1 << 20

	// largeRestMin and largeRestMax bound the size of the buffers for the other arguments of such a command.
	largeRestMin = 1 << 10
	largeRestMax = 64 << 10

	// CommandBytesMax is the most bytes of a command with all its arguments.
	// Redis moves each large argument out of the query buffer and so has no
	// such limit. Here positions in a command are 32-bit numbers.
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

	// argsKeptMax is how many arguments a loop's batch keeps room for between turns.
	argsKeptMax = 4 << 10

	// turnCommandsMax is how many commands of one connection are run before the
	// next one has its turn.
	turnCommandsMax = 4 << 10

	// readBytes is the size of a loop's read buffer, and so the most that is
	// read from one connection before the next one has its turn.
	readBytes = 64 << 10

	// readTurnBytes is the most that one read takes where a connection has a
	// buffer of its own.
	readTurnBytes = 256 << 10

	// mailKeptMax is how many posted functions a loop keeps room for.
	mailKeptMax = 4 << 10

	// sharedInputBytes is the longest incomplete command that is copied into the
	// loop's buffer, so that its next bytes are read behind it. A longer one
	// has its own buffer, which grows with it.
	sharedInputBytes = 16 << 10

	// acceptsMax is how many clients are accepted before connections are served again.
	acceptsMax = 64

	// restMillis is how long the server does not accept when it has no descriptor left, not even to refuse a client.
	restMillis = 50

	// shutdownGraceMillis is how long a stopping server waits for clients to take
	// their last replies.
	shutdownGraceMillis = 1000

	// writeChunkBytes is how many bytes of replies are sent although more commands wait.
	writeChunkBytes = 64 << 10

	// fullBytes is how many bytes of replies one batch may produce before its remaining commands wait until these are sent. A
	// buffer of this size stays in the processor's cache, and is not allocated anew for each batch of long replies. With twice
	// the size, replies of 100 KB take 50 % more processor time, since the copy has then left the cache when it is sent.
	fullBytes = writeChunkBytes

	// rawSendBytes is the most that one system call sends without Go's scheduler knowing of it: some ten microseconds of work.
	// The scheduler must know of longer calls, since other goroutines may want the processor. It may then move the loop to
	// another thread, which costs time.
	rawSendBytes = 2 * writeChunkBytes

	// outputBytes is the size of a loop's reply buffer. All connections that are ready
	// at once share it: their replies are sent together, when lateMax connections have replies,
	// less than lateBytesMax of the buffer is left, or their turns took LateMicrosMax. A
	// connection with more than lateBytesMax of replies has them sent at the end of its turn.
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
