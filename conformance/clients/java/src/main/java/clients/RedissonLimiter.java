// Redisson's rate limiter, as the articles use it. It has a thread of its own, since 20 permits at one a second take 19 s.
package clients;

import static clients.Checks.millis;
import static clients.Checks.want;
import static clients.Checks.wantBetween;
import static clients.Checks.wantThrown;
import static clients.Checks.wantTrue;

import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.redisson.api.RRateLimiter;
import org.redisson.api.RScript;
import org.redisson.api.RateType;
import org.redisson.api.RedissonClient;
import org.redisson.client.RedisException;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Protocol;

final class RedissonLimiter {
  private RedissonLimiter() {}

  static void run(Servers servers) throws Exception {
    Checks checks = new Checks("Redisson", "org.redisson", "redisson");
    RedissonClient redisson = RedissonClients.open(servers, Protocol.RESP2);
    checks.check("features", "RRateLimiter: 10 a minute let exactly 10 in", () -> {
      RRateLimiter limiter = redisson.getRateLimiter("redisson:minute");
      want(limiter.trySetRate(RateType.OVERALL, 10, Duration.ofMinutes(1)), true);
      want(limiter.trySetRate(RateType.OVERALL, 99, Duration.ofMinutes(1)), false);
      want(limiter.availablePermits(), 10L);
      AtomicInteger granted = new AtomicInteger();
      inThreads(20, () -> {
        if (limiter.tryAcquire()) {
          granted.incrementAndGet();
        }
      });
      want(granted.get(), 10);
      want(limiter.availablePermits(), 0L);
      want(limiter.getConfig().getRate(), 10L);
    });
    checks.check("features", "RRateLimiter: setRate, release, expire", () -> {
      RRateLimiter limiter = redisson.getRateLimiter("redisson:release");
      limiter.setRate(RateType.OVERALL, 3, Duration.ofMinutes(1));
      want(limiter.tryAcquire(3), true);
      want(limiter.tryAcquire(), false);
      limiter.release(2);
      want(limiter.availablePermits(), 2L);
      want(limiter.tryAcquire(2), true);
      limiter.setRate(RateType.OVERALL, 5, Duration.ofMinutes(1));
      want(limiter.availablePermits(), 5L);
      want(limiter.expire(Duration.ofSeconds(50)), true);
      wantBetween(limiter.remainTimeToLive(), 40_000, 50_000, "ms to live");
    });
    checks.check("features", "RRateLimiter: tryAcquire waits for a permit, no longer than its time", () -> {
      RRateLimiter limiter = redisson.getRateLimiter("redisson:wait");
      limiter.trySetRate(RateType.OVERALL, 1, Duration.ofSeconds(1));
      want(limiter.tryAcquire(), true);
      wantTrue(millis(() -> want(limiter.tryAcquire(Duration.ofMillis(100)), false)) < 900, "it gives up before the permit");
      want(limiter.tryAcquire(Duration.ofSeconds(3)), true);
    });
    checks.check("features", "RRateLimiter: a rate for each client; a limiter that is not used ends", () -> {
      RedissonClient other = RedissonClients.open(servers, Protocol.RESP3);
      RRateLimiter one = redisson.getRateLimiter("redisson:each"), two = other.getRateLimiter("redisson:each");
      want(one.trySetRate(RateType.PER_CLIENT, 2, Duration.ofMinutes(1)), true);
      for (RRateLimiter limiter : List.of(one, two)) {
        want(limiter.tryAcquire(2), true);
        want(limiter.tryAcquire(), false);
      }
      want(one.getConfig().getRateType(), RateType.PER_CLIENT);
      RRateLimiter ends = redisson.getRateLimiter("redisson:ends");
      want(ends.trySetRate(RateType.OVERALL, 5, Duration.ofMillis(100), Duration.ofMillis(200)), true);
      want(ends.tryAcquire(), true);
      Checks.eventually("the end of the limiter", () -> !ends.isExists());
      want(ends.trySetRate(RateType.OVERALL, 1, Duration.ofSeconds(1)), true);
      want(one.delete(), true);
      wantThrown(RedisException.class, () -> one.tryAcquire());
      other.shutdown();
    });
    checks.check("script", "RScript: a sliding window lets 10 of 8 threads' 80 in, and 10 more once it has slid", () -> {
      String window;
      try (InputStream in = RedissonLimiter.class.getResourceAsStream("/window.lua")) {
        window = new String(in.readAllBytes(), StandardCharsets.UTF_8);
      }
      RScript script = redisson.getScript(StringCodec.INSTANCE);
      String sha = script.scriptLoad(window);
      for (int round = 0; round < 2; round++) {
        AtomicInteger in = new AtomicInteger(), number = new AtomicInteger(1000 * round);
        inThreads(8, () -> {
          for (int i = 0; i < 10; i++) {
            Long one = script.evalSha(RScript.Mode.READ_WRITE, sha, RScript.ReturnType.LONG, List.of("redisson:window"),
                System.currentTimeMillis(), 3000, 10, number.incrementAndGet());
            in.addAndGet(one.intValue());
          }
        });
        want(in.get(), 10);
        Thread.sleep(3100);
      }
    });
    checks.check("features", "RRateLimiter: 20 threads, 1 permit a second, 19 s", () -> {
      RRateLimiter limiter = redisson.getRateLimiter("redisson:second");
      limiter.trySetRate(RateType.OVERALL, 1, Duration.ofSeconds(1));
      wantBetween(millis(() -> inThreads(20, limiter::acquire)), 18_900, 60_000, "ms for 20 permits");
    });
    redisson.shutdown();
  }

  /** Runs the body in n threads at once, to the end of all. */
  static void inThreads(int n, Runnable body) throws InterruptedException {
    List<Thread> threads = new ArrayList<>();
    for (int i = 0; i < n; i++) {
      Thread t = new Thread(body);
      threads.add(t);
      t.start();
    }
    for (Thread t : threads) {
      t.join();
    }
  }
}
