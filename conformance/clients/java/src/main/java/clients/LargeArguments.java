// Large arguments and many of them, by Jedis, Lettuce and Redisson: what a server does well at ten entries it may do wrong,
// or slowly, at a hundred thousand. LARGE=n makes all of it n times larger.
package clients;

import static clients.Checks.want;
import static clients.Checks.wantTrue;

import io.lettuce.core.LettuceVersion;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.lettuce.core.ScoredValue;
import io.lettuce.core.ScriptOutputType;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.sync.RedisCommands;
import io.lettuce.core.codec.ByteArrayCodec;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.redisson.api.RList;
import org.redisson.api.RMap;
import org.redisson.api.RMapCache;
import org.redisson.api.RScoredSortedSet;
import org.redisson.api.RSet;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Protocol;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.RedisProtocol;

final class LargeArguments {
  /** Seven is the most: 448 MB, where a server takes 512. */
  private static final int LARGER =
      Math.max(1, Math.min(7, Integer.parseInt("0" + System.getenv().getOrDefault("LARGE", ""))));

  private static final int VALUE = LARGER * (64 << 20), KEY = LARGER * (1 << 20), ENTRIES = LARGER * 100_000;
  private static final String SCRIPT =
      "for i, k in ipairs(KEYS) do redis.call('SET', k, ARGV[i]) end ARGV[1] = 'first' table.remove(ARGV, 1)"
          + " local n = 0 for i, v in ipairs(ARGV) do n = n + 1 end return {#KEYS, #ARGV, n}";

  private final Servers servers;
  private final Map<String, String> pairs = new HashMap<>();
  private final List<String> names = new ArrayList<>(), values = new ArrayList<>();

  private LargeArguments(Servers servers) {
    this.servers = servers;
    for (int i = 0; i < ENTRIES; i++) {
      names.add("name:" + i);
      values.add("value " + 7 * i);
      pairs.put(names.get(i), values.get(i));
    }
  }

  static void run(Servers servers) throws Exception {
    LargeArguments l = new LargeArguments(servers);
    l.jedis(RedisProtocol.RESP2);
    l.jedis(RedisProtocol.RESP3);
    l.lettuce();
    l.redisson();
  }

  /** That many bytes of every value, the same in every run. */
  private static byte[] binary(int n) {
    byte[] b = new byte[n];
    new Random(1).nextBytes(b);
    return b;
  }

  private void jedis(RedisProtocol protocol) throws Exception {
    Checks checks = new Checks("Jedis", "redis.clients", "jedis");
    DefaultJedisClientConfig config =
        DefaultJedisClientConfig.builder().protocol(protocol).database(5).socketTimeoutMillis(30_000).build();
    HostAndPort at = new HostAndPort("127.0.0.1", servers.plain);
    checks.check("large", (VALUE >> 20) + " MB as a value, " + (KEY >> 20) + " MB as a key, " + protocol, () -> {
      try (Jedis r = new Jedis(at, config)) {
        byte[] v = binary(VALUE), name = "jedis:value".getBytes(), k = binary(KEY), other = Arrays.copyOf(k, KEY + 1);
        want(r.set(name, v), "OK");
        wantTrue(Arrays.equals(r.get(name), v), "the value is another");
        want(r.append(name, "tail".getBytes()), VALUE + 4L);
        want(r.strlen(name), VALUE + 4L);
        want(r.set(k, k), "OK");
        want(r.rename(k, other), "OK");
        wantTrue(Arrays.equals(r.get(other), k), "the key's value is another");
        want(r.del(k, other, name), 2L);
      }
    });
    checks.check("large", ENTRIES + " entries in one command, and a script's KEYS and ARGV, " + protocol, () -> {
      try (Jedis r = new Jedis(at, config)) {
        String[] all = names.toArray(new String[0]);
        Map<String, Double> scores = new HashMap<>();
        for (int i = 0; i < ENTRIES; i++) {
          scores.put(all[i], (double) i);
        }
        want(r.hset("jedis:h", pairs), (long) ENTRIES);
        wantTrue(r.hmget("jedis:h", all).equals(values), "HMGET");
        wantTrue(r.hgetAll("jedis:h").equals(pairs), "HGETALL");
        want(r.sadd("jedis:s", all), (long) ENTRIES);
        wantTrue(r.smembers("jedis:s").equals(new HashSet<>(names)), "SMEMBERS");
        want(r.zadd("jedis:z", scores), (long) ENTRIES);
        wantTrue(r.zrange("jedis:z", 0, -1).equals(names), "ZRANGE");
        want(r.rpush("jedis:l", values.toArray(new String[0])), (long) ENTRIES);
        wantTrue(r.lrange("jedis:l", 0, -1).equals(values), "LRANGE");
        want(r.eval(SCRIPT, names, values), List.of((long) ENTRIES, ENTRIES - 1L, ENTRIES - 1L));
        wantTrue(r.mget(all).equals(values), "MGET");
        want(r.del(all), (long) ENTRIES);
        want(r.del("jedis:h", "jedis:s", "jedis:z", "jedis:l"), 4L);
      }
    });
  }

