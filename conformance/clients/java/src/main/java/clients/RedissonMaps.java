// Redisson's maps and caches, near caches, transactions, topics, batches, and the small objects; two clients, so that what
// one hears of the other has come over the server.
package clients;

import static clients.Checks.eventually;
import static clients.Checks.want;
import static clients.Checks.wantBetween;
import static clients.Checks.wantThrown;
import static clients.Checks.wantTrue;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.BatchOptions;
import org.redisson.api.ExpiredObjectListener;
import org.redisson.api.RBatch;
import org.redisson.api.RBloomFilter;
import org.redisson.api.RBucket;
import org.redisson.api.RClientSideCaching;
import org.redisson.api.RFuture;
import org.redisson.api.RLocalCachedMap;
import org.redisson.api.RMapCache;
import org.redisson.api.RMapCacheNative;
import org.redisson.api.RScript;
import org.redisson.api.RTransaction;
import org.redisson.api.RedissonClient;
import org.redisson.api.TransactionOptions;
import org.redisson.api.map.event.EntryCreatedListener;
import org.redisson.api.map.event.EntryExpiredListener;
import org.redisson.api.map.event.EntryRemovedListener;
import org.redisson.api.map.event.EntryUpdatedListener;
import org.redisson.api.options.ClientSideCachingOptions;
import org.redisson.api.options.LocalCachedMapOptions;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Config;
import org.redisson.config.Protocol;
import org.redisson.transaction.TransactionException;

final class RedissonMaps {
  private static final String P = "redisson:maps:";

  private final Checks checks;
  private final Servers servers;
  private final RedissonClient a, b;

  private RedissonMaps(Servers servers) throws Exception {
    this.servers = servers;
    checks = new Checks("Redisson", "org.redisson", "redisson");
    a = RedissonClients.open(servers, Protocol.RESP3);
    b = RedissonClients.open(servers, Protocol.RESP2);
  }

  static void run(Servers servers) throws Exception {
    RedissonMaps m = new RedissonMaps(servers);
    m.caches();
    m.near();
    m.transactions();
    m.topics();
    m.scripts();
    m.objects();
    m.cluster();
    m.a.shutdown();
    m.b.shutdown();
  }

