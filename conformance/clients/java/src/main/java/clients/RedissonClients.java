// Redisson's connections, and the objects of it that scripts in the server carry: locks, semaphores, queues.
package clients;

import static clients.Checks.eventually;
import static clients.Checks.want;
import static clients.Checks.wantThrown;
import static clients.Checks.wantTrue;

import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.redisson.Redisson;
import org.redisson.api.RBatch;
import org.redisson.api.RBlockingQueue;
import org.redisson.api.RDelayedQueue;
import org.redisson.api.RFuture;
import org.redisson.api.RLock;
import org.redisson.api.RScript;
import org.redisson.api.RSemaphore;
import org.redisson.api.RedissonClient;
import org.redisson.client.RedisException;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Config;
import org.redisson.config.Protocol;
import org.redisson.config.SingleServerConfig;
import org.redisson.config.TransportMode;

final class RedissonClients {
  private RedissonClients() {}

  static Config config(Protocol protocol) {
    return new Config().setThreads(4).setNettyThreads(4).setProtocol(protocol);
  }

  static RedissonClient open(Servers servers, Protocol protocol) {
    return open(config(protocol), "redis://127.0.0.1:" + servers.plain);
  }

  /** For replies that this client itself takes seconds to read. */
  static RedissonClient patient(Servers servers, Protocol protocol) {
    Config config = config(protocol);
    config.useSingleServer().setTimeout(20_000);
    return open(config, "redis://127.0.0.1:" + servers.plain);
  }

  static RedissonClient open(Config config, String address) {
    config.useSingleServer().setAddress(address).setConnectionMinimumIdleSize(2).setConnectionPoolSize(32).setRetryAttempts(0);
    return Redisson.create(config);
  }

  private static RedissonClient open(Servers servers, Ways w, Protocol protocol) throws Exception {
    Config config = config(protocol);
    SingleServerConfig server = config.useSingleServer().setUsername(w.user()).setPassword(w.password());
    if (w.tls()) {
      server.setSslTruststore(servers.trust.toUri().toURL()).setSslTruststorePassword(Servers.TRUST_PASSWORD);
    }
    if (w.certified()) {
      server.setSslKeystore(servers.own.toUri().toURL()).setSslKeystorePassword(Servers.TRUST_PASSWORD);
    }
    if (w.unix()) {
      config.setTransportMode(TransportMode.EPOLL);
      return open(config, "redis+uds://" + servers.socket);
    }
    return open(config, (w.tls() ? "rediss://" : "redis://") + "127.0.0.1:" + w.port());
  }

  static void run(Servers servers) throws Exception {
    Checks checks = new Checks("Redisson", "org.redisson", "redisson");
    Ways.check(checks, servers, "", true, new int[] {2, 3}, (w, protocol) -> {
      RedissonClient r = open(servers, w, protocol == 2 ? Protocol.RESP2 : Protocol.RESP3);
      try {
        r.getBucket("redisson:way").set("v");
        want(r.getBucket("redisson:way").get(), "v");
        want(r.getLock("redisson:waylock").tryLock(), true);
        r.getLock("redisson:waylock").unlock();
      } finally {
        r.shutdown(0, 2, TimeUnit.SECONDS);
      }
    });
    for (Protocol p : Protocol.values()) {
      RedissonClient r = open(servers, p);
      objects(checks, r, p);
      r.shutdown();
    }
  }

