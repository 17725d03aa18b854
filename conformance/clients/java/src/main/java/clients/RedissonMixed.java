// One Redisson limiter that Redisson and RL.* take from at random, beside another that only Redisson takes from: they must decide
// alike. Its seed is in what a failure says; LIMITKV_SEED runs it again.
package clients;

import static clients.Checks.wantTrue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.redisson.api.RRateLimiter;
import org.redisson.api.RateType;
import org.redisson.api.RedissonClient;
import org.redisson.api.ratelimiter.RateLimiterArgs;
import org.redisson.client.RedisException;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Protocol;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.exceptions.JedisDataException;

final class RedissonMixed {
  /** Calls in a window that does not pass meanwhile. */
  private static final int CALLS = 1500;

  /** The windows that pass, of which so many calls are made each. */
  private static final int WINDOWS = 4, CALLS_IN_WINDOW = 8;

  private static final Duration LONG = Duration.ofHours(1), SHORT = Duration.ofSeconds(1);

  /** How far apart the ends of two keys may be that were renewed one after the other. */
  private static final long APART = 60_000;

  private final RedissonClient redisson;
  private final Jedis jedis;
  private final String name;
  private final RRateLimiter alone, mixed;
  private final Random random;
  private final List<String> did = new ArrayList<>();
  private int rate, granted, refused, natives;

  private RedissonMixed(RedissonClient redisson, Jedis jedis, String name, long seed) {
    this.redisson = redisson;
    this.jedis = jedis;
    this.name = name;
    alone = redisson.getRateLimiter(name + ":alone");
    mixed = redisson.getRateLimiter(name + ":mixed");
    random = new Random(seed);
  }

  static void run(Servers servers) throws Exception {
    Checks checks = new Checks("Redisson", "org.redisson", "redisson");
    RedissonClient redisson = RedissonClients.open(servers, Protocol.RESP2);
    checks.check("features", "RRateLimiter and RL.*, mixed on one limiter, decide as RRateLimiter alone", () -> {
      try (Jedis jedis = new Jedis("127.0.0.1", servers.plain)) {
        seeded(seed -> new RedissonMixed(redisson, jedis, "redisson:mix", seed).inOneWindow());
      }
    });
    checks.check("features", "RRateLimiter and RL.*, mixed on one limiter, while windows pass", () -> {
      try (Jedis jedis = new Jedis("127.0.0.1", servers.plain)) {
        seeded(seed -> new RedissonMixed(redisson, jedis, "redisson:slide", seed).whileWindowsPass());
      }
    });
    redisson.shutdown();
  }

  private interface Seeded {
    void run(long seed) throws Exception;
  }

  private static void seeded(Seeded body) throws Exception {
    String given = System.getenv("LIMITKV_SEED");
    long seed = given == null ? System.nanoTime() : Long.parseLong(given);
    try {
      body.run(seed);
    } catch (Exception | AssertionError e) {
      throw new AssertionError("LIMITKV_SEED=" + seed + ": " + e.getMessage(), e);
    }
  }

  private void inOneWindow() {
    setRate(LONG);
    for (int i = 0; i < CALLS; i++) {
      switch (random.nextInt(24)) {
        case 0 -> setRate(LONG);
        case 1 -> updateRate();
        case 2 -> {
          did.add("the values are evicted");
          for (String key : List.of("alone", "mixed")) {
            redisson.getBucket("{" + name + ":" + key + "}:value", StringCodec.INSTANCE).delete();
          }
        }
        case 3 -> {
          Duration end = Duration.ofMinutes(60 + random.nextInt(600));
          did.add("both end after " + end);
          alone.expire(end);
          mixed.expire(end);
        }
        case 4 -> {
          did.add("neither ends");
          alone.clearExpire();
          mixed.clearExpire();
        }
        case 5, 6, 7, 8 -> release(1 + random.nextInt(rate));
        default -> acquire();
      }
      compare();
    }
    wantTrue(granted > CALLS / 20 && refused > CALLS / 20 && natives > CALLS / 5,
        granted + " were granted, " + refused + " refused, " + natives + " called RL.*");
  }

