// Package resp, internal to the server, is the protocol and nothing else: it parses commands, writes replies, and owns the
// connections and the loops that serve them. It knows no command.
//
//   - Parser splits a byte stream into commands; inline.go splits commands that a person types ("SET a 'b c'").
//   - Writer appends replies in RESP2 or RESP3, Reader walks over them.
//   - Conn is a connection that does no I/O itself: bytes go in, a Handler gets
//     batches of commands, bytes come out.
//   - Server drives connections: on Linux by epoll loops; for TLS and on other
//     systems by goroutines over net.Conn. Memory drives a connection in a test.
//
// Replies are appended with redcon's functions where those write the same bytes as Redis.
// Commands are parsed here and not with redcon.ReadNextCommand, for four reasons, each of them tested:
//
//   - It starts from the first byte at every call: a command of 100,000 arguments that arrives
//     in 16 KB pieces takes it 220 ms, and Parser 3 ms (BenchmarkParserChunked).
//   - It indexes with a negative length on "$-20" and panics.
//   - Its error texts are not those of Redis.
//   - Its inline quoting is not that of Redis.
package resp
