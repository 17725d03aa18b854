// Lettuce: its synchronous, asynchronous and reactive faces, over RESP2 and RESP3.
package clients;

import static clients.Checks.eventually;
import static clients.Checks.want;
import static clients.Checks.wantThrown;
import static clients.Checks.wantTrue;

import io.lettuce.core.ClientOptions;
import io.lettuce.core.KeyValue;
import io.lettuce.core.LettuceVersion;
import io.lettuce.core.Limit;
import io.lettuce.core.Range;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisNoScriptException;
import io.lettuce.core.RedisURI;
import io.lettuce.core.ScanArgs;
import io.lettuce.core.ScanIterator;
import io.lettuce.core.ScriptOutputType;
import io.lettuce.core.SetArgs;
import io.lettuce.core.SslOptions;
import io.lettuce.core.StreamMessage;
import io.lettuce.core.TrackingArgs;
import io.lettuce.core.TransactionResult;
import io.lettuce.core.XReadArgs;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.async.RedisAsyncCommands;
import io.lettuce.core.api.sync.RedisCommands;
import io.lettuce.core.protocol.ProtocolVersion;
import io.lettuce.core.pubsub.RedisPubSubAdapter;
import io.lettuce.core.pubsub.StatefulRedisPubSubConnection;
import io.lettuce.core.support.caching.CacheAccessor;
import io.lettuce.core.support.caching.CacheFrontend;
import io.lettuce.core.support.caching.ClientSideCaching;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;

final class LettuceClient {
  private final Servers servers;
  private final Checks checks;

  private LettuceClient(Servers servers) {
    this.servers = servers;
    this.checks = new Checks("Lettuce", LettuceVersion.getVersion().split("/")[0]);
  }

  static void run(Servers servers) {
    LettuceClient c = new LettuceClient(servers);
    c.connections();
    c.protocol(ProtocolVersion.RESP2, "connect", "RESP2");
    c.protocol(ProtocolVersion.RESP3, "resp3", "RESP3");
  }

  private interface Use {
    void of(RedisClient client) throws Exception;
  }

  /** Runs the body with a client, which is shut down afterwards. */
  private static void using(RedisURI uri, ClientOptions options, Use body) throws Exception {
    RedisClient client = RedisClient.create(uri);
    client.setOptions(options);
    try {
      body.of(client);
    } finally {
      client.shutdown(0, 2, TimeUnit.SECONDS);
    }
  }

  private RedisURI.Builder uri(int port) {
    return RedisURI.builder().withHost("127.0.0.1").withPort(port).withTimeout(Duration.ofSeconds(10));
  }

  private void connections() {
    Ways.check(checks, servers, "", true, new int[] {2, 3}, (w, protocol) -> {
      RedisURI.Builder uri = w.unix() ? RedisURI.Builder.socket(servers.socket.toString()) : uri(w.port()).withSsl(w.tls()).withVerifyPeer(w.tls());
      if (w.user() != null) {
        uri.withAuthentication(w.user(), w.password().toCharArray());
      } else if (w.password() != null) {
        uri.withPassword(w.password().toCharArray());
      }
      SslOptions.Builder ssl = SslOptions.builder().jdkSslProvider().truststore(servers.trust.toFile(), Servers.TRUST_PASSWORD);
      if (w.certified()) {
        ssl.keystore(servers.own.toFile(), Servers.TRUST_PASSWORD.toCharArray());
      }
      ClientOptions options = ClientOptions.builder().sslOptions(ssl.build()).autoReconnect(false)
          .protocolVersion(protocol == 2 ? ProtocolVersion.RESP2 : ProtocolVersion.RESP3).build();
      using(uri.build(), options, client -> {
        RedisCommands<String, String> r = client.connect().sync();
        want(r.set("lettuce:way", "v"), "OK");
        want(r.get("lettuce:way"), "v");
      });
    });
  }

