"""redis-py, by threads and by asyncio, in RESP2 and RESP3."""

import asyncio
import threading
import time

import redis
import redis.asyncio
from redis.cache import CacheConfig

from harness import USER, USER_PASSWORD, client, eventually, try_ways, want


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

    def use(way, protocol):
        c = redis.Redis(**way.options, protocol=protocol)
        want((c.set("way", "v"), c.get("way")), (True, b"v"))
        c.close()

    try_ways(at, check, use, (2, 3))

    def use_async(way, protocol):
        async def main():
            async with redis.asyncio.Redis(**way.options, protocol=protocol) as c:
                want((await c.set("way", "v"), await c.get("way")), (True, b"v"))
        asyncio.run(main())

    try_ways(at, check, use_async, (3,), "asyncio: ")

    @check("auth", "what an ACL user may not do; credentials of a provider")
    def _():
        provider = redis.UsernamePasswordCredentialProvider(USER, USER_PASSWORD)
        c = redis.Redis(port=at.secret, credential_provider=provider, decode_responses=True)
        want(c.ping(), True)
        try:
            c.flushall()
        except redis.exceptions.NoPermissionError:
            return
        raise AssertionError("FLUSHALL was let in")

    @check("pipeline", "1000 commands")
    def _():
        p = r.pipeline(transaction=False).delete("n")
        for _ in range(1000):
            p.incr("n")
        want(p.execute()[-1], 1000)

    # redis-py writes the whole pipeline before it reads the first reply.
    tls = {"host": "127.0.0.1", "port": at.secure, "ssl": True, "ssl_ca_certs": at.ca}
    for name, count, transaction, options in (
            ("1,000,000 commands, RESP2", 1_000_000, False, {"port": at.plain, "protocol": 2}),
            ("400,000 commands, RESP3", 400_000, False, {"port": at.plain, "protocol": 3}),
            ("400,000 commands in a transaction", 400_000, True, {"port": at.plain}),
            ("400,000 commands, TLS", 400_000, False, tls)):
        @check("pipeline", name)
        def _():
            c = redis.Redis(**options)
            c.set("many", "v" * 40)
            p = c.pipeline(transaction=transaction)
            for _ in range(count):
                p.get("many")
            replies = p.execute()
            want((len(replies), replies[-1]), (count, b"v" * 40))

    @check("pipeline", "an error among others, in a transaction and without")
    def _():
        for transaction in (True, False):
            replies = r.pipeline(transaction=transaction).set("p", "x").incr("p").get("p").execute(raise_on_error=False)
            want((replies[0], str(replies[1]), replies[2]), (True, "value is not an integer or out of range", "x"))

    @check("transaction", "a watched key that changes; an unknown command aborts")
    def _():
        with r.pipeline() as p:
            p.watch("w")
            r.incr("w")
            p.multi()
            p.set("w", "mine")
            try:
                p.execute()
            except redis.WatchError:
                pass
            else:
                raise AssertionError("EXEC after another's write")
        with r.pipeline() as p:
            try:
                p.set("w", "no").execute_command("NOSUCH").execute()
            except redis.exceptions.ResponseError as e:
                want("unknown command" in str(e), True)
        want(r.get("w") != "no", True)

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

    @check("script", "in a pipeline after SCRIPT FLUSH; functions; read only")
    def _():
        s = r.register_script("return ARGV[1] * 2")
        want(s(args=[1]), 2)
        r.script_flush()
        want(r.pipeline(transaction=False).ping().evalsha(s.sha, 0, 4).execute(raise_on_error=False)[0], True)
        p = r.pipeline()
        s(args=[21], client=p)
        want(p.execute(), [42])
        want(r.eval_ro("return KEYS[1]", 1, "k"), "k")
        r.function_load("#!lua name=pylib\nredis.register_function('pytwice', function(k, a) return a[1] * 2 end)", replace=True)
        want(r.fcall("pytwice", 0, 21), 42)

    @check("pubsub", "a thread's handlers; keyspace events of keys and fields that expire")
    def _():
        got = []
        p = r.pubsub(ignore_subscribe_messages=True)
        p.subscribe(handled=lambda m: got.append(m["data"]))
        p.psubscribe(**{"__keyevent@0__:*expired": lambda m: got.append((m["channel"].split(":")[1], m["data"]))})
        thread = p.run_in_thread(sleep_time=0.01)
        eventually("subscription", lambda: r.publish("handled", "one") == 1)
        r.set("event:k", "v", px=30)
        r.hset("event:h", mapping={"a": 1, "b": 2})
        r.hpexpire("event:h", 30, "a")
        eventually("events", lambda: {"one", ("expired", "event:k"), ("hexpired", "event:h")} <= set(got))
        thread.stop()
        thread.join()

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

    @check("blocking", "XREADGROUP, BLMOVE, BZMPOP wake; CLIENT UNBLOCK")
    def _():
        r.delete("bx", "bl", "bm", "bz")
        r.xgroup_create("bx", "g", "$", mkstream=True)
        threading.Timer(0.05, lambda: (r.xadd("bx", {"f": "v"}), r.rpush("bl", "a"), r.zadd("bz", {"m": 2}))).start()
        want(r.xreadgroup("g", "c", {"bx": ">"}, block=5000)[0][1][0][1], {"f": "v"})
        want(r.blmove("bl", "bm", 5), "a")
        want(r.bzmpop(5, 1, ["bz"], min=True), ["bz", [["m", "2"]]])
        with redis.Redis(port=at.plain, single_connection_client=True) as c:
            n = c.client_id()
            threading.Thread(target=lambda: eventually("blocked client", lambda: r.client_unblock(n, error=True)), daemon=True).start()
            try:
                c.blpop("nothing", 0)
            except redis.ResponseError as e:
                want(str(e), "UNBLOCKED client unblocked via CLIENT UNBLOCK")

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

    @check("features", "hash field expiry, geo, HyperLogLog, bit fields, DUMP, MONITOR")
    def _():
        r.delete("hx", "geo", "pf", "bits", "copy")
        r.hset("hx", mapping={"a": 1, "b": 2})
        want(r.hexpire("hx", 100, "a", "none"), [1, -2])
        want(r.hgetex("hx", "b", px=50), ["2"])
        eventually("end of the field", lambda: r.hkeys("hx") == ["a"])
        r.geoadd("geo", (13.361389, 38.115556, "Palermo", 15.087269, 37.502669, "Catania"))
        want(r.geosearch("geo", longitude=15, latitude=37, radius=100, unit="km"), ["Catania"])
        r.pfadd("pf", "a", "b", "a")
        want(r.pfcount("pf"), 2)
        want(r.bitfield("bits").incrby("u8", "#1", 300, overflow="SAT").get("u8", "#1").execute(), [255, 255])
        raw = redis.Redis(port=at.plain)
        raw.restore("copy", 0, raw.dump("pf"))
        want(r.pfcount("copy"), 2)
        with redis.Redis(port=at.plain, decode_responses=True).monitor() as m:
            r.echo("look")
            want(m.next_command()["command"], "ECHO look")

    @check("features", "asyncio: Lock, blocking, transaction, client-side streams")
    def _():
        async def main():
            c = redis.asyncio.Redis(port=at.plain, decode_responses=True)
            await c.delete("al", "aw")
            inside, most = 0, 0

            async def work():
                nonlocal inside, most
                async with c.lock("alock", timeout=5, sleep=0.002):
                    inside += 1
                    most = max(most, inside)
                    await asyncio.sleep(0.002)
                    inside -= 1

            await asyncio.gather(*(work() for _ in range(8)))
            want(most, 1)
            wait = asyncio.create_task(c.blpop(["al"], 5))
            await asyncio.sleep(0.05)
            await c.rpush("al", "x")
            want(await wait, ("al", "x"))

            async def add(p):
                n = int(await p.get("aw") or 0)
                p.multi()
                p.set("aw", n + 1)

            await asyncio.gather(*(c.transaction(add, "aw") for _ in range(5)))
            want(await c.get("aw"), "5")
            await c.aclose()
        asyncio.run(main())
    cluster(at, check)


