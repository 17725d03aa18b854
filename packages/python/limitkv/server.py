"""Servers for tests: a process each, which ends with the process that started it, however that ends."""

import collections
import datetime
import itertools
import os
import re
import subprocess
import threading
import urllib.parse

from ._resp import Connection

_numbers = itertools.count(1)  # of snapshots and namespaces; those of other processes have their pid


def _name():
    return "python-%d-%d" % (os.getpid(), next(_numbers))


def program():
    """The path of the server's binary."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "limitkv.exe" if os.name == "nt" else "limitkv")


def _millis(duration):
    """Whole milliseconds of a duration, in seconds or as a timedelta."""
    if isinstance(duration, datetime.timedelta):
        duration = duration.total_seconds()
    return round(duration * 1000)


class _Keys:
    """What a server and a namespace both have: an address, and methods that drive what is behind it."""

    def __init__(self, host, port, password):
        self.host, self.port, self.password = host, port, password
        self._connection = Connection(host, port, password)

    @property
    def url(self):
        """The address, as clients take it."""
        user = "" if self.password is None else ":%s@" % urllib.parse.quote(self.password, safe="")
        host = "[%s]" % self.host if ":" in self.host else self.host
        return "redis://%s%s:%d" % (user, host, self.port)

    def do(self, *words):
        """Sends any command and returns its reply: bytes, a number, a list or None. Raises ReplyError."""
        return self._connection.do(*words)

    def flush_all(self):
        """Empties all databases."""
        self.do("FLUSHALL")

    # The clock, by which TTLs, TIME, limiters, queues, locks and the timeouts of blocking commands go.

    def freeze(self, at=None):
        """Stops the clock, where it is or at a time: Unix seconds or a datetime."""
        if isinstance(at, datetime.datetime):
            at = at.timestamp()
        self.do("LKV.CLOCK", "FREEZE", *([] if at is None else [round(at * 1000)]))
        self._process().frozen = True

    def advance(self, by):
        """Stops the clock if it runs, and moves it forward: seconds or a timedelta, to the millisecond.

        All that falls due on the way has happened, in order of time, when it returns.
        """
        self.do("LKV.CLOCK", "ADVANCE", _millis(by))
        self._process().frozen = True

    def resume(self):
        """Lets the clock run again, with the system's time."""
        self.do("LKV.CLOCK", "RESUME")
        self._process().frozen = False

    def seed(self, number):
        """Makes the server's random choices (SPOP, RANDOMKEY, math.random in scripts) repeatable."""
        self.do("LKV.SEED", number)

    def snapshot(self):
        """Keeps all keys of all databases, and the functions. See Snapshot."""
        return Snapshot(self)

    # Faults. A pattern is a name with * and ? ("get", "z*", "config|set"), or, with a blank in it, a whole line ("GET user:*").

    def fail_next(self, pattern, count, text):
        """Has the next commands that match reply an error, whose text begins with its code ("LOADING …")."""
        self.do("LKV.FAULT", "ADD", pattern, count, "ERROR", text)

    def delay_next(self, pattern, count, by):
        """Has the next commands that match run later, by the server's clock: seconds or a timedelta."""
        self.do("LKV.FAULT", "ADD", pattern, count, "DELAY", _millis(by))

    def disconnect_next(self, pattern, count):
        """Has the next commands that match end their connection instead of running."""
        self.do("LKV.FAULT", "ADD", pattern, count, "DISCONNECT")

    def clear_faults(self):
        """Takes back the faults that have not happened yet."""
        self.do("LKV.FAULT", "CLEAR")

    def record(self):
        """Begins to keep the commands that clients send, and forgets what was kept before."""
        self.do("LKV.LOG", "ON")
        self.do("LKV.LOG", "RESET")

    def received(self, pattern="*"):
        """The commands that were received since record() and match, the oldest first: lists of bytes."""
        return [words for _, _, _, words in self.do("LKV.LOG", "GET", "MATCH", pattern)]

    def namespace(self):
        """What is to a test as a server of its own, and costs less. See Namespace."""
        return Namespace(self._process())


class Server(_Keys):
    """A running server, stopped by stop() or the end of a with block, and with this process at the latest.

    It has the commands of --test and keeps nothing on disk. Flags are those of the command line: Server("--requirepass", "x").
    """

    def __init__(self, *flags):
        self.frozen = False
        # Standard input is never written to: its end is how the server learns that this process is gone.
        self._child = subprocess.Popen(
            [program(), "--test", "--until-eof", "--port", "0", "--loglevel", "warning", *flags],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self._log = collections.deque(maxlen=1000)
        try:
            host, port = self._address()
            # Who reads goes on, so that the server never waits for its log to be read.
            self._reader = threading.Thread(target=self._keep_log, name="limitkv-log", daemon=True)
            self._reader.start()
            super().__init__(host, port, _flag(flags, "--requirepass"))
        except BaseException:
            self._child.kill()
            self._end()
            raise

    def _address(self):
        for line in self._child.stdout:
            self._log.append(line)
            found = re.search(rb" listens on (\S+):(\d+) ", line)
            if found:
                return found[1].decode().strip("[]"), int(found[2])
        raise RuntimeError("limitkv did not start: " + self.log)

    def _keep_log(self):
        for line in self._child.stdout:
            self._log.append(line)

    @property
    def log(self):
        """The last lines that the server printed."""
        return b"".join(self._log).decode(errors="replace")

    @property
    def pid(self):
        """The server's process id."""
        return self._child.pid

    def _process(self):
        return self

    def stop(self):
        """Stops the server."""
        if self._child.returncode is not None:
            return
        self._connection.close()
        self._child.stdin.close()
        try:
            self._child.wait(10)
        except subprocess.TimeoutExpired:
            self._child.kill()
        self._reader.join()
        self._end()

    def _end(self):
        self._child.wait()
        self._child.stdin.close()
        self._child.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


class Namespace(_Keys):
    """What is to a test as a server of its own: databases, channels, functions, faults and snapshots that nobody else sees.

    The clock, the random numbers, the settings and the users are the server's, for all. drop() or the end of a with block
    ends it.
    """

    def __init__(self, server):
        self.name = _name()
        self._server = server
        port = server.do("LKV.NAMESPACE", "PORT", self.name)
        super().__init__(server.host, port, server.password)

    def _process(self):
        return self._server

    def drop(self):
        """Removes it with everything in it, and closes its connections."""
        self._connection.close()
        self._server.do("LKV.NAMESPACE", "DROP", self.name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.drop()


class Snapshot:
    """All keys as they were. restore() brings them back, as often as it is called; the end of a with block does, too.

    A server's clock that stood is put back, since deadlines are times; a namespace's is not its alone.
    """

    def __init__(self, keys):
        self._keys, self._name, self._at = keys, _name(), None
        if isinstance(keys, Server) and keys.frozen:
            self._at = keys.do("LKV.CLOCK", "NOW") / 1000
        keys.do("LKV.SNAPSHOT", "SAVE", self._name)

    def restore(self):
        if self._at is not None:
            self._keys.freeze(self._at)
        self._keys.do("LKV.SNAPSHOT", "RESTORE", self._name)

    def drop(self):
        """Forgets it."""
        self._keys.do("LKV.SNAPSHOT", "DROP", self._name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.restore()
        self.drop()


def _flag(flags, name):
    """The value of a flag, the last one if it is given twice."""
    value = None
    for i, flag in enumerate(flags):
        if flag == name and i + 1 < len(flags):
            value = flags[i + 1]
        elif flag.startswith(name + "="):
            value = flag[len(name) + 1:]
    return value
