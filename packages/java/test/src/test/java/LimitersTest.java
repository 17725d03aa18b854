import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.bucket4j.BucketConfiguration;
import io.github.limitkv.LimitkvProxyManager;
import io.github.limitkv.junit.Limitkv;
import io.github.limitkv.junit.LimitkvExtension;
import java.time.Duration;
import java.time.Instant;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import redis.clients.jedis.JedisPooled;

/** limitkv-limiters in a project that has Bucket4j and Jedis, and no Spring. */
@ExtendWith(LimitkvExtension.class)
class LimitersTest {
  @Test
  void aBucketOfTwo(Limitkv limitkv) {
    limitkv.freeze(Instant.ofEpochSecond(1_700_000_000));
    try (var client = new JedisPooled(limitkv.uri())) {
      var buckets = new LimitkvProxyManager(client, LimitkvProxyManager.FailureMode.CLOSED);
      var two = BucketConfiguration.builder().addLimit(limit -> limit.capacity(2).refillGreedy(2, Duration.ofMinutes(1))).build();
      var bucket = buckets.builder().build("ann", () -> two);
      assertTrue(bucket.tryConsume(2));
      var probe = bucket.tryConsumeAndReturnRemaining(1);
      assertFalse(probe.isConsumed());
      assertEquals("\"default\";r=0;t=60", LimitkvProxyManager.headers("default", two, probe).get("RateLimit"));
      limitkv.advance(Duration.ofSeconds(30));
      assertTrue(bucket.tryConsume(1));
      assertFalse(bucket.tryConsume(1));
    }
  }
}