  private void lettuce() throws Exception {
    Checks checks = new Checks("Lettuce", LettuceVersion.getVersion().split("/")[0]);
    RedisClient client = RedisClient.create(
        RedisURI.builder().withHost("127.0.0.1").withPort(servers.plain).withDatabase(6).withTimeout(Duration.ofSeconds(30)).build());
    checks.check("large", (VALUE >> 20) + " MB as a value, " + (KEY >> 20) + " MB as a key", () -> {
      try (StatefulRedisConnection<byte[], byte[]> c = client.connect(ByteArrayCodec.INSTANCE)) {
        RedisCommands<byte[], byte[]> r = c.sync();
        byte[] v = binary(VALUE), name = "value".getBytes(), k = binary(KEY);
        want(r.set(name, v), "OK");
        wantTrue(Arrays.equals(r.get(name), v), "the value is another");
        want(r.append(name, "tail".getBytes()), VALUE + 4L);
        want(r.set(k, k), "OK");
        wantTrue(Arrays.equals(r.get(k), k), "the key's value is another");
        want(r.del(k, name), 2L);
      }
    });
    checks.check("large", ENTRIES + " entries in one command, and a script's KEYS and ARGV", () -> {
      try (StatefulRedisConnection<String, String> c = client.connect()) {
        RedisCommands<String, String> r = c.sync();
        String[] all = names.toArray(new String[0]);
        List<ScoredValue<String>> scored = new ArrayList<>();
        for (int i = 0; i < ENTRIES; i++) {
          scored.add(ScoredValue.just(i, all[i]));
        }
        want(r.hset("h", pairs), (long) ENTRIES);
        wantTrue(r.hgetall("h").equals(pairs), "HGETALL");
        want(r.sadd("s", all), (long) ENTRIES);
        wantTrue(r.smembers("s").equals(new HashSet<>(names)), "SMEMBERS");
        want(r.zadd("z", scored.toArray(new ScoredValue[0])), (long) ENTRIES);
        wantTrue(r.zrangeWithScores("z", 0, -1).equals(scored), "ZRANGE");
        want(r.rpush("l", values.toArray(new String[0])), (long) ENTRIES);
        wantTrue(r.lrange("l", 0, -1).equals(values), "LRANGE");
        want(r.eval(SCRIPT, ScriptOutputType.MULTI, all, values.toArray(new String[0])), List.of((long) ENTRIES, ENTRIES - 1L, ENTRIES - 1L));
        List<String> got = new ArrayList<>();
        r.mget(all).forEach(kv -> got.add(kv.getValue()));
        wantTrue(got.equals(values), "MGET");
        want(r.del(all), (long) ENTRIES);
        want(r.del("h", "s", "z", "l"), 4L);
      }
    });
    client.shutdown(0, 2, TimeUnit.SECONDS);
  }

  private void redisson() throws Exception {
    Checks checks = new Checks("Redisson", "org.redisson", "redisson");
    RedissonClient client = RedissonClients.patient(servers, Protocol.RESP3);
    checks.check("large", "RMapCache.putAll of " + ENTRIES + " entries: size, contents, again, fastRemove", () -> {
      RMapCache<String, String> cache = client.getMapCache("redisson:large:cache", StringCodec.INSTANCE);
      cache.putAll(pairs, 1, TimeUnit.HOURS);
      want(cache.size(), ENTRIES);
      wantTrue(cache.getAll(new HashSet<>(names)).equals(pairs), "getAll");
      cache.putAll(pairs, 2, TimeUnit.HOURS);
      want(cache.size(), ENTRIES);
      wantTrue(cache.readAllMap().equals(pairs), "readAllMap");
      want(cache.fastRemove(names.toArray(new String[0])), (long) ENTRIES);
      want(cache.size(), 0);
    });
    checks.check("large", ENTRIES + " entries of a map, a set, a list and a scored set at once", () -> {
      RMap<String, String> map = client.getMap("redisson:large:map", StringCodec.INSTANCE);
      map.putAll(pairs);
      wantTrue(map.readAllMap().equals(pairs), "the map");
      RSet<String> set = client.getSet("redisson:large:set", StringCodec.INSTANCE);
      want(set.addAll(names), true);
      wantTrue(set.readAll().equals(new HashSet<>(names)), "the set");
      RList<String> list = client.getList("redisson:large:list", StringCodec.INSTANCE);
      want(list.addAll(values), true);
      wantTrue(list.readAll().equals(values), "the list");
      RScoredSortedSet<String> scored = client.getScoredSortedSet("redisson:large:scored", StringCodec.INSTANCE);
      Map<String, Double> scores = new HashMap<>();
      for (int i = 0; i < ENTRIES; i++) {
        scores.put(names.get(i), (double) i);
      }
      want(scored.addAll(scores), ENTRIES);
      wantTrue(new ArrayList<>(scored.readAll()).equals(names), "the scored set");
      want(client.getKeys().delete(map, set, list, scored), 4L);
    });
    client.shutdown();
  }
}