  private static void objects(Checks checks, RedissonClient r, Protocol p) {
    String in = ", " + p, key = "redisson:" + p + ":";
    checks.check(p == Protocol.RESP3 ? "resp3" : "connect", "buckets, maps, scored sets" + in, () -> {
      r.getBucket(key + "b").set("v");
      want(r.getBucket(key + "b").get(), "v");
      want(r.getMap(key + "m").put("f", 1), null);
      want(r.getMap(key + "m").get("f"), 1);
      want(r.getScoredSortedSet(key + "z").add(2.5, "a"), true);
      want(r.getScoredSortedSet(key + "z").getScore("a"), 2.5);
    });
    checks.check("pipeline", "RBatch of 200" + in, () -> {
      RBatch batch = r.createBatch();
      RFuture<Long> last = null;
      for (int i = 0; i < 200; i++) {
        last = batch.getAtomicLong(key + "batch").incrementAndGetAsync();
      }
      want(batch.execute().getResponses().size(), 200);
      want(last.get(), 200L);
    });
    checks.check("script", "RScript: load, evalSha" + in, () -> {
      RScript script = r.getScript(StringCodec.INSTANCE);
      String text = "return redis.call('incrby', KEYS[1], ARGV[1]) -- " + System.nanoTime();
      String sha = Scripts.sha1(text);
      wantThrown(RedisException.class, () -> script.evalSha(RScript.Mode.READ_WRITE, sha, RScript.ReturnType.LONG,
          List.of(key + "s"), "5"));
      want(script.scriptLoad(text), sha);
      want(script.<Long>evalSha(RScript.Mode.READ_WRITE, sha, RScript.ReturnType.LONG, List.of(key + "s"), "5"), 5L);
    });
    checks.check("pubsub", "RTopic" + in, () -> {
      AtomicReference<String> got = new AtomicReference<>();
      r.getTopic(key + "t").addListener(String.class, (channel, message) -> got.set(channel + "=" + message));
      want(r.getTopic(key + "t").publish("hello"), 1L);
      eventually("the message", () -> (key + "t=hello").equals(got.get()));
    });
    checks.check("features", "RLock and RFairLock of 8 threads" + in, () -> {
      for (RLock lock : List.of(r.getLock(key + "lock"), r.getFairLock(key + "fair"))) {
        int[] count = {0};
        RedissonLimiter.inThreads(8, () -> {
          lock.lock();
          try {
            int n = count[0];
            Thread.yield();
            count[0] = n + 1;
          } finally {
            lock.unlock();
          }
        });
        want(count[0], 8);
        want(lock.isLocked(), false);
        lock.lock();
        wantTrue(lock.remainTimeToLive() > 20_000, "the watchdog's lease is 30 s");
        want(lock.isHeldByCurrentThread(), true);
        lock.unlock();
      }
    });
    checks.check("features", "RSemaphore, RPermitExpirableSemaphore" + in, () -> {
      RSemaphore s = r.getSemaphore(key + "sem");
      want(s.trySetPermits(2), true);
      want(s.tryAcquire(2), true);
      want(s.tryAcquire(), false);
      s.release();
      want(s.availablePermits(), 1);
      var e = r.getPermitExpirableSemaphore(key + "pes");
      want(e.trySetPermits(1), true);
      wantTrue(e.tryAcquire(0, 300, TimeUnit.MILLISECONDS) != null, "the permit");
      want(e.tryAcquire(), null);
      wantTrue(e.tryAcquire(3, 10, TimeUnit.SECONDS) != null, "the permit whose lease is over");
    });
    checks.check("blocking", "RDelayedQueue hands over when it is due" + in, () -> {
      RBlockingQueue<String> queue = r.getBlockingQueue(key + "q");
      RDelayedQueue<String> delayed = r.getDelayedQueue(queue);
      delayed.offer("late", 300, TimeUnit.MILLISECONDS);
      want(queue.poll(), null);
      want(queue.poll(5, TimeUnit.SECONDS), "late");
      delayed.destroy();
    });
    checks.check("features", "RMapCache: an entry expires" + in, () -> {
      var cache = r.<String, String>getMapCache(key + "cache");
      want(cache.put("a", "1", 200, TimeUnit.MILLISECONDS), null);
      want(cache.put("b", "2"), null);
      want(cache.get("a"), "1");
      eventually("a is gone", () -> cache.get("a") == null);
      want(cache.get("b"), "2");
    });
  }
}
