// Package resp, internal to the server, is the protocol and nothing else: it turns bytes into commands
// and replies into bytes, owns connections and the loops that serve them, and
// knows no command.
//
//   - Parser splits a byte stream into commands, inline.go the human form of
//     them ("SET a 'b c'").
//   - Writer appends replies in RESP2 or RESP3, Reader walks over them.
//   - Conn is a connection that does no I/O itself: bytes go in, a Handler is
//     given batches of commands, bytes come out.
//   - Server drives connections: on Linux by epoll loops, for TLS and other
//     systems by goroutines over net.Conn. Memory drives one in a test.
//
// Replies are appended with redcon's functions where those write what Redis
// writes. Commands are parsed here rather than with redcon.ReadNextCommand,
// for four reasons, each of them tested: it starts from the first byte at
// every call, so that a command of 100,000 arguments arriving in 16 KB pieces
// takes it 220 ms where Parser takes 3 (BenchmarkParserChunked); it
// indexes with a negative length on "$-20" and panics; its error texts are not those of
// Redis; its inline quoting is not that of Redis either.
package resp