  private void caches() {
    checks.check("features", "RMapCache: times to live and to idle, listeners, a largest size", () -> {
      RMapCache<String, String> cache = a.getMapCache(P + "cache"), other = b.getMapCache(P + "cache");
      ConcurrentLinkedQueue<String> heard = new ConcurrentLinkedQueue<>();
      other.addListener((EntryCreatedListener<String, String>) e -> heard.add("created " + e.getKey()));
      other.addListener((EntryUpdatedListener<String, String>) e -> heard.add("updated " + e.getKey() + " " + e.getOldValue()));
      other.addListener((EntryRemovedListener<String, String>) e -> heard.add("removed " + e.getKey()));
      other.addListener((EntryExpiredListener<String, String>) e -> heard.add("expired " + e.getKey()));
      cache.put("short", "1", 2000, TimeUnit.MILLISECONDS);
      cache.put("idle", "2", 0, TimeUnit.SECONDS, 1500, TimeUnit.MILLISECONDS);
      cache.put("kept", "3");
      cache.put("kept", "4");
      want(cache.remainTimeToLive("kept"), -1L);
      wantBetween(cache.remainTimeToLive("short"), 1, 2000, "ms of an entry");
      for (int i = 0; i < 12; i++) {
        want(other.get("idle"), "2");
        Thread.sleep(200);
      }
      want(other.get("short"), null);
      Thread.sleep(1550);
      want(other.get("idle"), null);
      // With a time to live it would mark the entry as idle until now, and Redisson's own sweep may take it then.
      want(cache.putIfAbsent("kept", "5"), "4");
      want(cache.expireEntry("kept", Duration.ofMillis(200), Duration.ZERO), true);
      eventually("the end of the entry", () -> !cache.containsKey("kept"));
      cache.put("gone", "6");
      cache.remove("gone");
      eventually("the events", () -> heard.containsAll(List.of("created kept", "updated kept 3", "removed gone")));
      RMapCache<Integer, Integer> small = a.getMapCache(P + "small");
      want(small.trySetMaxSize(3), true);
      for (int i = 0; i < 10; i++) {
        small.put(i, i);
      }
      want(small.size(), 3);
      want(small.readAllKeySet(), Set.of(7, 8, 9));
    });
    checks.check("features", "RMapCacheNative: fields that the server ends", () -> {
      RMapCacheNative<String, String> cache = a.getMapCacheNative(P + "native");
      want(cache.put("a", "1", Duration.ofMillis(150)), null);
      cache.putAll(Map.of("b", "2", "c", "3"), Duration.ofSeconds(50));
      wantBetween(cache.remainTimeToLive("b"), 40_000, 50_000, "ms of a field");
      want(cache.expireEntryIfLess("b", Duration.ofSeconds(90)), false);
      want(cache.clearExpire("c"), true);
      want(cache.remainTimeToLive("c"), -1L);
      eventually("the end of the field", () -> cache.size() == 2);
      want(cache.get("a"), null);
    });
    checks.check("features", "RSetCache, RListMultimapCache, RSetMultimapCacheNative", () -> {
      var set = a.<String>getSetCache(P + "set");
      want(set.add("a", 150, TimeUnit.MILLISECONDS), true);
      want(set.add("b"), true);
      eventually("the end of the value", () -> !set.contains("a") && set.readAll().equals(Set.of("b")));
      var multi = a.<String, String>getListMultimapCache(P + "multi");
      multi.putAll("k", List.of("1", "2"));
      multi.put("l", "3");
      want(multi.expireKey("k", 150, TimeUnit.MILLISECONDS), true);
      eventually("the end of the key", () -> !multi.containsKey("k"));
      want(multi.getAll("l"), List.of("3"));
      var natives = a.<String, String>getSetMultimapCacheNative(P + "multin");
      natives.put("k", "1");
      want(natives.expireKey("k", 150, TimeUnit.MILLISECONDS), true);
      eventually("the end of the key", () -> !natives.containsKey("k"));
    });
  }

  private void near() {
    checks.check("features", "RLocalCachedMap hears what another client changed, removed and cleared", () -> {
      LocalCachedMapOptions<String, String> update = LocalCachedMapOptions.<String, String>name(P + "near")
          .syncStrategy(LocalCachedMapOptions.SyncStrategy.INVALIDATE);
      RLocalCachedMap<String, String> one = a.getLocalCachedMap(update), two = b.getLocalCachedMap(update);
      one.put("k", "1");
      eventually("the near value", () -> "1".equals(two.get("k")) && two.getCachedMap().equals(Map.of("k", "1")));
      one.put("k", "2");
      eventually("the invalidation", () -> two.getCachedMap().isEmpty());
      want(two.get("k"), "2");
      one.fastRemove("k");
      eventually("the invalidation", () -> two.getCachedMap().isEmpty());
      one.putAll(Map.of("x", "1", "y", "2"));
      eventually("the near values", () -> {
        two.preloadCache();
        return two.cachedKeySet().equals(Set.of("x", "y"));
      });
      one.clear();
      eventually("the end of all", () -> two.getCachedMap().isEmpty());
      LocalCachedMapOptions<String, String> sent = LocalCachedMapOptions.<String, String>name(P + "sent")
          .syncStrategy(LocalCachedMapOptions.SyncStrategy.UPDATE);
      RLocalCachedMap<String, String> three = a.getLocalCachedMap(sent), four = b.getLocalCachedMap(sent);
      three.put("k", "told");
      eventually("the value", () -> "told".equals(four.getCachedMap().get("k")));
      one.destroy();
      two.destroy();
      three.destroy();
      four.destroy();
    });
    checks.check("features", "RClientSideCaching: the server says what has changed", () -> {
      RClientSideCaching cached = a.getClientSideCaching(ClientSideCachingOptions.defaults());
      RBucket<String> bucket = cached.getBucket(P + "csc", StringCodec.INSTANCE);
      RBucket<String> other = b.getBucket(P + "csc", StringCodec.INSTANCE);
      other.set("one");
      want(bucket.get(), "one");
      want(bucket.get(), "one");
      other.set("two");
      eventually("the new value", () -> "two".equals(bucket.get()));
      cached.destroy();
    });
  }

