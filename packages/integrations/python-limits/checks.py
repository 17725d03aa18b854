"""Checks of limitkv_limits.py: real apps of Flask-Limiter and slowapi, asked by HTTP, on a real server.

The server's clock stands still and is moved, so that nothing here sleeps. Each check prints a line:
pass, the framework, its version, the check; or fail, and the reason as well.
"""

import contextlib
import importlib.metadata
import os
import pathlib
import random
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import redis
import uvicorn
from fastapi import FastAPI, Request
from flask import Flask, request
from flask_limiter import Limiter
from limits import RateLimitItemPerMinute
from limits.storage import storage_from_string
from limits.strategies import STRATEGIES
from slowapi import Limiter as SlowLimiter
from slowapi import _rate_limit_exceeded_handler
from slowapi.errors import RateLimitExceeded
from werkzeug.serving import WSGIRequestHandler, make_server

import limitkv_limits

STRATEGY_NAMES = ("fixed-window", "moving-window", "sliding-window-counter")


def ready(process):
    """The port that a server tells when it is ready."""
    return next(int(m[1]) for line in process.stdout if (m := re.search(r"listens on \S+:(\d+)", line)))


class Server:
    """limitkv with a clock that stands still."""

    def __init__(self):
        self.process = subprocess.Popen([os.environ["LIMITKV"], "--test", "--port", "0", "--save", ""],
                                        stdout=subprocess.PIPE, text=True)
        self.port = ready(self.process)
        self.url = f"limitkv://127.0.0.1:{self.port}"
        self.client = redis.Redis(port=self.port, decode_responses=True)
        self.client.execute_command("LKV.CLOCK", "FREEZE", 1_700_000_000_000)

    def advance(self, seconds):
        self.client.execute_command("LKV.CLOCK", "ADVANCE", round(seconds * 1000))

    def stop(self):
        self.process.kill()
        self.process.wait()


def flask_app(url, limit="3/minute", strategy="moving-window", cost=1, options=None, **more):
    app = Flask("shop")
    limiter = Limiter(lambda: request.headers.get("X-User", "nobody"), app=app, strategy=strategy, storage_uri=url,
                      storage_options=options or {}, **more)
    limitkv_limits.send_headers(app, limiter)

    @app.get("/")
    @limiter.limit(limit, cost=cost)
    def index():
        return "here you are"

    @app.get("/free")
    def free():
        return "always"

    return app


def slow_app(url, limit="3/minute", strategy="moving-window", options=None, **more):
    app = FastAPI()
    # slowapi keeps the dictionary of options that it is given, so each limiter gets its own.
    limiter = SlowLimiter(key_func=lambda request: request.headers.get("X-User", "nobody"), strategy=strategy,
                          storage_uri=url, storage_options=dict(options or {}), **more)
    app.state.limiter = limiter
    app.add_exception_handler(RateLimitExceeded, _rate_limit_exceeded_handler)
    app.add_middleware(limitkv_limits.RateLimitHeaders, limiter=limiter)

    @app.get("/")
    @limiter.limit(limit)
    def index(request: Request):
        return "here you are"

    return app


class Quiet(WSGIRequestHandler):
    def log(self, *args):
        pass


@contextlib.contextmanager
def serving(app):
    """Serves an app by HTTP, and gives what asks it: (status, headers)."""
    if isinstance(app, Flask):
        app.logger.disabled = True
        server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=Quiet)
        port, end = server.server_port, server.shutdown
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    else:
        listener = socket.create_server(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(app, log_level="critical"))
        port, end = listener.getsockname()[1], lambda: setattr(server, "should_exit", True)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()

    def ask(path="/", user="ann"):
        try:
            with urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers={"X-User": user})) as r:
                return r.status, r.headers
        except urllib.error.HTTPError as error:
            return error.code, error.headers

    try:
        yield ask
    finally:
        end()
        thread.join()


failed = 0


def check(package, name):
    def run(f):
        global failed
        version = importlib.metadata.version(package)
        server = Server()
        try:
            f(server)
            print("pass", package, version, name, sep="\t", flush=True)
        except BaseException as e:  # noqa: BLE001: whatever it is, it is the check's failure
            failed += 1
            line = e.__traceback__.tb_next.tb_lineno if e.__traceback__.tb_next else 0
            print("fail", package, version, name, " ".join(f"line {line}: {type(e).__name__}: {e}".split()), sep="\t", flush=True)
        finally:
            server.stop()
    return run


