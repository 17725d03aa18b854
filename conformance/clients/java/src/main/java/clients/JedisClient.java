// Jedis: pooled, over RESP2 and RESP3. Its locks and counters are those of the articles: SCRIPT LOAD once, EVALSHA after.
package clients;

import static clients.Checks.eventually;
import static clients.Checks.millis;
import static clients.Checks.want;
import static clients.Checks.wantBetween;
import static clients.Checks.wantThrown;
import static clients.Checks.wantTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentLinkedQueue;
import redis.clients.jedis.ConnectionPoolConfig;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisPool;
import redis.clients.jedis.JedisPooled;
import redis.clients.jedis.JedisPubSub;
import redis.clients.jedis.JedisSocketFactory;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.Response;
import redis.clients.jedis.SslOptions;
import redis.clients.jedis.StreamEntryID;
import redis.clients.jedis.Transaction;
import redis.clients.jedis.UnifiedJedis;
import redis.clients.jedis.args.ListDirection;
import redis.clients.jedis.csc.CacheConfig;
import redis.clients.jedis.exceptions.JedisAccessControlException;
import redis.clients.jedis.exceptions.JedisConnectionException;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.exceptions.JedisNoScriptException;
import redis.clients.jedis.params.ScanParams;
import redis.clients.jedis.params.SetParams;
import redis.clients.jedis.params.XAutoClaimParams;
import redis.clients.jedis.params.XReadGroupParams;
import redis.clients.jedis.params.XReadParams;
import redis.clients.jedis.resps.ScanResult;
import redis.clients.jedis.resps.Tuple;

final class JedisClient {
  private static final String LOCK =
      "if redis.call('set', KEYS[1], ARGV[1], 'NX', 'EX', ARGV[2]) then return 1 else return 0 end";
  private static final String UNLOCK =
      "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end";

  private final Servers servers;
  private final Checks checks;

  private JedisClient(Servers servers) throws Exception {
    this.servers = servers;
    this.checks = new Checks("Jedis", "redis.clients", "jedis");
  }

  static void run(Servers servers) throws Exception {
    JedisClient c = new JedisClient(servers);
    c.connections();
    c.protocol(RedisProtocol.RESP2, "RESP2");
    c.protocol(RedisProtocol.RESP3, "RESP3");
    c.features();
  }

  private static DefaultJedisClientConfig.Builder config() {
    return DefaultJedisClientConfig.builder();
  }

  private HostAndPort at(int port) {
    return new HostAndPort("127.0.0.1", port);
  }

  private JedisPooled open(RedisProtocol protocol) {
    ConnectionPoolConfig pool = new ConnectionPoolConfig();
    pool.setMaxTotal(32);
    return new JedisPooled(at(servers.plain), config().protocol(protocol).build(), pool);
  }

