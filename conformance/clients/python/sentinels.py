"""redis-py through failovers of Sentinel, for conformance/failover, which says what the lines mean: it appends numbers to a
list, adds jobs, and takes a lock in turn with another connection, while others wait for the jobs, a limiter and the lock."""

import os
import sys
import threading
import time

from redis.exceptions import RedisError
from redis.sentinel import Sentinel

NAME = "redis-py"
BETWEEN = 0.05
_out = threading.Lock()
_over = threading.Event()


def say(*parts):
    with _out:
        print(*(" ".join(str(p).split()) for p in parts), sep="\t", flush=True)


def attempt(what, c, *args):
    """Sends a command and returns the reply, None if there is no use of it."""
    try:
        return c.execute_command(*args)
    except (RedisError, OSError) as e:
        say("error", NAME, what, e)
        time.sleep(BETWEEN)


def write(c):
    n = 0
    while not _over.is_set():
        n += 1
        if attempt("RPUSH", c, "RPUSH", "ledger:" + NAME, n):
            say("told", NAME, n)
        attempt("DQ.ADD", c, "DQ.ADD", "queue:" + NAME, "DELAY", 20, n)
        time.sleep(BETWEEN)


def hold(who):
    def run(c):
        while not _over.is_set():
            reply = attempt("LK.ACQUIRE", c, "LK.ACQUIRE", "lock:" + NAME, who, 2000, "BLOCK", 30000)
            if reply and reply[0] == 1:
                say("fence", NAME, who, reply[1])
                time.sleep(BETWEEN / 2)
                attempt("LK.RELEASE", c, "LK.RELEASE", "lock:" + NAME, who)
            time.sleep(BETWEEN / 2)

    return run


def pop(c):
    while not _over.is_set():
        if attempt("DQ.POP", c, "DQ.POP", "queue:" + NAME, "BLOCK", 30000):
            say("got", NAME, "DQ.POP")


def limit(c):
    while not _over.is_set():
        reply = attempt("RL.ACQUIRE", c, "RL.ACQUIRE", "limiter:" + NAME, 1, "BLOCK", 30000, "GCRA", 5, 1000)
        if reply and reply[0] == 0:
            say("got", NAME, "RL.ACQUIRE")


def run(addresses):
    known = [(host, int(port)) for host, port in (a.rsplit(":", 1) for a in addresses.split(","))]
    sentinel = Sentinel(known, socket_timeout=2)
    plain = sentinel.master_for("it", socket_timeout=3)
    waiting = sentinel.master_for("it", socket_timeout=40)
    for work, c in (write, plain), (hold("holds"), waiting), (hold("waits"), waiting), (pop, waiting), (limit, waiting):
        threading.Thread(target=work, args=(c,), daemon=True).start()
    sys.stdin.read()
    _over.set()
    os._exit(0)
