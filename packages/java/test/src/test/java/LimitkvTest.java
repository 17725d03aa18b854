import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.limitkv.junit.Limitkv;
import io.github.limitkv.junit.LimitkvException;
import io.github.limitkv.junit.LimitkvExtension;
import io.github.limitkv.junit.LimitkvServer;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import redis.clients.jedis.JedisPooled;
import redis.clients.jedis.exceptions.JedisConnectionException;
import redis.clients.jedis.exceptions.JedisDataException;

/** What the extension gives, with Jedis as the client. */
@ExtendWith(LimitkvExtension.class)
class LimitkvTest {
  static final Instant THEN = Instant.ofEpochSecond(1_700_000_000);

  @RepeatedTest(2)
  void beginsEmptyWithAClockThatRuns(Limitkv limitkv) {
    try (var client = new JedisPooled(limitkv.uri())) {
      assertEquals(0, client.dbSize());
      assertTrue(limitkv.now().isAfter(THEN.plusSeconds(1)));
      client.set("left", "1");
      limitkv.freeze(THEN);
    }
  }

  @Test
  void theClockIsTheTests(Limitkv limitkv) {
    try (var client = new JedisPooled(limitkv.uri())) {
      limitkv.freeze(THEN);
      client.setex("k", 60, "v");
      limitkv.advance(Duration.ofSeconds(59));
      assertEquals(1000, client.pttl("k"));
      limitkv.advance(Duration.ofSeconds(2));
      assertNull(client.get("k"));
      limitkv.resume();
      assertTrue(limitkv.now().isAfter(THEN.plusSeconds(100)));
    }
  }

  @Test
  void snapshotsAreBroughtBack(Limitkv limitkv, LimitkvServer server) {
    assertSame(LimitkvServer.shared(), server);
    for (var keys : List.of(limitkv, server)) {
      try (var client = new JedisPooled(keys.uri())) {
        keys.freeze(THEN);
        client.setex("fixture", 60, "v");
        try (var snapshot = keys.snapshot()) {
          client.set("fixture", "changed");
          client.set("more", "v");
          snapshot.restore();
          assertEquals("v", client.get("fixture"));
          if (keys == server) {
            keys.advance(Duration.ofHours(1));
          }
          client.flushAll();
        }
        assertEquals(60, client.ttl("fixture"));
        keys.flushAll();
        assertEquals(0, client.dbSize());
        assertEquals(List.of(), keys.run("LKV.SNAPSHOT", "LIST"));
      }
    }
  }

  @Test
  void faultsAndReceived(Limitkv limitkv) throws Exception {
    try (var client = new JedisPooled(limitkv.uri())) {
      limitkv.record();
      limitkv.failNext("get", 1, "ERR not now");
      assertThrows(JedisDataException.class, () -> client.get("k"), "ERR not now");
      assertNull(client.get("k"));
      assertEquals(List.of(List.of("GET", "k"), List.of("GET", "k")), limitkv.received("get"));
      limitkv.disconnectNext("SET user:*", 1);
      assertThrows(JedisConnectionException.class, () -> client.set("user:1", "v"));
      limitkv.failNext("*", 100, "ERR all");
      limitkv.clearFaults();
      assertEquals("PONG", client.ping());
      limitkv.freeze();
      limitkv.delayNext("exists", 1, Duration.ofMinutes(1));
      var late = CompletableFuture.supplyAsync(() -> client.exists("k"));
      while (limitkv.received("exists").isEmpty()) {
        Thread.sleep(1);
      }
      assertFalse(late.isDone());
      limitkv.advance(Duration.ofMinutes(1));
      assertFalse(late.get(20, TimeUnit.SECONDS));
    }
  }

  @Test
  void namespacesAreApart(Limitkv limitkv) {
    limitkv.run("SET", "k", "mine");
    var other = limitkv.namespace();
    try (other) {
      assertNull(other.run("GET", "k"));
      other.flushAll();
    }
    assertEquals("mine", limitkv.run("GET", "k"));
    assertThrows(LimitkvException.class, () -> other.run("PING"));
  }

  @Test
  void anyCommandCanBeSent(Limitkv limitkv) {
    assertEquals("OK", limitkv.run("SET", "k", "a\r\nb".getBytes()));
    var reply = new ArrayList<Object>(List.of("a\r\nb"));
    reply.add(null);
    assertEquals(reply, limitkv.run("MGET", "k", "no"));
    assertEquals(7L, limitkv.run("INCRBY", "n", 7));
    limitkv.run("SADD", "s", "a", "b", "c", "d", "e", "f");
    limitkv.seed(7);
    var drawn = limitkv.run("SRANDMEMBER", "s", 3);
    limitkv.seed(7);
    assertEquals(drawn, limitkv.run("SRANDMEMBER", "s", 3));
    assertTrue(assertThrows(LimitkvException.class, () -> limitkv.run("NO.SUCH")).getMessage().contains("unknown command"));
  }

  @Test
  void aServerOfItsOwn() throws Exception {
    var server = LimitkvServer.start("--requirepass", "s/cr:t +", "--databases", "3");
    try (server; var client = new JedisPooled(server.uri()); var inside = server.namespace()) {
      assertEquals("PONG", client.ping());
      assertEquals(List.of("databases", "3"), inside.run("CONFIG", "GET", "databases"));
      assertTrue(ProcessHandle.of(server.pid()).isPresent());
    }
    assertTrue(ProcessHandle.of(server.pid()).isEmpty());
    var wrong = assertThrows(LimitkvException.class, () -> LimitkvServer.start("--no-such-flag", "1"));
    assertTrue(wrong.getMessage().contains("no-such-flag"), wrong.getMessage());
  }

  /** Starts a server, says its process id and waits. */
  public static void main(String[] args) throws Exception {
    System.out.println(LimitkvServer.shared().pid());
    Thread.sleep(60_000);
  }

  @Test
  void itEndsWithAJvmThatIsKilled() throws Exception {
    var java = ProcessHandle.current().info().command().orElseThrow();
    var child = new ProcessBuilder(java, "-cp", System.getProperty("java.class.path"), "LimitkvTest").start();
    var pid = Long.parseLong(new BufferedReader(new InputStreamReader(child.getInputStream())).readLine());
    assertNotEquals(0, child.destroyForcibly().waitFor());
    for (int i = 0; i < 2000 && ProcessHandle.of(pid).isPresent(); i++) {
      Thread.sleep(10);
    }
    assertTrue(ProcessHandle.of(pid).isEmpty());
  }

  @Test
  void itStartsInMilliseconds() {
    var took = new ArrayList<Double>();
    for (int i = 0; i < 20; i++) {
      var began = System.nanoTime();
      var server = LimitkvServer.start();
      took.add((System.nanoTime() - began) / 1e6);
      server.close();
    }
    took.sort(null);
    System.out.printf("java: a server starts in %.1f ms (median of %d)%n", took.get(10), took.size());
    assertTrue(took.get(10) < 5000);
  }
}
