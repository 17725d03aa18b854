"""Large arguments, many arguments, huge costs and large jobs: what a server does well at ten entries it may do wrong, or
slowly, at a hundred thousand. LARGE=n makes all of it n times larger."""

import asyncio
import hashlib
import os
import random
import time

import limits.aio.storage
import limits.aio.strategies
import redis
import redis.asyncio
import rq
from limits import parse
from limits.storage import storage_from_string
from limits.strategies import FixedWindowRateLimiter, MovingWindowRateLimiter, SlidingWindowCounterRateLimiter

from harness import client, want

# Seven is the most: 448 MB, where a server takes 512.
LARGER = min(7, int(os.environ.get("LARGE") or 1))
VALUE, KEY, ENTRIES = (64 << 20) * LARGER, (1 << 20) * LARGER, 100_000 * LARGER

SCRIPT = """for i, k in ipairs(KEYS) do redis.call('SET', k, ARGV[i]) end
ARGV[1] = 'first'
table.remove(ARGV, 1)
local n = 0
for i, v in ipairs(ARGV) do n = n + 1 end
return {#KEYS, #ARGV, n}"""


def binary(n):
    """That many bytes of every value, the same in every run."""
    return random.Random(1).randbytes(n)


def same(got, wanted):
    """Compares what is too long to be printed."""
    if got != wanted:
        raise AssertionError(f"{type(got)} of {len(got)} is not that of {len(wanted)}")


def run(at):
    redis_checks(at)
    limits_checks(at)
    jobs_checks(at)


def redis_checks(at):
    check = client("redis", "redis-py")
    names = [b"name:%06d" % i for i in range(ENTRIES)]
    values = [b"value %d" % (7 * i) for i in range(ENTRIES)]
    keys = [b"key:%d" % i for i in range(ENTRIES)]
    for protocol in (2, 3):
        r = redis.Redis(port=at.plain, db=5, protocol=protocol)

        @check("large", f"a value of {VALUE >> 20} MB and keys of {KEY >> 20} MB, RESP{protocol}")
        def _():
            v, k = binary(VALUE), binary(KEY)
            want(r.set("value", v), True)
            same(r.get("value"), v)
            want(r.append("value", "tail"), VALUE + 4)
            same(r.getrange("value", VALUE - 1000, -1), v[-1000:] + b"tail")
            want((r.set(k, k), r.rename(k, k + b"2"), r.exists(k), r.append(k, "x")), (True, True, 0, 1))
            same(r.get(k + b"2"), k)
            want(r.delete(k, k + b"2", "value"), 3)

        @check("large", f"{ENTRIES} entries in one command, and read in one, RESP{protocol}")
        def _():
            want(r.hset("h", mapping=dict(zip(names, values))), ENTRIES)
            same(r.hmget("h", names), values)
            same(r.hgetall("h"), dict(zip(names, values)))
            want(r.sadd("s", *names), ENTRIES)
            same(r.smembers("s"), set(names))
            want(r.zadd("z", {name: i for i, name in enumerate(names)}), ENTRIES)
            same([tuple(x) for x in r.zrange("z", 0, -1, withscores=True)], [(name, float(i)) for i, name in enumerate(names)])
            want(r.rpush("l", *values), ENTRIES)
            same(r.lrange("l", 0, -1), values)
            want(r.mset(dict(zip(keys, values))), True)
            same(r.mget(keys), values)
            want((r.delete(*keys), r.hdel("h", *names), r.srem("s", *names), r.zrem("z", *names), r.delete("l")), (ENTRIES,) * 4 + (1,))

        @check("large", f"a script with {ENTRIES} KEYS and as many ARGV, RESP{protocol}")
        def _():
            want(r.eval(SCRIPT, ENTRIES, *keys, *values), [ENTRIES, ENTRIES - 1, ENTRIES - 1])
            same(r.mget(keys), values)
            same(r.eval("return redis.call('MGET', unpack(KEYS, 1, 5000))", ENTRIES, *keys), values[:5000])
            want(r.register_script("return #KEYS + #ARGV")(keys=keys, args=values), 2 * ENTRIES)
            want(r.delete(*keys), ENTRIES)
        r.close()

    @check("large", "a message and a stream's entry of 8 MB, by asyncio")
    def _():
        async def main():
            v = binary(8 << 20)
            async with redis.asyncio.Redis(port=at.plain, db=5) as r, r.pubsub() as p:
                await p.subscribe("large")
                want((await p.get_message(timeout=10))["type"], "subscribe")
                want(await r.publish("large", v), 1)
                same((await p.get_message(timeout=10))["data"], v)
                id = await r.xadd("x", {"f": v, **{f"f{i}": i for i in range(1000)}})
                got = await r.xrange("x", id, id)
                same(got[0][1][b"f"], v)
                want(len(got[0][1]), 1001)
                await r.delete("x")
        asyncio.run(main())


