"""A server of its own: flags, the log, the end, what happens when the process that started it is killed."""

import os
import signal
import statistics
import subprocess
import sys
import time

import pytest
import redis

import limitkv


def gone(pid, within=20):
    """Whether a process that is no child of this one ends in time."""
    end = time.monotonic() + within
    while time.monotonic() < end:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.01)
    return False


def test_a_server_ends_with_its_block():
    with limitkv.Server() as server:
        assert redis.Redis.from_url(server.url).ping()
        os.kill(server.pid, 0)
    assert gone(server.pid)
    server.stop()  # once more does nothing


def test_flags_and_password():
    with limitkv.Server("--requirepass", "s/cr:t", "--databases", "3") as server:
        client = redis.Redis.from_url(server.url)
        assert client.config_get("databases") == {"databases": "3"}
        with pytest.raises(redis.AuthenticationError):
            redis.Redis(port=server.port).ping()
        with server.namespace() as namespace:
            assert redis.Redis.from_url(namespace.url).dbsize() == 0


def test_a_wrong_flag_says_why():
    with pytest.raises(RuntimeError, match="no-such-flag"):
        limitkv.Server("--no-such-flag", "1")


def test_the_server_ends_with_a_process_that_is_killed():
    code = "import limitkv, os, signal; s = limitkv.Server(); print(s.pid, flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    ended = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert ended.returncode == -signal.SIGKILL
    assert gone(int(ended.stdout))


def test_a_log_that_nobody_reads_stops_nothing():
    with limitkv.Server("--loglevel", "debug") as server:
        for _ in range(2000):
            redis.Redis.from_url(server.url).ping()
        assert "debug" in server.do("CONFIG", "GET", "loglevel")[1].decode()
        assert server.do("PING") == b"PONG"


def test_an_interrupted_reply_is_taken_for_no_other():
    def late(*_):
        raise InterruptedError

    with limitkv.Server() as server:
        server.delay_next("echo", 1, 3600)
        before = signal.signal(signal.SIGALRM, late)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            with pytest.raises(InterruptedError):
                server.do("ECHO", "first")
        finally:
            signal.signal(signal.SIGALRM, before)
        with pytest.raises((OSError, ValueError)):
            server.do("ECHO", "second")


def test_start_takes_milliseconds():
    took = []
    for _ in range(20):
        began = time.perf_counter()
        server = limitkv.Server()
        took.append((time.perf_counter() - began) * 1000)
        server.stop()
    print("\npython: a server starts in %.1f ms (median of %d)" % (statistics.median(took), len(took)))
    assert statistics.median(took) < 5000
