"""limitkv as a storage of Python's `limits`, and so of Flask-Limiter and slowapi.

Importing this module registers the scheme `limitkv://` (`limitkvs://` with TLS):

    import limitkv_limits
    limiter = Limiter(get_remote_address, app=app, strategy="moving-window",
                      storage_uri="limitkv://127.0.0.1:6379", storage_options={"failure_mode": "open"})
    limitkv_limits.send_headers(app, limiter)                     # Flask-Limiter
    app.add_middleware(limitkv_limits.RateLimitHeaders, limiter=limiter)   # slowapi

Each strategy is one command, decided by the server's clock:

    fixed-window            INCREX, which counts refused requests too, as `limits` does
    moving-window           RL.ACQUIRE ... LOG, the exact sliding window
    sliding-window-counter  RL.ACQUIRE ... WINDOW, two weighted counters
"""

import asyncio
import math
import sys
import time

import redis
from limits.errors import ConfigurationError, StorageError
from limits.storage import MovingWindowSupport, SlidingWindowCounterSupport, Storage
from redis.backoff import NoBackoff
from redis.retry import Retry

# What a server says or does that cannot serve now, but will again.
AWAY = (redis.ConnectionError, redis.TimeoutError, redis.ReadOnlyError, redis.OutOfMemoryError, redis.exceptions.ClusterDownError)
NONE_LEFT = sys.maxsize  # more than any limit: what "closed" counts while the server is away


class LimitkvStorage(Storage, MovingWindowSupport, SlidingWindowCounterSupport):
    """failure_mode says what happens when the server cannot be reached, or does not answer within `timeout` seconds:

    "raise"   the error goes to the framework, whose swallow_errors and in_memory_fallback decide (the default)
    "open"    requests pass
    "closed"  requests are refused, and told to come back in a second

    After a timeout nobody waits for the server again for PAUSE seconds: it counts as away meanwhile.
    """

    STORAGE_SCHEME = ["limitkv", "limitkvs"]
    PAUSE = 1.0

    def __init__(self, uri, wrap_exceptions=False, failure_mode="raise", timeout=0.25, key_prefix="limits", **options):
        super().__init__(uri, wrap_exceptions=wrap_exceptions)
        if failure_mode not in ("raise", "open", "closed"):
            raise ConfigurationError(f"failure_mode is {failure_mode!r}, it can be raise, open or closed")
        self.failure_mode, self.prefix, self.away_until = failure_mode, key_prefix, 0.0
        # A request that timed out may have been counted: trying again could count it twice, and doubles the wait.
        self.client = redis.Redis.from_url("redis" + uri.removeprefix("limitkv"), **{
            "socket_timeout": timeout, "socket_connect_timeout": timeout, "retry": Retry(NoBackoff(), 0), **options})

    @property
    def base_exceptions(self):
        return redis.RedisError

    def _key(self, strategy, key):
        return f"{self.prefix}:{strategy}:{key}"

    def _call(self, *command):
        if time.monotonic() < self.away_until:
            raise redis.TimeoutError("the server did not answer a moment ago")
        try:
            return self.client.execute_command(*command)
        except redis.TimeoutError:
            self.away_until = time.monotonic() + self.PAUSE
            raise

    def _away(self, error, opened, closed):
        """What to answer in place of a server that is away."""
        if self.failure_mode == "raise" or isinstance(error, redis.AuthenticationError):
            raise error
        return opened if self.failure_mode == "open" else closed

    # fixed-window

    def incr(self, key, expiry, amount=1):
        try:
            return self._call("INCREX", self._key("fixed", key), "BYINT", amount, "EX", expiry, "ENX")[0]
        except AWAY as error:
            return self._away(error, 0, NONE_LEFT)

    def get(self, key):
        try:
            return int(self._call("GET", self._key("fixed", key)) or 0)
        except AWAY as error:
            return self._away(error, 0, NONE_LEFT)

    def get_expiry(self, key):
        try:
            return time.time() + max(self._call("PTTL", self._key("fixed", key)), 0) / 1000
        except AWAY as error:
            return self._away(error, time.time(), time.time() + 1)

    # moving-window and sliding-window-counter

    def _acquire(self, key, limit, amount, *rule):
        if amount > limit:
            return False  # it can never be granted, which RL.ACQUIRE calls an error
        try:
            return self._call("RL.ACQUIRE", key, amount, *rule)[0] == 0
        except AWAY as error:
            return self._away(error, True, False)

    def _used(self, key, *rule):
        """How many are taken, and in how many seconds the next one is back."""
        _, limit, left, wait, _ = self._call("RL.ACQUIRE", key, "PEEK", *rule)
        if left == limit:
            return 0, 0.0
        if left > 0:
            wait = self._call("RL.ACQUIRE", key, left + 1, "PEEK", *rule)[3]
        return limit - left, max(wait, 0) / 1000

    def acquire_entry(self, key, limit, expiry, amount=1):
        return self._acquire(self._key("moving", key), limit, amount, "LOG", limit, expiry * 1000)

    def get_moving_window(self, key, limit, expiry):
        try:
            used, wait = self._used(self._key("moving", key), "LOG", limit, expiry * 1000)
        except AWAY as error:
            used, wait = self._away(error, (0, 0.0), (limit, 1.0))
        return time.time() + wait - (expiry if used else 0), used

    def acquire_sliding_window_entry(self, key, limit, expiry, amount=1):
        return self._acquire(self._key("sliding", key), limit, amount, "WINDOW", limit, expiry * 1000)

    def get_sliding_window(self, key, expiry):
        try:
            used, wait = self._used(self._key("sliding", key))
        except AWAY as error:
            used, wait = self._away(error, (0, 0.0), (NONE_LEFT, 1.0))
        except redis.ResponseError as error:
            if not str(error).startswith("NOLIMITER"):
                raise
            used, wait = 0, 0.0
        # The server has weighted both windows already. A wait of a whole window would be taken for none.
        return 0, 0.0, used, min(wait, expiry - 0.001)

    def clear_sliding_window(self, key, expiry):
        self.clear(key)

    # of all strategies

    def clear(self, key):
        try:
            self._call("UNLINK", *(self._key(s, key) for s in ("fixed", "moving", "sliding")))
        except AWAY as error:
            self._away(error, None, None)

    def reset(self):
        """Removes every limit of this prefix, and returns how many there were."""
        removed = 0
        for key in self.client.scan_iter(match=self.prefix + ":*", count=1000):
            removed += self.client.unlink(key)
        return removed

    def check(self):
        try:
            return bool(self._call("PING"))
        except redis.RedisError:
            return False


