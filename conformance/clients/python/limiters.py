"""limits: its strategies over its Redis storages, alone and over a cluster, with threads' and with asyncio's clients."""

import asyncio
import threading
import time

import limits.aio.storage
import limits.aio.strategies
import redis
from limits import parse
from limits.storage import storage_from_string
from limits.strategies import FixedWindowRateLimiter, MovingWindowRateLimiter, SlidingWindowCounterRateLimiter

from harness import client, try_ways, want

STRATEGIES = (FixedWindowRateLimiter, MovingWindowRateLimiter, SlidingWindowCounterRateLimiter)


def early():
    """A window that ends within a check would let more in."""
    if time.time() % 60 > 55:
        time.sleep(60.1 - time.time() % 60)


def run(at):
    check = client("limits")
    store = storage_from_string(f"redis://127.0.0.1:{at.plain}/6")
    cluster = storage_from_string(f"redis+cluster://127.0.0.1:{at.cluster}")

    def use(way, _):
        uri = way.url.replace("unix://", "redis+unix://")
        want(FixedWindowRateLimiter(storage_from_string(uri)).hit(parse("100/minute"), "way"), True)

    try_ways(at, check, use)

    for over, s in (("", store), (" over a cluster", cluster)):
        for strategy in STRATEGIES:
            @check("script", f"{strategy.__name__}{over}: 10 of 15 a minute are let in")
            def _():
                early()
                limiter, rule = strategy(s), parse("10/minute")
                want(sum(limiter.hit(rule, strategy.__name__, "user") for _ in range(15)), 10)
                stats = limiter.get_window_stats(rule, strategy.__name__, "user")
                want(stats.remaining, 0)
                want(limiter.test(rule, strategy.__name__, "user"), False)
                limiter.clear(rule, strategy.__name__, "user")
                want(limiter.test(rule, strategy.__name__, "user"), True)

    for strategy in STRATEGIES:
        @check("features", f"{strategy.__name__}: 10 of 8 threads' 40 are let in, and of 40 by asyncio")
        def _():
            early()
            limiter, rule, hits = strategy(store), parse("10/minute"), []
            threads = [threading.Thread(target=lambda: hits.extend(limiter.hit(rule, strategy.__name__, "threads") for _ in range(5)))
                       for _ in range(8)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
            want((len(hits), sum(hits)), (40, 10))

            async def main():
                s = limits.aio.storage.RedisStorage(f"async+redis://127.0.0.1:{at.plain}/6", implementation="redispy")
                limiter = getattr(limits.aio.strategies, strategy.__name__)(s)
                want(sum(await asyncio.gather(*(limiter.hit(rule, strategy.__name__, "asyncio") for _ in range(40)))), 10)
                want((await limiter.get_window_stats(rule, strategy.__name__, "asyncio")).remaining, 0)
                await s.reset()
            asyncio.run(main())

    @check("features", "a moving window moves")
    def _():
        limiter, rule = MovingWindowRateLimiter(store), parse("2/second")
        want([limiter.hit(rule, "move") for _ in range(3)], [True, True, False])
        time.sleep(1.05)
        want(limiter.hit(rule, "move"), True)

    @check("features", "a counted sliding window weighs the one before")
    def _():
        limiter, rule = SlidingWindowCounterRateLimiter(store), parse("10/2 second")
        time.sleep(2 - time.time() % 2)
        want(sum(limiter.hit(rule, "slide") for _ in range(10)), 10)
        time.sleep(2.05 - time.time() % 2)  # nearly all of the window before still counts
        want(limiter.hit(rule, "slide", cost=5), False)
        time.sleep(1.2)
        want(limiter.hit(rule, "slide", cost=5), True)

    @check("features", "costs, two rules, a script that the server has lost")
    def _():
        limiter, rule = FixedWindowRateLimiter(store), parse("10/hour")
        want([limiter.hit(rule, "cost", cost=7), limiter.hit(rule, "cost", cost=7)], [True, False])
        redis.Redis(port=at.plain).script_flush()
        moving = MovingWindowRateLimiter(store)
        want([moving.hit(parse("1/hour"), "lost"), moving.hit(parse("1/hour"), "lost")], [True, False])
        want(storage_from_string(f"redis://127.0.0.1:{at.plain}/6").check(), True)
