"""A client of one connection, with as much of the protocol as the helpers need, so that they need no client library."""

import socket
import threading


class ReplyError(Exception):
    """The server refused a command."""


class Connection:
    def __init__(self, host, port, password=None):
        self._socket = socket.create_connection((host, port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._file = self._socket.makefile("rb")
        self._lock = threading.Lock()
        if password is not None:
            try:
                self.do("AUTH", password)
            except ReplyError:
                self.close()
                raise

    def do(self, *words):
        """Sends a command and returns its reply: bytes, a number, a list or None. Raises ReplyError."""
        request = [b"*%d\r\n" % len(words)]
        for word in words:
            word = word if isinstance(word, bytes) else str(word).encode()
            request.append(b"$%d\r\n%s\r\n" % (len(word), word))
        with self._lock:
            try:
                self._socket.sendall(b"".join(request))
                reply = self._read()
            except BaseException:  # also a test's timeout: the rest of the reply would be taken for that to the next command
                self.close()
                raise
        if isinstance(reply, ReplyError):
            raise reply
        return reply

    def _read(self):
        line = self._file.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("limitkv closed the connection")
        kind, text = line[:1], line[1:-2]
        if kind == b"+":
            return text
        if kind == b"-":
            return ReplyError(text.decode(errors="replace"))
        if kind == b":":
            return int(text)
        if kind == b"$":
            return None if text == b"-1" else self._exactly(int(text) + 2)[:-2]
        if kind == b"*":
            return None if text == b"-1" else [self._read() for _ in range(int(text))]
        raise ConnectionError("limitkv sent %r" % line)

    def _exactly(self, count):
        data = self._file.read(count)
        if len(data) != count:
            raise ConnectionError("limitkv closed the connection")
        return data

    def close(self):
        self._file.close()
        self._socket.close()