def want(got, wanted):
    if got != wanted:
        raise AssertionError(f"{got!r} is not {wanted!r}")


def told(answer):
    status, headers = answer
    return status, headers["RateLimit"], headers["RateLimit-Policy"], headers["Retry-After"]


POLICY = '"3-per-minute";q=3;w=60'


def left(n, t):
    return 200, f'"3-per-minute";r={n};t={t}', POLICY, None


def moving_window(server, app):
    with serving(app) as ask:
        want(told(ask()), left(2, 60))
        server.advance(20)
        want(told(ask()), left(1, 40))
        want(told(ask()), left(0, 40))
        want(told(ask()), (429, '"3-per-minute";r=0;t=40', POLICY, "40"))
        want(told(ask(user="bob")), left(2, 60))
        server.advance(39.999)
        want(ask()[0], 429)
        server.advance(0.001)
        want(told(ask()), left(0, 20))


@check("Flask-Limiter", "moving-window is RL.ACQUIRE LOG, with RateLimit, RateLimit-Policy and Retry-After")
def _(server):
    moving_window(server, flask_app(server.url))
    want(server.client.type("limits:moving:LIMITER/ann/index/3/1/minute"), "ratelimit")


@check("Flask-Limiter", "the example of the package's README")
def _(server):
    readme = (pathlib.Path(__file__).parent.parent.parent / "python/limits/README.md").read_text()
    example = readme.split("```python\n")[1].split("```")[0].replace("limitkv://127.0.0.1:6379", server.url)
    names = {}
    exec(compile(example, "README.md", "exec"), names)  # noqa: S102: it is ours
    names["app"].add_url_rule("/", view_func=lambda: "here you are")
    answers = [names["app"].test_client().get("/") for _ in range(101)]
    want([a.status_code for a in answers], [200] * 100 + [429])
    want(answers[100].headers["RateLimit"], '"100-per-minute";r=0;t=60')


@check("Flask-Limiter", "fixed-window counts in one INCREX")
def _(server):
    with serving(flask_app(server.url, strategy="fixed-window")) as ask:
        want(told(ask()), left(2, 60))
        server.advance(20)
        want(told(ask()), left(1, 40))
        want(told(ask()), left(0, 40))
        want(told(ask()), (429, '"3-per-minute";r=0;t=40', POLICY, "40"))
        server.advance(40.001)
        want(told(ask()), left(2, 60))


@check("Flask-Limiter", "sliding-window-counter is RL.ACQUIRE WINDOW")
def _(server):
    with serving(flask_app(server.url, strategy="sliding-window-counter")) as ask:
        want([ask()[0] for _ in range(4)], [200, 200, 200, 429])
        status, state, policy, retry = told(ask())
        want((status, policy), (429, POLICY))
        server.advance(int(retry) + 30)
        want(ask()[0], 200)


@check("Flask-Limiter", "two limits are two policies")
def _(server):
    with serving(flask_app(server.url, "2/second;5/minute")) as ask:
        want(told(ask()), (200, '"2-per-second";r=1;t=1, "5-per-minute";r=4;t=60', '"2-per-second";q=2;w=1, "5-per-minute";q=5;w=60', None))
        ask()
        status, state, _, retry = told(ask())
        want((status, state.split(",")[0], retry), (429, '"2-per-second";r=0;t=1', "1"))


@check("Flask-Limiter", "a cost is taken whole, and one above the limit is refused")
def _(server):
    with serving(flask_app(server.url, "5/minute", cost=lambda: int(request.headers["X-User"]))) as ask:
        want([ask(user="3")[0], ask(user="3")[0], ask(user="6")[0]], [200, 429, 429])


@check("Flask-Limiter", "a route without a limit has no such header")
def _(server):
    with serving(flask_app(server.url)) as ask:
        want(told(ask("/free")), (200, None, None, None))


def away(server, make):
    """A server that has ended, and one that never answers; what the app says then, by failure mode."""
    server.stop()
    silent = socket.create_server(("127.0.0.1", 0))
    for url in (server.url, f"limitkv://127.0.0.1:{silent.getsockname()[1]}"):
        for mode, statuses in (("open", [200] * 5), ("closed", [429] * 5), ("raise", [500] * 5)):
            for strategy in STRATEGY_NAMES:
                began = time.monotonic()
                with serving(make(url, strategy=strategy, options={"failure_mode": mode, "timeout": 0.1})) as ask:
                    answers = [ask() for _ in statuses]
                    want((strategy, [a[0] for a in answers]), (strategy, statuses))
                    if mode == "closed":
                        want(answers[0][1]["Retry-After"], "1")
                if time.monotonic() - began > 5:
                    raise AssertionError(f"{mode} took {time.monotonic() - began:.1f} s")
    silent.close()