  /** Windows that pass between calls and not among them: where the machine stood still, the calls do not count. */
  private void whileWindowsPass() throws InterruptedException {
    for (int passed = 0; passed < WINDOWS;) {
      did.clear();
      setRate(SHORT);
      boolean counts = true;
      for (int window = 0; window < 2 && counts; window++) {
        long began = System.nanoTime();
        List<String> wrong = new ArrayList<>();
        try {
          for (int i = 0; i < CALLS_IN_WINDOW; i++) {
            if (random.nextInt(4) == 0) {
              release(1 + random.nextInt(rate));
            } else {
              acquire();
            }
            compare();
          }
        } catch (AssertionError e) {
          wrong.add(e.getMessage());
        }
        counts = System.nanoTime() - began < SHORT.toNanos() * 3 / 4;
        wantTrue(!counts || wrong.isEmpty(), wrong + "");
        Thread.sleep(SHORT.toMillis() + 10);
        did.add("a window passes");
      }
      if (counts) {
        passed++;
      }
    }
    wantTrue(granted > 0 && natives > 0, granted + " were granted, " + natives + " called RL.*");
  }

  /** A new rate, by which the limiters begin anew; every other one keeps its keys alive for a time of its own. */
  private void setRate(Duration window) {
    rate = 1 + random.nextInt(20);
    RateLimiterArgs args = args(window);
    did.add("rate " + rate);
    alone.setRate(args);
    mixed.setRate(args);
  }

  private void updateRate() {
    rate = 1 + random.nextInt(20);
    RateLimiterArgs args = args(LONG).keepState(true);
    did.add("rate " + rate + ", with what is taken");
    alone.updateRate(args);
    mixed.updateRate(args);
  }

  private RateLimiterArgs args(Duration window) {
    RateLimiterArgs args = RateLimiterArgs.of(RateType.OVERALL, rate, window);
    return random.nextBoolean() ? args : args.keepAliveTime(Duration.ofHours(2 + random.nextInt(9)));
  }

  private void acquire() {
    int n = 1 + random.nextInt(random.nextBoolean() ? rate + 1 : Math.min(3, rate));
    String want = redissons(alone, n), got;
    if (random.nextBoolean()) {
      got = redissons(mixed, n);
      did.add("RRateLimiter takes " + n + ": " + got + ", alone " + want);
    } else {
      natives++;
      String command = random.nextBoolean() ? "RL.ACQUIRE" : "RL.MACQUIRE";
      got = natives(command, n);
      did.add(command + " takes " + n + ": " + got + ", alone " + want);
    }
    same(got, want);
    if (want.equals("granted")) {
      granted++;
    } else if (want.equals("refused")) {
      refused++;
    }
  }

  private static String redissons(RRateLimiter limiter, int n) {
    try {
      return limiter.tryAcquire(n) ? "granted" : "refused";
    } catch (RedisException e) {
      return "error";
    }
  }

  private String natives(String command, int n) {
    try {
      Object reply = command.equals("RL.ACQUIRE") ? send(command, name + ":mixed", "" + n) : send(command, "1", name + ":mixed", "" + n);
      for (Object first = reply;; first = ((List<?>) first).get(0)) {
        if (first instanceof Long limited) {
          return limited == 0 ? "granted" : "refused";
        }
      }
    } catch (JedisDataException e) {
      return "error";
    }
  }

  private void release(int n) {
    alone.release(n);
    if (random.nextBoolean()) {
      natives++;
      did.add("RL.RELEASE " + n);
      send("RL.RELEASE", name + ":mixed", "" + n);
    } else {
      did.add("RRateLimiter gives back " + n);
      mixed.release(n);
    }
  }

  private void compare() {
    same(mixed.availablePermits(), alone.availablePermits());
    for (String key : List.of("%s", "{%s}:value", "{%s}:permits")) {
      long got = jedis.pttl(String.format(key, name + ":mixed")), want = jedis.pttl(String.format(key, name + ":alone"));
      if (Math.abs(got - want) > APART || Math.min(got, want) < 0 && got != want) {
        throw new AssertionError(key + " ends in " + got + " ms, alone in " + want + ", after " + last());
      }
    }
  }

  private Object send(String command, String... arguments) {
    return jedis.sendCommand(command::getBytes, arguments);
  }

  private void same(Object got, Object want) {
    if (!got.equals(want)) {
      throw new AssertionError(got + ", alone " + want + ", after " + last());
    }
  }

  private String last() {
    return String.join("; ", did.subList(Math.max(0, did.size() - 30), did.size()));
  }
}
