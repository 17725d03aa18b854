// Spring Data Redis, as its users have it: a RedisTemplate with a script from a file, over Lettuce and over Jedis.
package clients;

import static clients.Checks.eventually;
import static clients.Checks.want;
import static clients.Checks.wantTrue;

import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.springframework.beans.factory.DisposableBean;
import org.springframework.core.io.ClassPathResource;
import org.springframework.data.redis.connection.RedisConnectionFactory;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.stream.StreamRecords;
import org.springframework.data.redis.core.RedisCallback;
import org.springframework.data.redis.core.RedisOperations;
import org.springframework.data.redis.core.SessionCallback;
import org.springframework.data.redis.core.StringRedisTemplate;
import org.springframework.data.redis.core.script.DefaultRedisScript;
import org.springframework.data.redis.listener.ChannelTopic;
import org.springframework.data.redis.listener.PatternTopic;
import org.springframework.data.redis.listener.RedisMessageListenerContainer;

final class SpringClient {
  private final Servers servers;
  private final Checks checks;
  private final String over;

  private SpringClient(Servers servers, String over) {
    this.servers = servers;
    this.over = over;
    this.checks = new Checks("Spring Data Redis", StringRedisTemplate.class.getPackage().getImplementationVersion());
  }

  static void run(Servers servers) {
    new SpringClient(servers, "Lettuce").all();
    new SpringClient(servers, "Jedis").all();
  }

  private RedisConnectionFactory factory(Ways w, int protocol) throws Exception {
    RedisStandaloneConfiguration at = new RedisStandaloneConfiguration("127.0.0.1", Math.max(1, w.port())); // none for a unix socket
    at.setUsername(w.user());
    at.setPassword(w.password());
    return over.equals("Lettuce") ? SpringFactories.lettuce(servers, at, w, protocol) : SpringFactories.jedis(servers, at, w, protocol);
  }

  private interface Use {
    void of(StringRedisTemplate template) throws Exception;
  }

  private void check(String area, String name, Use body) {
    checks.check(area, over + ": " + name, () -> using(Ways.of(servers).get(0), 3, body));
  }

  private void using(Ways way, int protocol, Use body) throws Exception {
    RedisConnectionFactory f = factory(way, protocol);
    try {
      StringRedisTemplate template = new StringRedisTemplate(f);
      body.of(template);
    } finally {
      ((DisposableBean) f).destroy();
    }
  }