@check("Flask-Limiter", "a server that is away: open, closed, raise")
def _(server):
    away(server, flask_app)


@check("Flask-Limiter", "a server that is away: the framework's in-memory fallback, and back again")
def _(server):
    app = flask_app(server.url, in_memory_fallback_enabled=True)
    with serving(app) as ask:
        want(ask()[0], 200)
        server.stop()
        want([ask()[0] for _ in range(4)], [200, 200, 200, 429])


@check("Flask-Limiter", "a server that comes back is asked again")
def _(server):
    app = flask_app(server.url, options={"failure_mode": "closed"})
    with serving(app) as ask:
        want(ask()[0], 200)
        server.stop()
        want(ask()[0], 429)
        server.process = subprocess.Popen([os.environ["LIMITKV"], "--test", "--port", str(server.port), "--save", ""],
                                          stdout=subprocess.PIPE, text=True)
        ready(server.process)
        want(ask()[0], 200)


@check("Flask-Limiter", "a password that is missing is an error in every mode")
def _(server):
    server.client.config_set("requirepass", "secret")
    for mode in ("open", "closed", "raise"):
        with serving(flask_app(server.url, options={"failure_mode": mode})) as ask:
            want((mode, ask()[0]), (mode, 500))
    with serving(flask_app(server.url.replace("//", "//:secret@"))) as ask:
        want(ask()[0], 200)


@check("slowapi", "moving-window is RL.ACQUIRE LOG, with RateLimit, RateLimit-Policy and Retry-After")
def _(server):
    moving_window(server, slow_app(server.url))


@check("slowapi", "fixed-window and sliding-window-counter")
def _(server):
    for strategy in ("fixed-window", "sliding-window-counter"):
        with serving(slow_app(server.url, strategy=strategy)) as ask:
            want([ask(user=strategy)[0] for _ in range(4)], [200, 200, 200, 429])


@check("slowapi", "a server that is away: open, closed, raise")
def _(server):
    away(server, slow_app)


@check("limits", "moving-window grants what an exact log grants, at random times")
def _(server):
    seed = int(os.environ.get("SEED", time.time_ns() % 1_000_000))
    rng = random.Random(seed)
    storage = storage_from_string(server.url)
    limiter = STRATEGIES["moving-window"](storage)
    item = RateLimitItemPerMinute(10)
    now, log, granted = 0, {"a": [], "b": []}, 0
    for step in range(600):
        wait = rng.choice([0, 0, 1, 999, 5_000, rng.randrange(30_000)])
        server.advance(wait / 1000)
        now += wait
        who, cost = rng.choice("ab"), rng.choice([1, 1, 1, 2, 5, 11])
        log[who] = [t for t in log[who] if t > now - 60_000]
        fits = len(log[who]) + cost <= 10
        what = f"seed {seed}, step {step}"
        want((what, limiter.test(item, who, cost=cost)), (what, fits))
        want((what, limiter.hit(item, who, cost=cost)), (what, fits))
        log[who] += [now] * cost if fits else []
        granted += fits
        want((what, limiter.get_window_stats(item, who).remaining), (what, 10 - len(log[who])))
    if not 100 < granted < 580:
        raise AssertionError(f"seed {seed}: {granted} of 600 granted")


@check("limits", "clear, reset, check, a prefix, a mode that does not exist")
def _(server):
    item = RateLimitItemPerMinute(1)
    for strategy in STRATEGY_NAMES:
        storage, other = storage_from_string(server.url), storage_from_string(server.url, key_prefix="other")
        limiter, others = STRATEGIES[strategy](storage), STRATEGIES[strategy](other)
        want([limiter.hit(item, "x"), limiter.hit(item, "x"), others.hit(item, "x")], [True, False, True])
        limiter.clear(item, "x")
        want((limiter.test(item, "x"), limiter.hit(item, "x")), (True, True))
        want((storage.reset(), limiter.hit(item, "x"), others.hit(item, "x")), (1, True, False))
        storage.reset(), other.reset()
    want((storage.check(), server.client.dbsize()), (True, 0))
    server.stop()
    want(storage.check(), False)
    try:
        storage_from_string(server.url, failure_mode="ajar")
    except limitkv_limits.ConfigurationError:
        return
    raise AssertionError("a failure mode that does not exist was taken")


sys.exit(1 if failed else 0)
