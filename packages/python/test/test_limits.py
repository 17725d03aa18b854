"""limitkv-limits, the storage of limits, on the server that the fixture gives."""

import limitkv_limits  # registers the scheme
import pytest
from limits import RateLimitItemPerMinute
from limits.storage import storage_from_string
from limits.strategies import STRATEGIES


@pytest.mark.parametrize("strategy", ["fixed-window", "moving-window", "sliding-window-counter"])
def test_a_limit_of_three(limitkv, strategy):
    limitkv.freeze(1_700_000_000)
    storage = storage_from_string("limitkv" + limitkv.url.removeprefix("redis"))
    limiter, three = STRATEGIES[strategy](storage), RateLimitItemPerMinute(3)
    assert [limiter.hit(three, "ann") for _ in range(4)] == [True, True, True, False]
    assert limiter.get_window_stats(three, "ann").remaining == 0
    limitkv.advance(120)
    assert limiter.hit(three, "ann")


def test_a_server_that_is_away():
    gone = "limitkv://127.0.0.1:1"
    item = RateLimitItemPerMinute(3)
    for mode, passes in (("open", True), ("closed", False)):
        storage = storage_from_string(gone, failure_mode=mode)
        assert STRATEGIES["moving-window"](storage).hit(item, "ann") is passes
    with pytest.raises(limitkv_limits.redis.ConnectionError):
        STRATEGIES["moving-window"](storage_from_string(gone)).hit(item, "ann")