  private void connections() {
    checks.check("connect", "JedisPool, 20 threads on 4 connections", () -> {
      try (JedisPool pool = new JedisPool(poolOf(4), "127.0.0.1", servers.plain)) {
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < 20; i++) {
          Thread t = new Thread(() -> {
            for (int n = 0; n < 50; n++) {
              try (Jedis jedis = pool.getResource()) {
                jedis.incr("jedis:pool");
              }
            }
          });
          threads.add(t);
          t.start();
        }
        for (Thread t : threads) {
          t.join();
        }
        try (Jedis jedis = pool.getResource()) {
          want(jedis.get("jedis:pool"), "1000");
          want(jedis.ping(), "PONG");
        }
      }
    });
    checks.check("connect", "another database, a client's name", () -> {
      try (UnifiedJedis jedis = new JedisPooled(at(servers.plain), config().database(3).clientName("jedis-check").build());
          Jedis other = new Jedis(at(servers.plain), config().database(3).build())) {
        jedis.set("jedis:db", "3");
        want(other.get("jedis:db"), "3");
        wantTrue(other.clientInfo().contains(" db=3 "), other.clientInfo());
        wantTrue(other.clientList().contains("name=jedis-check"), "CLIENT LIST has the name");
      }
    });
    Ways.check(checks, servers, "", true, new int[] {2, 3}, (w, protocol) -> {
      String big = "x".repeat(300_000);
      try (UnifiedJedis jedis = open(w, protocol == 2 ? RedisProtocol.RESP2 : RedisProtocol.RESP3)) {
        jedis.set("jedis:way", big);
        want(jedis.get("jedis:way"), big);
      }
    });
    checks.check("auth", "what the errors say; a server that is not trusted", () -> {
      wantThrown(JedisAccessControlException.class, () -> new Jedis(at(servers.secret), config().password("wrong").build()).ping());
      JedisDataException e = wantThrown(JedisDataException.class, () -> {
        try (Jedis jedis = new Jedis(at(servers.secret))) {
          jedis.get("k");
        }
      });
      want(e.getMessage(), "NOAUTH Authentication required.");
      wantThrown(JedisConnectionException.class, () -> new Jedis(at(servers.tls), config().ssl(true).build()).ping());
    });
    checks.check("auth", "a user of ACL SETUSER", () -> {
      try (Jedis admin = new Jedis(at(servers.plain))) {
        admin.aclSetUser("jedis", "on", ">pw", "~jedis:acl:*", "+get", "+set");
        try (Jedis jedis = new Jedis(at(servers.plain), config().user("jedis").password("pw").build())) {
          want(jedis.set("jedis:acl:1", "v"), "OK");
          want(jedis.get("jedis:acl:1"), "v");
          wantThrown(JedisAccessControlException.class, () -> jedis.get("other"));
          wantThrown(JedisAccessControlException.class, () -> jedis.del("jedis:acl:1"));
        } finally {
          admin.aclDelUser("jedis");
        }
      }
    });
  }

  private UnifiedJedis open(Ways w, RedisProtocol protocol) {
    DefaultJedisClientConfig.Builder config = config().protocol(protocol).user(w.user()).password(w.password());
    if (w.tls()) {
      SslOptions.Builder ssl = SslOptions.builder().trustStoreType("PKCS12").truststore(servers.trust.toFile(), Servers.TRUST_PASSWORD.toCharArray());
      if (w.certified()) {
        ssl.keyStoreType("PKCS12").keystore(servers.own.toFile(), Servers.TRUST_PASSWORD.toCharArray());
      }
      config.ssl(true).sslOptions(ssl.build());
    }
    if (!w.unix()) {
      return new UnifiedJedis(at(w.port()), config.build());
    }
    JedisSocketFactory factory = () -> {
      try {
        return new UnixSocket(servers.socket);
      } catch (java.io.IOException e) {
        throw new JedisConnectionException(e);
      }
    };
    return new UnifiedJedis(factory, config.build());
  }

  private static redis.clients.jedis.JedisPoolConfig poolOf(int n) {
    var config = new redis.clients.jedis.JedisPoolConfig();
    config.setMaxTotal(n);
    return config;
  }

  /** What is run over both protocols. */
  private void protocol(RedisProtocol protocol, String name) {
    String in = ", " + name, key = "jedis:" + name + ":";
    checks.check("connect", "the protocol that was asked for" + in, () -> {
      try (Jedis jedis = new Jedis(at(servers.plain), config().protocol(protocol).build())) {
        wantTrue(jedis.clientInfo().contains("resp=" + protocol.version()), jedis.clientInfo());
      }
    });
    checks.check(protocol == RedisProtocol.RESP3 ? "resp3" : "connect", "maps, sets, scores, booleans" + in, () -> {
      try (JedisPooled jedis = open(protocol)) {
        jedis.hset(key + "h", Map.of("a", "1", "b", "2"));
        want(jedis.hgetAll(key + "h"), Map.of("a", "1", "b", "2"));
        jedis.sadd(key + "s", "x", "y");
        want(jedis.smembers(key + "s"), Set.of("x", "y"));
        jedis.zadd(key + "z", Map.of("m", 1.5, "n", Double.POSITIVE_INFINITY));
        want(jedis.zrangeWithScores(key + "z", 0, -1), List.of(new Tuple("m", 1.5), new Tuple("n", Double.POSITIVE_INFINITY)));
        want(jedis.zscore(key + "z", "m"), 1.5);
        want(jedis.zscore(key + "z", "none"), null);
        want(jedis.smismember(key + "s", "x", "none"), List.of(true, false));
        want(jedis.get(key + "none"), null);
        want(jedis.hrandfieldWithValues(key + "h", 2).size(), 2);
      }
    });
    checks.check("pipeline", "1,000 commands, an error among them" + in, () -> {
      try (JedisPooled jedis = open(protocol); Pipeline p = (Pipeline) jedis.pipelined()) {
        List<Response<Long>> replies = new ArrayList<>();
        for (int i = 0; i < 1000; i++) {
          replies.add(p.incr(key + "p"));
        }
        Response<Long> wrong = p.llen(key + "p");
        Response<String> after = p.get(key + "p");
        p.sync();
        for (int i = 0; i < 1000; i++) {
          want(replies.get(i).get(), i + 1L);
        }
        wantTrue(wantThrown(JedisDataException.class, wrong::get).getMessage().startsWith("WRONGTYPE "), "WRONGTYPE");
        want(after.get(), "1000");
      }
    });
    checks.check("pipeline", "1,000,000 commands sent before a reply is read" + in, () -> {
      try (JedisPooled jedis = open(protocol); Pipeline p = (Pipeline) jedis.pipelined()) {
        jedis.set(key + "many", "v".repeat(40));
        Response<String> last = null;
        for (int i = 0; i < 1_000_000; i++) {
          last = p.get(key + "many");
        }
        p.sync();
        want(last.get(), "v".repeat(40));
      }
    });
    checks.check("transaction", "MULTI, EXEC, DISCARD; WATCH sees another's write" + in, () -> {
      try (JedisPooled jedis = open(protocol)) {
        try (var t = jedis.multi()) {
          Response<String> set = t.set(key + "t", "1");
          Response<Long> incr = t.incr(key + "t");
          want(t.exec(), List.of("OK", 2L));
          want(set.get(), "OK");
          want(incr.get(), 2L);
        }
        try (var t = jedis.multi()) {
          t.set(key + "t", "9");
          want(t.discard(), "OK");
        }
        want(jedis.get(key + "t"), "2");
        try (Jedis one = new Jedis(at(servers.plain), config().protocol(protocol).build())) {
          one.watch(key + "t");
          jedis.set(key + "t", "3");
          Transaction t = one.multi();
          t.set(key + "t", "4");
          want(t.exec(), null);
        }
        want(jedis.get(key + "t"), "3");
      }
    });
    checks.check("script", "EVALSHA, NOSCRIPT, SCRIPT LOAD, EVALSHA" + in, () -> {
      try (JedisPooled jedis = open(protocol)) {
        String script = "return {KEYS[1], ARGV[1], 7, false, {ok = 'fine'}} -- " + key + System.nanoTime();
        String sha = Scripts.sha1(script);
        List<String> keys = List.of(key + "k"), arguments = List.of("a");
        List<Object> wanted = new ArrayList<>(List.of(key + "k", "a", 7L));
        wanted.add(null);
        wanted.add("fine");
        want(jedis.scriptExists(sha, key), false);
        wantThrown(JedisNoScriptException.class, () -> jedis.evalsha(sha, keys, arguments));
        want(jedis.scriptLoad(script, key), sha);
        want(jedis.evalsha(sha, keys, arguments), wanted);
        want(jedis.eval(script, keys, arguments), wanted);
        wantThrown(JedisDataException.class, () -> jedis.eval("return redis.call('incr', KEYS[1], 'x')", 1, key));
      }
    });
    checks.check("script", "a lock of 8 threads, tried each 10 ms" + in, () -> {
      try (JedisPooled jedis = open(protocol)) {
        String lock = jedis.scriptLoad(LOCK, key), unlock = jedis.scriptLoad(UNLOCK, key);
        int[] count = {0};
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < 8; i++) {
          String holder = "holder" + i;
          Thread t = new Thread(() -> {
            for (int n = 0; n < 5; n++) {
              while (!jedis.evalsha(lock, 1, key + "lock", holder, "30").equals(1L)) {
                Checks.pause(10);
              }
              count[0]++;
              jedis.evalsha(unlock, 1, key + "lock", holder);
            }
          });
          threads.add(t);
          t.start();
        }
        for (Thread t : threads) {
          t.join();
        }
        want(count[0], 40);
        want(jedis.evalsha(lock, 1, key + "lock", "a", "30"), 1L);
        want(jedis.evalsha(unlock, 1, key + "lock", "b"), 0L);
        wantBetween(jedis.ttl(key + "lock"), 29, 30, "TTL");
      }
    });
    checks.check("pubsub", "channels and patterns" + in, () -> {
      try (JedisPooled jedis = open(protocol); Jedis listener = new Jedis(at(servers.plain), config().protocol(protocol).build())) {
        ConcurrentLinkedQueue<String> got = new ConcurrentLinkedQueue<>();
        JedisPubSub sub = new JedisPubSub() {
          @Override
          public void onMessage(String channel, String message) {
            got.add(channel + "=" + message);
          }

          @Override
          public void onPMessage(String pattern, String channel, String message) {
            got.add(pattern + ":" + channel + "=" + message);
          }

          @Override
          public void onSubscribe(String channel, int n) {
            got.add("subscribed " + n);
            psubscribe(key + "ch*");
          }

          @Override
          public void onPSubscribe(String pattern, int n) {
            got.add("subscribed " + n);
          }
        };
        Thread t = new Thread(() -> listener.subscribe(sub, key + "ch"));
        t.start();
        eventually("both subscribed", () -> got.size() == 2);
        want(jedis.publish(key + "ch", "one"), 2L);
        want(jedis.publish(key + "ch2", "two"), 1L);
        eventually("messages", () -> got.size() == 5);
        want(new ArrayList<>(got), List.of("subscribed 1", "subscribed 2", key + "ch=one",
            key + "ch*:" + key + "ch=one", key + "ch*:" + key + "ch2=two"));
        sub.unsubscribe();
        sub.punsubscribe();
        t.join(5000);
        wantTrue(!t.isAlive(), "subscribe() returns once nothing is subscribed");
        want(listener.ping(), "PONG");
      }
    });
    checks.check("blocking", "BRPOP, BLMOVE, BZPOPMIN, XREAD wait, are served, time out" + in, () -> {
      try (JedisPooled jedis = open(protocol)) {
        want(served(() -> jedis.brpop(5, key + "l1", key + "l2"), () -> jedis.lpush(key + "l2", "v")), List.of(key + "l2", "v"));
        want(served(() -> jedis.blmove(key + "l3", key + "l4", ListDirection.LEFT, ListDirection.RIGHT, 5),
            () -> jedis.rpush(key + "l3", "w")), "w");
        want(jedis.lrange(key + "l4", 0, -1), List.of("w"));
        var popped = served(() -> jedis.bzpopmin(5, key + "bz"), () -> jedis.zadd(key + "bz", 2.5, "m"));
        want(popped.getKey(), key + "bz");
        want(popped.getValue(), new Tuple("m", 2.5));
        var read = served(() -> jedis.xread(new XReadParams().block(5000), Map.of(key + "x", new StreamEntryID())),
            () -> jedis.xadd(key + "x", StreamEntryID.NEW_ENTRY, Map.of("f", "v")));
        want(read.get(0).getKey(), key + "x");
        want(read.get(0).getValue().get(0).getFields(), Map.of("f", "v"));
        long ms = millis(() -> want(jedis.brpop(0.2, key + "l1"), null));
        wantBetween(ms, 200, 20_000, "ms to time out");
        want(jedis.bzpopmax(0.05, key + "bz"), null);
      }
    });
  }

  private interface Supplier<T> {
    T get() throws Exception;
  }

  /** Runs what blocks, then, 100 ms later, what serves it; returns what the first got, which must not be at once. */
  private static <T> T served(Supplier<T> blocks, Checks.Body serves) throws Exception {
    var task = new java.util.concurrent.FutureTask<T>(blocks::get);
    new Thread(task).start();
    Thread.sleep(100);
    wantTrue(!task.isDone(), "it waits");
    serves.run();
    return task.get(4, java.util.concurrent.TimeUnit.SECONDS);
  }

  private void features() {
    checks.check("features", "client-side caching hears of another's write", () -> {
      try (JedisPooled cached = new JedisPooled(at(servers.plain), config().protocol(RedisProtocol.RESP3).build(),
              CacheConfig.builder().maxSize(100).build());
          Jedis other = new Jedis(at(servers.plain))) {
        other.set("jedis:csc", "1");
        want(cached.get("jedis:csc"), "1");
        want(cached.get("jedis:csc"), "1");
        want(cached.getCache().getStats().getHitCount(), 1L);
        other.set("jedis:csc", "2");
        eventually("the new value", () -> cached.get("jedis:csc").equals("2"));
      }
    });
    checks.check("features", "SCAN meets every key", () -> {
      try (JedisPooled jedis = open(RedisProtocol.RESP3)) {
        Set<String> wanted = new TreeSet<>(), got = new TreeSet<>();
        for (int i = 0; i < 500; i++) {
          wanted.add("jedis:scan:" + i);
          jedis.set("jedis:scan:" + i, "");
        }
        ScanResult<String> page = new ScanResult<>("0", List.of());
        do {
          page = jedis.scan(page.getCursor(), new ScanParams().match("jedis:scan:*").count(50));
          got.addAll(page.getResult());
        } while (!page.isCompleteIteration());
        want(got, wanted);
      }
    });
    checks.check("features", "streams with a group: read, pending, XAUTOCLAIM, XACK", () -> {
      try (JedisPooled jedis = open(RedisProtocol.RESP3)) {
        String key = "jedis:stream";
        want(jedis.xgroupCreate(key, "g", StreamEntryID.XGROUP_LAST_ENTRY, true), "OK");
        StreamEntryID id = jedis.xadd(key, StreamEntryID.NEW_ENTRY, Map.of("job", "1"));
        var read = jedis.xreadGroup("g", "one", new XReadGroupParams().count(10),
            Map.of(key, StreamEntryID.XREADGROUP_UNDELIVERED_ENTRY));
        want(read.get(0).getValue().get(0).getID(), id);
        want(jedis.xpending(key, "g").getConsumerMessageCount(), Map.of("one", 1L));
        var claimed = jedis.xautoclaim(key, "g", "two", 0, new StreamEntryID(), new XAutoClaimParams().count(10));
        want(claimed.getValue().get(0).getID(), id);
        want(jedis.xack(key, "g", id), 1L);
        want(jedis.xpending(key, "g").getTotal(), 0L);
        want(jedis.xinfoGroups(key).get(0).getName(), "g");
      }
    });
    checks.check("features", "fields that expire, SET's options, functions", () -> {
      try (JedisPooled jedis = open(RedisProtocol.RESP3)) {
        jedis.hset("jedis:hexpire", Map.of("a", "1", "b", "2"));
        want(jedis.hpexpire("jedis:hexpire", 60, "a", "none"), List.of(1L, -2L));
        eventually("the field is gone", () -> jedis.hgetAll("jedis:hexpire").equals(Map.of("b", "2")));
        want(jedis.set("jedis:set", "1", SetParams.setParams().nx().px(60_000)), "OK");
        want(jedis.set("jedis:set", "2", SetParams.setParams().nx()), null);
        want(jedis.setGet("jedis:set", "3", SetParams.setParams().keepTtl()), "1");
        wantBetween(jedis.pttl("jedis:set"), 50_000, 60_000, "PTTL");
        String library = "#!lua name=jedislib\nredis.register_function('jediscount', function(k, a) "
            + "return redis.call('incrby', k[1], a[1]) end)";
        want(jedis.functionLoadReplace(library), "jedislib");
        want(jedis.fcall("jediscount", List.of("jedis:fcall"), List.of("5")), 5L);
        want(jedis.functionList("jedislib").get(0).getLibraryName(), "jedislib");
        want(jedis.functionDelete("jedislib"), "OK");
      }
    });
  }
}