  private void protocol(ProtocolVersion version, String area, String name) {
    ClientOptions options = ClientOptions.builder().protocolVersion(version).build();
    String p = "lettuce:" + name + ":";
    check(area, name + ": set, get, hash, sorted set", options, client -> {
      RedisCommands<String, String> r = client.connect().sync();
      wantTrue(r.clientInfo().contains(" resp=" + name.charAt(4) + " "), r.clientInfo());
      want(r.set(p + "k", "v", SetArgs.Builder.ex(60)), "OK");
      want(r.get(p + "k"), "v");
      r.hset(p + "h", Map.of("a", "1", "b", "two"));
      want(r.hgetall(p + "h"), Map.of("a", "1", "b", "two"));
      r.zadd(p + "z", 1.5, "m");
      r.zadd(p + "z", 2, "n");
      want(r.zscore(p + "z", "m"), 1.5);
      want(r.zrangebyscore(p + "z", Range.create(0, 3), Limit.from(1)), List.of("m"));
    });
    check("pipeline", name + ": 1000 asynchronous commands", options, client -> {
      RedisAsyncCommands<String, String> r = client.connect().async();
      List<RedisFuture<Long>> all = new ArrayList<>();
      for (int i = 0; i < 1000; i++) {
        all.add(r.incr(p + "n"));
      }
      want(all.get(999).get(10, TimeUnit.SECONDS), 1000L);
    });
    check("pipeline", name + ": 100,000 asynchronous commands", options, client -> {
      RedisAsyncCommands<String, String> r = client.connect().async();
      r.set(p + "many", "v".repeat(40)).get(10, TimeUnit.SECONDS);
      r.setAutoFlushCommands(false);
      RedisFuture<String> last = null;
      for (int i = 0; i < 100_000; i++) {
        last = r.get(p + "many");
      }
      r.flushCommands();
      want(last.get(30, TimeUnit.SECONDS), "v".repeat(40));
    });
    check("pipeline", name + ": reactive", options, client ->
        want(client.connect().reactive().set(p + "r", "x").then(client.connect().reactive().get(p + "r")).block(), "x"));
    check("transaction", name + ": MULTI, and a watched key that changes", options, client -> {
      RedisCommands<String, String> r = client.connect().sync(), other = client.connect().sync();
      r.multi();
      r.set(p + "t", "1");
      r.incr(p + "t");
      TransactionResult done = r.exec();
      want(done.get(1), 2L);
      r.watch(p + "t");
      other.set(p + "t", "5");
      r.multi();
      r.incr(p + "t");
      wantTrue(r.exec().wasDiscarded(), "the transaction was not discarded");
    });
    check("script", name + ": EVALSHA, NOSCRIPT, EVAL", options, client -> {
      RedisCommands<String, String> r = client.connect().sync();
      String script = "return redis.call('INCRBY', KEYS[1], ARGV[1]) -- " + name;
      String[] keys = {p + "s"};
      wantThrown(RedisNoScriptException.class, () -> r.evalsha(r.digest(script), ScriptOutputType.INTEGER, keys, "5"));
      want(r.eval(script, ScriptOutputType.INTEGER, keys, "5"), 5L);
      want(r.evalsha(Scripts.sha1(script), ScriptOutputType.INTEGER, keys, "5"), 10L);
    });
    check("pubsub", name + ": channel and pattern", options, client -> {
      ConcurrentLinkedQueue<String> got = new ConcurrentLinkedQueue<>();
      StatefulRedisPubSubConnection<String, String> sub = client.connectPubSub();
      sub.addListener(new RedisPubSubAdapter<>() {
        @Override
        public void message(String channel, String message) {
          got.add(channel + "=" + message);
        }

        @Override
        public void message(String pattern, String channel, String message) {
          got.add(pattern + "=" + message);
        }
      });
      sub.sync().subscribe(p + "direct");
      sub.sync().psubscribe(p + "news.*");
      RedisCommands<String, String> r = client.connect().sync();
      r.publish(p + "direct", "one");
      r.publish(p + "news.java", "two");
      eventually("two messages", () -> got.size() == 2);
      want(List.copyOf(got), List.of(p + "direct=one", p + "news.*=two"));
    });
    check("pubsub", name + ": sharded channel, reactive, keyspace events", options, client -> {
      ConcurrentLinkedQueue<String> got = new ConcurrentLinkedQueue<>();
      StatefulRedisPubSubConnection<String, String> sub = client.connectPubSub();
      sub.reactive().observePatterns().doOnNext(m -> got.add(m.getChannel() + "=" + m.getMessage())).subscribe();
      sub.reactive().observeChannels().doOnNext(m -> got.add(m.getChannel() + "=" + m.getMessage())).subscribe();
      sub.sync().psubscribe("__keyevent@0__:*");
      sub.sync().subscribe(p + "reactive");
      RedisCommands<String, String> r = client.connect().sync();
      r.publish(p + "reactive", "one");
      r.psetex(p + "event", 50, "v");
      r.hset(p + "events", Map.of("a", "1", "b", "2"));
      r.hpexpire(p + "events", 50, "a");
      List<String> wanted = List.of(p + "reactive=one", "__keyevent@0__:expired=" + p + "event", "__keyevent@0__:hexpired=" + p + "events");
      eventually("the messages", () -> got.containsAll(wanted));
    });
    check("blocking", name + ": BLPOP, BZPOPMIN and XREAD wake, BRPOP times out", options, client -> {
      RedisCommands<String, String> r = client.connect().sync();
      RedisAsyncCommands<String, String> a = client.connect().async(), b = client.connect().async(), c = client.connect().async();
      RedisFuture<KeyValue<String, String>> list = a.blpop(5, p + "list");
      var zset = b.bzpopmin(5, p + "zs");
      RedisFuture<List<StreamMessage<String, String>>> stream =
          c.xread(XReadArgs.Builder.block(Duration.ofSeconds(5)), XReadArgs.StreamOffset.from(p + "x", "0"));
      Thread.sleep(50);
      r.rpush(p + "list", "a");
      r.zadd(p + "zs", 1, "b");
      r.xadd(p + "x", Map.of("f", "c"));
      want(list.get().getValue(), "a");
      want(zset.get().getValue().getValue(), "b");
      want(stream.get().get(0).getBody(), Map.of("f", "c"));
      want(r.brpop(0.05, p + "nothing"), null);
    });
    check("features", name + ": ScanIterator", options, client -> {
      RedisCommands<String, String> r = client.connect().sync();
      for (int i = 0; i < 300; i++) {
        r.set(p + "scan:" + i, "");
      }
      Set<String> seen = new HashSet<>();
      ScanIterator.scan(r, ScanArgs.Builder.limit(50).match(p + "scan:*")).forEachRemaining(seen::add);
      want(seen.size(), 300);
    });
    if (version == ProtocolVersion.RESP3) {
      check("features", "client-side caching is invalidated", options, client -> {
        StatefulRedisConnection<String, String> cached = client.connect();
        RedisCommands<String, String> other = client.connect().sync();
        other.set(p + "cached", "one");
        Map<String, String> near = new ConcurrentHashMap<>();
        CacheFrontend<String, String> cache =
            ClientSideCaching.enable(CacheAccessor.forMap(near), cached, TrackingArgs.Builder.enabled());
        want(cache.get(p + "cached"), "one");
        want(near.get(p + "cached"), "one");
        other.set(p + "cached", "two");
        eventually("the invalidation", () -> !near.containsKey(p + "cached"));
        want(cache.get(p + "cached"), "two");
      });
    }
  }

  private void check(String area, String name, ClientOptions options, Use body) {
    checks.check(area, name, () -> using(uri(servers.plain).build(), options, body));
  }
}