def cluster(at, check):
    for protocol in (2, 3):
        @check("features", f"RedisCluster: slots, pipelines over them, scripts, sharded pub/sub, RESP{protocol}")
        def _():
            c = redis.RedisCluster("127.0.0.1", at.cluster, protocol=protocol, decode_responses=True)
            want(len(c.get_primaries()), 1)
            p = c.pipeline()
            for i in range(200):
                p.set(f"c:{i}", i)
            want(p.execute(), [True] * 200)
            want(c.mget_nonatomic([f"c:{i}" for i in range(200)])[199], "199")
            c.delete("{t}n")
            want(c.transaction(lambda p: (p.multi(), p.incr("{t}n"), p.incrby("{t}n", 2)), "{t}n"), [1, 3])
            want(c.eval("return redis.call('INCRBY', KEYS[1], ARGV[1])", 1, "{t}n", 4), 7)
            try:
                c.mget("a", "b")
            except (redis.exceptions.RedisClusterException, redis.exceptions.ResponseError):
                pass
            else:
                raise AssertionError("keys of two slots")
            p = c.pubsub()
            p.ssubscribe("shard")
            eventually("subscription", lambda: p.get_sharded_message(timeout=0.05) is not None)
            c.spublish("shard", "hello")
            got = []
            eventually("message", lambda: got.append(p.get_sharded_message(timeout=0.05)) or got[-1])
            want(got[-1]["data"], "hello")
            c.close()

    @check("features", "asyncio: RedisCluster")
    def _():
        async def main():
            async with redis.asyncio.RedisCluster("127.0.0.1", at.cluster, decode_responses=True) as c:
                await asyncio.gather(*(c.set(f"ac:{i}", i) for i in range(100)))
                want(await c.get("ac:99"), "99")
                want(len(await c.pipeline().set("a", 1).set("b", 2).get("a").execute()), 3)
        asyncio.run(main())
