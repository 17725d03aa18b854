"""limits: the three strategies over its Redis storage, whose scripts are Lua."""

import time

from limits import parse
from limits.storage import storage_from_string
from limits.strategies import FixedWindowRateLimiter, MovingWindowRateLimiter, SlidingWindowCounterRateLimiter

from harness import client, want


def run(at):
    check = client("limits")
    store = storage_from_string(f"redis://127.0.0.1:{at.plain}/6")

    for strategy in (FixedWindowRateLimiter, MovingWindowRateLimiter, SlidingWindowCounterRateLimiter):
        @check("script", f"{strategy.__name__}: 10 of 15 a minute are let in")
        def _():
            limiter, rule = strategy(store), parse("10/minute")
            if time.time() % 60 > 58:  # a window that ends meanwhile would let more in
                time.sleep(60 - time.time() % 60)
            want(sum(limiter.hit(rule, strategy.__name__, "user") for _ in range(15)), 10)
            stats = limiter.get_window_stats(rule, strategy.__name__, "user")
            want(stats.remaining, 0)
            want(limiter.test(rule, strategy.__name__, "user"), False)
            limiter.clear(rule, strategy.__name__, "user")
            want(limiter.test(rule, strategy.__name__, "user"), True)

    @check("features", "a moving window moves")
    def _():
        limiter, rule = MovingWindowRateLimiter(store), parse("2/second")
        want([limiter.hit(rule, "move") for _ in range(3)], [True, True, False])
        time.sleep(1.05)
        want(limiter.hit(rule, "move"), True)

    @check("features", "costs")
    def _():
        limiter, rule = FixedWindowRateLimiter(store), parse("10/hour")
        want([limiter.hit(rule, "cost", cost=7), limiter.hit(rule, "cost", cost=7)], [True, False])