def limits_checks(at):
    check = client("limits")
    store = storage_from_string(f"redis://127.0.0.1:{at.plain}/5")
    cost = 1_000_000 - 1
    for strategy in (FixedWindowRateLimiter, MovingWindowRateLimiter, SlidingWindowCounterRateLimiter):
        @check("large", f"{strategy.__name__}: a cost of {cost}")
        def _():
            limiter, rule, name = strategy(store), parse("1000000/hour"), strategy.__name__
            if time.time() % 3600 > 3580:  # a window that ends within the check would let more in
                time.sleep(3601 - time.time() % 3600)
            want((limiter.test(rule, name, cost=cost), limiter.hit(rule, name, cost=cost)), (True, True))
            want(limiter.get_window_stats(rule, name).remaining, 1)
            want((limiter.test(rule, name, cost=2), limiter.hit(rule, name)), (False, True))
            want((limiter.hit(rule, name, cost=cost), limiter.get_window_stats(rule, name).remaining), (False, 0))

            async def main():
                s = limits.aio.storage.RedisStorage(f"async+redis://127.0.0.1:{at.plain}/5", implementation="redispy")
                limiter = getattr(limits.aio.strategies, name)(s)
                want(await limiter.hit(rule, name, "asyncio", cost=cost), True)
                want((await limiter.get_window_stats(rule, name, "asyncio")).remaining, 1)
            asyncio.run(main())
            limiter.clear(rule, name)
            want(limiter.test(rule, name, cost=1_000_000), True)

    @check("large", "5,000 keys of a limiter are reset")
    def _():
        limiter, rule = FixedWindowRateLimiter(store), parse("10/hour")
        for i in range(5000):
            limiter.hit(rule, "reset", str(i))
        store.reset()
        want(sum(limiter.get_window_stats(rule, "reset", str(i)).remaining for i in range(0, 5000, 1000)), 50)


def jobs_checks(at):
    check = client("rq")
    import jobs

    @check("large", "jobs with payloads and results of 8 MB; 2,000 enqueued at once")
    def _():
        r = redis.Redis(port=at.plain, db=7)
        queue = rq.Queue("large", connection=r)
        payload = binary(8 << 20)
        big = queue.enqueue(jobs.turned, payload)
        many = queue.enqueue_many([rq.Queue.prepare_data(jobs.double, (i,)) for i in range(2000)])
        want(queue.count, 2001)
        rq.SimpleWorker([queue], connection=r).work(burst=True, logging_level="CRITICAL", max_jobs=200)
        same(big.return_value(), payload[::-1])
        want([job.return_value() for job in many[:199]], [2 * i for i in range(199)])
        want(queue.count, 2001 - 200)
        want(queue.empty(), 2001 - 200)

    check = client("celery")

    @check("large", "a message of 8 MB through kombu, a result of 8 MB, 2,000 messages")
    def _():
        import celery as library

        url = f"redis://127.0.0.1:{at.plain}/5"
        app = library.Celery("large", broker=url, backend=url, set_as_current=False)
        try:
            text = hashlib.sha256(b"seed").hexdigest() * (8 << 14)
            with app.connection_for_write() as c:
                queue = c.SimpleQueue("celery.large")
                queue.put({"text": text})
                for n in range(2000):
                    queue.put({"n": n})
                message = queue.get(timeout=10)
                same(message.payload["text"], text)
                message.ack()
                for n in range(2000):
                    message = queue.get(timeout=10)
                    want(message.payload, {"n": n})
                    message.ack()
                queue.close()
            app.backend.store_result("large", text, "SUCCESS")
            same(app.AsyncResult("large").get(timeout=10), text)
        finally:
            app.close()