  /** Runs the body by another thread, since a template's connection may be bound to its thread. */
  private static void elsewhere(Runnable body) {
    try {
      Thread t = new Thread(body);
      t.start();
      t.join();
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  private void all() {
    String p = "spring:" + over + ":";
    check("connect", "values, hashes, sorted sets", t -> {
      t.opsForValue().set(p + "k", "v", Duration.ofMinutes(1));
      want(t.opsForValue().get(p + "k"), "v");
      t.opsForHash().put(p + "h", "a", "1");
      want(t.opsForHash().entries(p + "h").toString(), "{a=1}");
      t.opsForZSet().add(p + "z", "m", 1.5);
      t.opsForZSet().add(p + "z", "n", 3);
      want(t.opsForZSet().rangeByScore(p + "z", 0, 2), Set.of("m"));
      wantTrue(t.getExpire(p + "k") > 50, "the key's time");
    });
    Ways.check(checks, servers, over + ": ", over.equals("Lettuce"), new int[] {2, 3}, (w, protocol) -> using(w, protocol, t -> {
      t.opsForValue().set(p + "way", "v");
      want(t.opsForValue().get(p + "way"), "v");
    }));
    // Not on the open server, where others rely on their scripts.
    checks.check("script", over + ": RedisScript from a file, SHA with NOSCRIPT fall-back", () -> using(Ways.of(servers).get(1), 3, t -> {
      DefaultRedisScript<Long> script = new DefaultRedisScript<>();
      script.setLocation(new ClassPathResource("limit.lua"));
      script.setResultType(Long.class);
      String key = p + "limit";
      long in = 0;
      for (int i = 0; i < 15; i++) {
        if (i == 7) { // as after a restart of the server
          t.execute((RedisCallback<Object>) c -> {
            c.scriptingCommands().scriptFlush();
            return null;
          });
        }
        in += t.execute(script, List.of(key), "10", "60000");
      }
      want(in, 10L);
    }));
    check("script", "a delay queue polled each 10 ms by 4 threads: each message once, none early", t -> {
      DefaultRedisScript<String> take = new DefaultRedisScript<>();
      take.setLocation(new ClassPathResource("due.lua"));
      take.setResultType(String.class);
      long start = System.currentTimeMillis() / 1000;
      for (int i = 0; i < 40; i++) {
        t.opsForZSet().add(p + "due", (start + i % 3) + ":" + i, start + i % 3);
      }
      ConcurrentLinkedQueue<String> got = new ConcurrentLinkedQueue<>(), early = new ConcurrentLinkedQueue<>();
      RedissonLimiter.inThreads(4, () -> {
        while (got.size() < 40) {
          long now = System.currentTimeMillis() / 1000;
          String message = t.execute(take, List.of(p + "due"), "" + now);
          if (message == null) {
            Checks.pause(10);
            continue;
          }
          got.add(message);
          if (Long.parseLong(message.split(":")[0]) > now) {
            early.add(message);
          }
        }
      });
      want(Set.copyOf(got).size(), 40);
      want(List.copyOf(early), List.of());
    });
    check("pipeline", "executePipelined", t -> {
      List<Object> replies = t.executePipelined((RedisCallback<Object>) c -> {
        for (int i = 0; i < 200; i++) {
          c.stringCommands().incr((p + "n").getBytes());
        }
        return null;
      });
      want(replies.get(199), 200L);
    });
    check("transaction", "SessionCallback: MULTI, WATCH", t -> {
      t.opsForValue().set(p + "t", "1");
      List<Object> done = t.execute(new SessionCallback<List<Object>>() {
        @Override
        @SuppressWarnings("unchecked")
        public <K, V> List<Object> execute(RedisOperations<K, V> o) {
          RedisOperations<String, String> r = (RedisOperations<String, String>) o;
          r.watch(p + "t");
          r.multi();
          r.opsForValue().increment(p + "t");
          r.opsForValue().get(p + "t");
          return r.exec();
        }
      });
      want(done, List.of(2L, "2"));
      List<Object> refused = t.execute(new SessionCallback<List<Object>>() {
        @Override
        @SuppressWarnings("unchecked")
        public <K, V> List<Object> execute(RedisOperations<K, V> o) {
          RedisOperations<String, String> r = (RedisOperations<String, String>) o;
          r.watch(p + "t");
          elsewhere(() -> t.opsForValue().set(p + "t", "other's"));
          r.multi();
          r.opsForValue().increment(p + "t");
          return r.exec();
        }
      });
      wantTrue(refused == null || refused.isEmpty(), "EXEC after another's write");
      want(t.opsForValue().get(p + "t"), "other's");
    });
    check("pubsub", "listener container: channel and pattern", t -> {
      ConcurrentLinkedQueue<String> got = new ConcurrentLinkedQueue<>();
      RedisMessageListenerContainer container = new RedisMessageListenerContainer();
      container.setConnectionFactory(t.getConnectionFactory());
      container.addMessageListener((m, pattern) -> got.add(new String(m.getBody())), new ChannelTopic(p + "direct"));
      container.addMessageListener((m, pattern) -> got.add(new String(m.getBody())), new PatternTopic(p + "news.*"));
      container.afterPropertiesSet();
      container.start();
      try {
        t.convertAndSend(p + "direct", "one");
        t.convertAndSend(p + "news.java", "two");
        eventually("two messages", () -> got.size() == 2);
        want(Set.copyOf(got), Set.of("one", "two"));
      } finally {
        container.destroy();
      }
    });
    check("blocking", "a list as a queue", t -> {
      Thread push = new Thread(() -> {
        try {
          Thread.sleep(50);
          using(Ways.of(servers).get(0), 2, other -> other.opsForList().rightPush(p + "list", "a"));
        } catch (Exception e) {
          throw new IllegalStateException(e);
        }
      });
      push.start();
      want(t.opsForList().leftPop(p + "list", Duration.ofSeconds(5)), "a");
      push.join();
      want(t.opsForList().leftPop(p + "nothing", Duration.ofSeconds(1)), null);
    });
    check("features", "streams, and RL.ACQUIRE by execute", t -> {
      t.opsForStream().add(StreamRecords.string(java.util.Map.of("f", "v")).withStreamKey(p + "x"));
      want(t.opsForStream().size(p + "x"), 1L);
      DefaultRedisScript<Long> acquire = new DefaultRedisScript<>("return redis.call('RL.ACQUIRE', KEYS[1], 1, 'GCRA', 1, 60000)[1]", Long.class);
      want(t.execute(acquire, List.of(p + "api")), 0L);
      want(t.execute(acquire, List.of(p + "api")), 1L);
    });
  }
}
