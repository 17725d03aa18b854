// What Spring's users build on its template: @Cacheable, containers that listen to streams and to keys that expire, sessions
// as Spring Session keeps them, repositories of objects by hash, the reactive template.
package clients;

import static clients.Checks.eventually;
import static clients.Checks.want;
import static clients.Checks.wantBetween;
import static clients.Checks.wantTrue;

import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import org.springframework.cache.CacheManager;
import org.springframework.cache.annotation.CacheEvict;
import org.springframework.cache.annotation.CachePut;
import org.springframework.cache.annotation.Cacheable;
import org.springframework.cache.annotation.EnableCaching;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.data.redis.cache.RedisCacheConfiguration;
import org.springframework.data.redis.cache.RedisCacheManager;
import org.springframework.data.redis.connection.Message;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.data.redis.connection.stream.Consumer;
import org.springframework.data.redis.connection.stream.MapRecord;
import org.springframework.data.redis.connection.stream.ReadOffset;
import org.springframework.data.redis.connection.stream.StreamOffset;
import org.springframework.data.redis.core.ReactiveStringRedisTemplate;
import org.springframework.data.redis.core.RedisTemplate;
import org.springframework.data.redis.core.ScanOptions;
import org.springframework.data.redis.core.StringRedisTemplate;
import org.springframework.data.redis.core.script.DefaultRedisScript;
import org.springframework.data.redis.listener.KeyExpirationEventMessageListener;
import org.springframework.data.redis.listener.RedisMessageListenerContainer;
import org.springframework.data.redis.stream.StreamMessageListenerContainer;
import org.springframework.data.redis.stream.StreamMessageListenerContainer.StreamMessageListenerContainerOptions;

final class SpringCaches {
  private static final String P = "spring:more:";

  private final Checks checks;
  private final LettuceConnectionFactory factory;
  private final StringRedisTemplate template;

  private SpringCaches(LettuceConnectionFactory factory) {
    checks = new Checks("Spring Data Redis", StringRedisTemplate.class.getPackage().getImplementationVersion());
    this.factory = factory;
    template = new StringRedisTemplate(factory);
  }

  static void run(Servers servers) {
    port = servers.plain;
    LettuceConnectionFactory factory = connect();
    factory.afterPropertiesSet();
    factory.start();
    SpringCaches s = new SpringCaches(factory);
    s.caches();
    s.containers();
    s.others();
    factory.destroy();
  }

  /** Spring makes the configuration itself, so it finds the server here. */
  private static int port;

  private static LettuceConnectionFactory connect() {
    return new LettuceConnectionFactory(new RedisStandaloneConfiguration("127.0.0.1", port));
  }

  /** A service whose answers are kept. */
  public static class Slow {
    private final AtomicInteger asked = new AtomicInteger();

    @Cacheable(cacheNames = "numbers")
    public String of(int n) {
      return "v" + n + " " + asked.incrementAndGet();
    }

    @CachePut(cacheNames = "numbers", key = "#p0")
    public String put(int n, String v) {
      return v;
    }

    @CacheEvict(cacheNames = "numbers", allEntries = true)
    public void forget() {
      asked.addAndGet(100);
    }
  }

  /** The application. */
  @Configuration
  @EnableCaching
  public static class Application {
    @Bean
    public LettuceConnectionFactory connections() {
      return connect();
    }

    @Bean
    public CacheManager caches(LettuceConnectionFactory connections) {
      RedisCacheConfiguration lasting = RedisCacheConfiguration.defaultCacheConfig().entryTtl(Duration.ofMinutes(5)).prefixCacheNameWith(P);
      return RedisCacheManager.builder(connections).cacheDefaults(lasting).enableStatistics()
          .withCacheConfiguration("brief", lasting.entryTtl(Duration.ofMillis(150))).build();
    }

    @Bean
    public Slow slow() {
      return new Slow();
    }
  }

  private void caches() {
    checks.check("features", "@Cacheable, @CachePut, @CacheEvict with a RedisCacheManager; times to live", () -> {
      try (AnnotationConfigApplicationContext context = new AnnotationConfigApplicationContext(Application.class)) {
        Slow slow = context.getBean(Slow.class);
        want(slow.of(1), "v1 1");
        want(slow.of(1), "v1 1");
        want(slow.of(2), "v2 2");
        want(slow.put(1, "put"), "put");
        want(slow.of(1), "put");
        wantBetween(template.getExpire(P + "numbers::1"), 250, 300, "seconds of an entry");
        slow.forget();
        want(slow.of(1), "v1 103");
        var brief = context.getBean(CacheManager.class).getCache("brief");
        want(brief.putIfAbsent("k", "v"), null);
        want(brief.get("k", String.class), "v");
        want(brief.putIfAbsent("k", "w").get(), "v");
        eventually("the end of the entry", () -> brief.get("k") == null);
        want(brief.get("k", () -> "loaded"), "loaded");
        brief.evict("k");
        want(brief.get("k"), null);
      }
    });
  }