  private void transactions() {
    checks.check("transaction", "RTransaction: seen by others once committed, undone, refused when another was first", () -> {
      RTransaction t = a.createTransaction(TransactionOptions.defaults());
      t.<String>getBucket(P + "tb").set("in");
      t.<String, String>getMap(P + "tm").put("k", "in");
      want(t.<String, String>getMap(P + "tm").get("k"), "in");
      want(b.getBucket(P + "tb").get(), null);
      want(b.getMap(P + "tm").size(), 0);
      t.commit();
      want(b.getBucket(P + "tb").get(), "in");
      want(b.getMap(P + "tm").get("k"), "in");
      RTransaction undone = a.createTransaction(TransactionOptions.defaults());
      undone.<String>getSet(P + "ts").add("x");
      undone.rollback();
      want(b.getSet(P + "ts").isExists(), false);
      RTransaction late = a.createTransaction(TransactionOptions.defaults().timeout(300, TimeUnit.MILLISECONDS));
      late.<String, String>getMap(P + "tm").put("k", "late");
      Thread.sleep(400);
      wantThrown(TransactionException.class, late::commit);
      want(b.getMap(P + "tm").get("k"), "in");
    });
    checks.check("transaction", "RBatch in MULTI and EXEC, with an error in it", () -> {
      for (BatchOptions.ExecutionMode mode : List.of(BatchOptions.ExecutionMode.IN_MEMORY_ATOMIC, BatchOptions.ExecutionMode.REDIS_WRITE_ATOMIC)) {
        RBatch batch = a.createBatch(BatchOptions.defaults().executionMode(mode));
        batch.getBucket(P + "b" + mode).setAsync("v");
        RFuture<Long> n = batch.getAtomicLong(P + "n" + mode).addAndGetAsync(5);
        batch.getMap(P + "m" + mode).fastPutAsync("k", "v");
        want(batch.execute().getResponses().size(), 3);
        want(n.get(), 5L);
      }
      RBatch batch = a.createBatch();
      batch.getBucket(P + "bad", StringCodec.INSTANCE).setAsync("text");
      RFuture<Long> bad = batch.getAtomicLong(P + "bad").incrementAndGetAsync();
      wantThrown(Exception.class, batch::execute);
      wantThrown(Exception.class, bad::get);
    });
  }

  private void topics() {
    checks.check("pubsub", "RTopic, RPatternTopic, RShardedTopic, counted and left", () -> {
      ConcurrentLinkedQueue<String> heard = new ConcurrentLinkedQueue<>();
      for (RedissonClient r : List.of(a, b)) {
        String who = r == a ? "a " : "b ";
        r.getTopic(P + "t").addListener(String.class, (channel, m) -> heard.add(who + m));
        r.getPatternTopic(P + "p*").addListener(String.class, (pattern, channel, m) -> heard.add(who + channel.toString().substring(P.length()) + " " + m));
        r.getShardedTopic(P + "s").addListener(String.class, (channel, m) -> heard.add(who + m));
      }
      want(a.getTopic(P + "t").publish("1"), 2L);
      a.getTopic(P + "px").publish("2");
      want(b.getShardedTopic(P + "s").publish("3"), 2L);
      eventually("six", () -> heard.size() == 6);
      want(Set.copyOf(heard), Set.of("a 1", "b 1", "a px 2", "b px 2", "a 3", "b 3"));
      want(a.getTopic(P + "t").countSubscribers(), 2L);
      wantTrue(a.getPatternTopic(P + "p*").getActiveTopics() != null, "PUBSUB CHANNELS");
      b.getTopic(P + "t").removeAllListeners();
      eventually("one is left", () -> a.getTopic(P + "t").countSubscribers() == 1);
    });
    checks.check("pubsub", "listeners of keys that expire and are deleted", () -> {
      ConcurrentLinkedQueue<String> heard = new ConcurrentLinkedQueue<>();
      RBucket<String> bucket = a.getBucket(P + "event");
      bucket.addListener((ExpiredObjectListener) heard::add);
      bucket.set("v", Duration.ofMillis(100));
      eventually("the event", () -> heard.contains(P + "event"));
    });
  }

