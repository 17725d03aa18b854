"""redis-py, by threads and by asyncio, in RESP2 and RESP3."""

import asyncio
import threading
import time

import redis
import redis.asyncio
from redis.cache import CacheConfig

from harness import PASSWORD, client, want


def run(at):
    check = client("redis", "redis-py")
    r = redis.Redis(port=at.plain, decode_responses=True)

    for protocol, area in ((2, "connect"), (3, "resp3")):
        @check(area, f"RESP{protocol}: set, get, hash, sorted set")
        def _():
            c = redis.Redis(port=at.plain, protocol=protocol, decode_responses=True)
            c.set("k", "v", ex=60)
            c.delete("h", "z")
            c.hset("h", mapping={"a": 1, "b": "two"})
            c.zadd("z", {"m": 1.5, "n": 2})
            want(c.get("k"), "v")
            want(c.hgetall("h"), {"a": "1", "b": "two"})
            want([list(x) for x in c.zrange("z", 0, -1, withscores=True)], [["m", 1.5], ["n", 2.0]])

    @check("auth", "password, and refusal of a wrong one")
    def _():
        want(redis.Redis(port=at.secret, password=PASSWORD).ping(), True)
        try:
            redis.Redis(port=at.secret, password="wrong").ping()
        except redis.AuthenticationError:
            return
        raise AssertionError("the wrong password was taken")

    @check("tls", "server certificate verified")
    def _():
        want(redis.Redis(host="127.0.0.1", port=at.secure, ssl=True, ssl_ca_certs=at.ca).ping(), True)

    @check("unix", "unix socket")
    def _():
        want(redis.Redis(unix_socket_path=at.socket).ping(), True)

    @check("pipeline", "1000 commands")
    def _():
        p = r.pipeline(transaction=False).delete("n")
        for _ in range(1000):
            p.incr("n")
        want(p.execute()[-1], 1000)

    @check("transaction", "transaction() retries what another changes")
    def _():
        r.set("t", 0)

        def add(p):
            n = int(p.get("t"))
            p.multi()
            p.set("t", n + 1)

        threads = [threading.Thread(target=lambda: [r.transaction(add, "t") for _ in range(20)]) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        want(r.get("t"), "80")

    @check("script", "register_script: EVALSHA, NOSCRIPT, SCRIPT LOAD")
    def _():
        s = r.register_script("return {redis.call('INCRBY', KEYS[1], ARGV[1]), cjson.encode({a = 1})}")
        r.script_flush()
        r.delete("s")
        want(s(keys=["s"], args=[5]), [5, '{"a":1}'])
        want(s(keys=["s"], args=[5]), [10, '{"a":1}'])

    @check("pubsub", "channel, pattern, sharded channel")
    def _():
        p = r.pubsub(ignore_subscribe_messages=True)
        p.subscribe("direct")
        p.psubscribe("news.*")
        p.ssubscribe("shard")
        time.sleep(0.05)
        r.publish("direct", "one")
        r.publish("news.py", "two")
        r.spublish("shard", "three")
        got = []
        for _ in range(200):
            m = p.get_message(timeout=0.05)
            if m:
                got.append(m["data"])
            if len(got) == 3:
                break
        want(got, ["one", "two", "three"])

    @check("blocking", "BLPOP and BZPOPMIN wake, BRPOP times out")
    def _():
        threading.Timer(0.05, lambda: (r.rpush("list", "a"), r.zadd("zs", {"b": 1}))).start()
        want(r.blpop("list", 5), ("list", "a"))
        want(r.bzpopmin("zs", 5), ("zs", "b", 1.0))
        want(r.brpop("nothing", 0.05), None)

    @check("features", "Lock: one at a time, expiry, a foreign lock")
    def _():
        inside, most = [0], [0]

        def work():
            with r.lock("lock", timeout=5, sleep=0.002):
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                time.sleep(0.002)
                inside[0] -= 1

        threads = [threading.Thread(target=work) for _ in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        want(most[0], 1)
        a = r.lock("short", timeout=0.1)
        want(a.acquire(blocking=False), True)
        want(r.lock("short").acquire(blocking=False), False)
        time.sleep(0.15)
        try:
            a.release()
        except redis.exceptions.LockNotOwnedError:
            return
        raise AssertionError("a lock that had ended was released")

    @check("features", "asyncio: 100 at once, pipeline, pub/sub")
    def _():
        async def main():
            c = redis.asyncio.Redis(port=at.plain, decode_responses=True)
            await c.delete("an")
            want(max(await asyncio.gather(*(c.incr("an") for _ in range(100)))), 100)
            async with c.pubsub() as p:
                await p.subscribe("ac")
                await p.get_message(timeout=1)
                await c.publish("ac", "hello")
                m = None
                for _ in range(50):
                    m = m or await p.get_message(ignore_subscribe_messages=True, timeout=0.05)
                want(m["data"], "hello")
            await c.aclose()
        asyncio.run(main())

    @check("features", "client-side caching is invalidated")
    def _():
        c = redis.Redis(port=at.plain, protocol=3, cache_config=CacheConfig(), decode_responses=True)
        r.set("cached", "one")
        want([c.get("cached"), c.get("cached")], ["one", "one"])
        r.set("cached", "two")
        for _ in range(200):
            if c.get("cached") == "two":
                return
            time.sleep(0.005)
        raise AssertionError("the cache keeps the old value")

    @check("features", "streams with consumer groups, scan_iter")
    def _():
        r.xgroup_create("x", "g", mkstream=True)
        i = r.xadd("x", {"f": "v"})
        want(r.xreadgroup("g", "c", {"x": ">"}), [["x", [(i, {"f": "v"})]]])
        want(r.xpending("x", "g")["pending"], 1)
        want(r.xack("x", "g", i), 1)
        r.mset({f"scan:{i}": i for i in range(300)})
        want(len(set(r.scan_iter("scan:*", count=50))), 300)