def fields(limits):
    """The IETF draft's RateLimit and RateLimit-Policy, of (item, remaining, reset time) each."""
    state, policy, names = [], [], set()
    for item, remaining, reset in limits:
        every = item.GRANULARITY.name if item.multiples == 1 else f"{item.multiples}-{item.GRANULARITY.name}s"
        name = f"{item.amount}-per-{every}"
        if name in names:  # the same limit on something else; names are unique within a field
            name += f"-{len(names) + 1}"
        names.add(name)
        state.append(f'"{name}";r={max(0, int(remaining))};t={max(0, math.ceil(reset - time.time()))}')
        policy.append(f'"{name}";q={item.amount};w={item.get_expiry()}')
    return {"RateLimit": ", ".join(state), "RateLimit-Policy": ", ".join(policy)} if state else {}


def seconds_until(reset):
    return str(max(1, math.ceil(reset - time.time())))


def send_headers(app, limiter):
    """Has a Flask app with a Flask-Limiter send the headers, and Retry-After where the limiter refused."""

    @app.after_request
    def add(response):
        try:
            limits = [(c.limit, c.window[1], c.window[0], c.breached) for c in limiter.current_limits]
        except (redis.RedisError, StorageError):
            return response  # swallow_errors let the request pass; nothing is known
        response.headers.update(fields([limit[:3] for limit in limits]))
        for _, _, reset, breached in limits:
            if breached:
                response.headers["Retry-After"] = seconds_until(reset)
        return response


class RateLimitHeaders:
    """ASGI middleware: has an app with a slowapi limiter send the headers, and Retry-After with a 429."""

    def __init__(self, app, limiter):
        self.app, self.limiter = app, limiter

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        state = scope.setdefault("state", {})

        async def send_on(message):
            limit = state.get("view_rate_limit") if message["type"] == "http.response.start" else None
            if limit:
                await asyncio.to_thread(self.add, message, *limit)
            await send(message)

        await self.app(scope, receive, send_on)

    def add(self, message, item, key):
        try:
            reset, remaining = self.limiter.limiter.get_window_stats(item, *key)
        except (redis.RedisError, StorageError):
            return
        found = fields([(item, remaining, reset)])
        if message["status"] == 429:
            found["Retry-After"] = seconds_until(reset)
        names = {name.lower().encode() for name in found}
        message["headers"] = [h for h in message.get("headers", []) if h[0].lower() not in names]
        message["headers"] += [(name.lower().encode(), value.encode()) for name, value in found.items()]