  private void scripts() {
    checks.check("script", "every script by its SHA, while the server forgets them", () -> {
      // Not on the open server, where others rely on their scripts.
      Config config = RedissonClients.config(Protocol.RESP3).setUseScriptCache(true);
      config.useSingleServer().setPassword(Servers.PASSWORD);
      RedissonClient r = RedissonClients.open(config, "redis://127.0.0.1:" + servers.secret);
      for (int i = 0; i < 5; i++) {
        r.getScript().scriptFlush();
        want(r.getLock(P + "slock").tryLock(), true);
        r.getLock(P + "slock").unlock();
        want(r.getSemaphore(P + "ssem" + i).trySetPermits(3), true);
        want(r.getSemaphore(P + "ssem" + i).tryAcquire(2), true);
      }
      r.shutdown();
    });
    checks.check("script", "RScript: kinds of replies, read only, RFunction", () -> {
      RScript script = a.getScript(StringCodec.INSTANCE);
      want(script.eval(RScript.Mode.READ_ONLY, "return {KEYS[1], ARGV[1]}", RScript.ReturnType.LIST, List.of("k"), "v"), List.of("k", "v"));
      want(script.eval(RScript.Mode.READ_ONLY, "return 1", RScript.ReturnType.BOOLEAN), true);
      want(script.eval(RScript.Mode.READ_ONLY, "return redis.status_reply('FINE')", RScript.ReturnType.STRING), "FINE");
      want(script.eval(RScript.Mode.READ_ONLY, "return false", RScript.ReturnType.VALUE), null);
      String sha = script.scriptLoad("return 'loaded'");
      want(script.scriptExists(sha, "0".repeat(40)), List.of(true, false));
      a.getFunction().loadAndReplace("redissonlib", "redis.register_function{function_name='redissonfn', callback=function(k, a) return a[1] end, flags={'no-writes'}}");
      want(a.getFunction(StringCodec.INSTANCE).call(org.redisson.api.FunctionMode.READ, "redissonfn", org.redisson.api.FunctionResult.VALUE, List.of(), "x"), "x");
      a.getFunction().delete("redissonlib");
    });
  }