  private void containers() {
    checks.check("features", "StreamMessageListenerContainer: a group's two consumers, acknowledged", () -> {
      String key = P + "stream";
      template.opsForStream().createGroup(key, "g");
      ConcurrentLinkedQueue<String> got = new ConcurrentLinkedQueue<>();
      var container = StreamMessageListenerContainer.create(factory,
          StreamMessageListenerContainerOptions.<String, MapRecord<String, String, String>>builder().pollTimeout(Duration.ofMillis(500)).batchSize(5).build());
      for (String name : List.of("one", "two")) {
        container.receive(Consumer.from("g", name), StreamOffset.create(key, ReadOffset.lastConsumed()), m -> {
          got.add(m.getValue().get("n"));
          template.opsForStream().acknowledge("g", m);
        });
      }
      container.start();
      for (int i = 0; i < 50; i++) {
        template.opsForStream().add(MapRecord.create(key, Map.of("n", "" + i)));
      }
      eventually("50 messages", () -> got.size() == 50);
      want(Set.copyOf(got).size(), 50);
      eventually("nothing is pending", () -> template.opsForStream().pending(key, "g").getTotalPendingMessages() == 0);
      want(template.opsForStream().groups(key).get(0).consumerCount(), 2L);
      container.stop();
    });
    checks.check("pubsub", "KeyExpirationEventMessageListener; sessions that are created, looked up by name and expire", () -> {
      ConcurrentLinkedQueue<String> expired = new ConcurrentLinkedQueue<>();
      RedisMessageListenerContainer container = new RedisMessageListenerContainer();
      container.setConnectionFactory(factory);
      container.afterPropertiesSet();
      container.start();
      KeyExpirationEventMessageListener listener = new KeyExpirationEventMessageListener(container) {
        @Override
        protected void doHandleMessage(Message message) {
          expired.add(new String(message.getBody(), StandardCharsets.UTF_8));
        }
      };
      listener.setKeyspaceNotificationsConfigParameter(""); // the server has its own
      listener.afterPropertiesSet();
      String session = P + "sessions:1", marker = P + "sessions:expires:1", index = P + "sessions:index:me", due = P + "sessions:expirations";
      template.opsForHash().putAll(session, Map.of("creationTime", "1", "sessionAttr:user", "me"));
      template.expire(session, Duration.ofSeconds(300));
      template.opsForSet().add(index, "1");
      template.opsForZSet().add(due, "1", System.currentTimeMillis() + 100);
      template.opsForValue().set(marker, "", Duration.ofMillis(50));
      eventually("the event", () -> expired.contains(marker));
      want(template.opsForHash().get(session, "sessionAttr:user"), "me");
      eventually("the session that is due", () -> template.opsForZSet().rangeByScore(due, 0, System.currentTimeMillis()).contains("1"));
      want(template.opsForSet().members(index), Set.of("1"));
      want(template.delete(List.of(session, index, due)), 3L);
      listener.destroy();
      container.destroy();
    });
  }

  /** A value that Java serializes. */
  public record Order(String id, int amount) implements Serializable {}

  private void others() {
    checks.check("features", "ReactiveStringRedisTemplate: values, scripts, a channel", () -> {
      ReactiveStringRedisTemplate r = new ReactiveStringRedisTemplate(factory);
      want(r.opsForValue().set(P + "r", "1").then(r.opsForValue().increment(P + "r")).block(Duration.ofSeconds(5)), 2L);
      want(r.execute(new DefaultRedisScript<>("return redis.call('INCRBY', KEYS[1], ARGV[1])", Long.class), List.of(P + "r"), List.of("5"))
          .blockFirst(Duration.ofSeconds(5)), 7L);
      ConcurrentLinkedQueue<String> got = new ConcurrentLinkedQueue<>();
      var listening = r.listenToChannel(P + "channel").doOnNext(m -> got.add(m.getMessage())).subscribe();
      eventually("the message", () -> {
        r.convertAndSend(P + "channel", "hello").block(Duration.ofSeconds(5));
        return got.contains("hello");
      });
      listening.dispose();
      want(r.opsForList().rightPushAll(P + "rl", "a", "b").then(r.opsForList().leftPop(P + "rl", Duration.ofSeconds(1))).block(Duration.ofSeconds(5)), "a");
    });
    checks.check("features", "objects by Java's serialization, SCAN, sorted sets as leader boards, geo, bits, sorting", () -> {
      RedisTemplate<String, Object> objects = new RedisTemplate<>();
      objects.setConnectionFactory(factory);
      objects.afterPropertiesSet();
      objects.opsForValue().set(P + "order", new Order("o1", 5));
      want(objects.opsForValue().get(P + "order"), new Order("o1", 5));
      for (int i = 0; i < 100; i++) {
        template.opsForValue().setIfAbsent(P + "scan:" + i, "v");
      }
      int n = 0;
      try (var keys = template.scan(ScanOptions.scanOptions().match(P + "scan:*").count(20).build())) {
        for (; keys.hasNext(); keys.next()) {
          n++;
        }
      }
      want(n, 100);
      template.opsForZSet().add(P + "board", "x", 1);
      want(template.opsForZSet().incrementScore(P + "board", "x", 4), 5.0);
      template.opsForZSet().add(P + "board", "y", 3);
      want(template.opsForZSet().reverseRank(P + "board", "x"), 0L);
      want(template.opsForZSet().popMin(P + "board").getValue(), "y");
      want(template.opsForValue().setBit(P + "bits", 7, true), false);
      want(template.opsForValue().getBit(P + "bits", 7), true);
      want(template.opsForHash().increment(P + "hash", "f", 2), 2L);
      want(template.opsForValue().getAndExpire(P + "scan:1", Duration.ofSeconds(100)), "v");
      wantTrue(template.getExpire(P + "scan:1") > 90, "GETEX");
      want(template.opsForHash().expire(P + "hash", Duration.ofSeconds(100), List.of("f")).allOk(), true);
    });
  }
}