  private void objects() {
    checks.check("features", "RBucket: compareAndSet, conditions, times; RBuckets", () -> {
      RBucket<String> k = a.getBucket(P + "bucket");
      want(k.setIfAbsent("1", Duration.ofSeconds(50)), true);
      want(k.setIfAbsent("2"), false);
      want(k.compareAndSet("x", "y"), false);
      want(k.compareAndSet("1", "2"), true);
      want(k.getAndSet("3", Duration.ofSeconds(50)), "2");
      k.setAndKeepTTL("4");
      wantBetween(k.remainTimeToLive(), 40_000, 50_000, "ms to live");
      want(k.getAndClearExpire(), "4");
      want(k.remainTimeToLive(), -1L);
      want(k.expireIfNotSet(Duration.ofSeconds(30)), true);
      want(k.expireIfGreater(Duration.ofSeconds(20)), false);
      byte[] dump = k.dump();
      want(k.getAndDelete(), "4");
      k.restore(dump);
      want(k.get(), "4");
      want(a.getBuckets().trySet(Map.of(P + "b1", "1", P + "b2", "2")), true);
      want(a.getBuckets().trySet(Map.of(P + "b1", "x", P + "b3", "x")), false);
      want(b.getBuckets().<String>get(P + "b1", P + "b2", P + "b3"), Map.of(P + "b1", "1", P + "b2", "2"));
    });
    checks.check("features", "RBloomFilter, RHyperLogLog, RGeo, RBitSet, RTimeSeries, counters, RIdGenerator, RKeys", () -> {
      RBloomFilter<String> bloom = a.getBloomFilter(P + "bloom");
      want(bloom.tryInit(1000, 0.01), true);
      want(bloom.add("x"), true);
      want(bloom.contains("x"), true);
      want(bloom.contains("y"), false);
      want(a.<String>getHyperLogLog(P + "hll").addAll(List.of("a", "b", "a")), true);
      want(a.getHyperLogLog(P + "hll").count(), 2L);
      var geo = a.<String>getGeo(P + "geo");
      geo.add(13.361389, 38.115556, "Palermo");
      geo.add(15.087269, 37.502669, "Catania");
      want(geo.dist("Palermo", "Catania", org.redisson.api.geo.GeoUnit.KILOMETERS).intValue(), 166);
      want(geo.search(org.redisson.api.geo.GeoSearchArgs.from(15, 37).radius(100, org.redisson.api.geo.GeoUnit.KILOMETERS)), List.of("Catania"));
      var bits = a.getBitSet(P + "bits");
      bits.set(3);
      bits.set(10, 20);
      want(bits.cardinality(), 11L);
      want(bits.length(), 20L);
      var series = a.<String, String>getTimeSeries(P + "series");
      series.add(100, "a");
      series.add(200, "b", Duration.ofMillis(150));
      want(List.copyOf(series.range(0, 300)), List.of("a", "b"));
      eventually("the end of an entry", () -> series.size() == 1);
      want(a.getAtomicDouble(P + "double").addAndGet(1.5), 1.5);
      var adder = a.getLongAdder(P + "adder");
      adder.add(5);
      b.getLongAdder(P + "adder").add(6);
      want(adder.sum(), 11L);
      var ids = a.getIdGenerator(P + "ids");
      want(ids.tryInit(10, 5), true);
      want(ids.nextId(), 10L);
      want(ids.nextId(), 11L);
      int keys = 0;
      for (String ignored : a.getKeys().getKeysByPattern(P + "b?")) {
        keys++;
      }
      want(keys, 2);
      want(a.getKeys().deleteByPattern(P + "b?"), 2L);
    });
  }

  private void cluster() {
    checks.check("features", "a cluster: locks, maps, sharded topics, batches over slots", () -> {
      Config config = RedissonClients.config(Protocol.RESP3);
      config.useClusterServers().addNodeAddress("redis://127.0.0.1:" + servers.clustered).setMasterConnectionMinimumIdleSize(1)
          .setSlaveConnectionMinimumIdleSize(1);
      RedissonClient r = Redisson.create(config);
      r.getMap(P + "m").put("k", "v");
      want(r.getMap(P + "m").get("k"), "v");
      want(r.getLock(P + "l").tryLock(1, 10, TimeUnit.SECONDS), true);
      r.getLock(P + "l").unlock();
      RBatch batch = r.createBatch();
      for (int i = 0; i < 100; i++) {
        batch.getBucket(P + i).setAsync("v" + i);
      }
      want(batch.execute().getResponses().size(), 100);
      ConcurrentLinkedQueue<String> heard = new ConcurrentLinkedQueue<>();
      r.getShardedTopic(P + "s").addListener(String.class, (channel, m) -> heard.add(m));
      want(r.getShardedTopic(P + "s").publish("hello"), 1L);
      eventually("the message", () -> heard.contains("hello"));
      want(r.getKeys().getSlot(P + "m") >= 0, true);
      r.shutdown();
    });
  }
}
