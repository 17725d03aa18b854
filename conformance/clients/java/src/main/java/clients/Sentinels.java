// Jedis, Lettuce and Redisson through failovers of Sentinel, for conformance/failover, which says what the lines mean. Each
// appends numbers to a list, adds jobs, and takes a lock in turn with another thread, while others wait for the jobs, a limiter
// and the lock. Redisson does so with its own queue and lock.
package clients;

import static org.redisson.client.codec.StringCodec.INSTANCE;

import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.lettuce.core.TimeoutOptions;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.output.NestedMultiOutput;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.ProtocolKeyword;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RBlockingQueue;
import org.redisson.api.RFencedLock;
import org.redisson.api.RList;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;
import org.redisson.config.ReadMode;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.JedisSentineled;
import redis.clients.jedis.commands.ProtocolCommand;

final class Sentinels {
  private static final int BETWEEN = 50, PATIENCE = 3_000, LONG = 40_000;
  private static final String NAME = "it";

  private static volatile boolean over;

  private Sentinels() {}

  /** Sends a command. Numbers of the reply are Long. */
  private interface Sender {
    Object send(String... words) throws Exception;
  }

  private interface Round {
    void run() throws Exception;
  }

  static void run(String addresses) throws Exception {
    List<String> list = Arrays.asList(addresses.split(","));
    jedis(list);
    lettuce(list);
    redisson(list);
    while (System.in.read() >= 0) {
      // nothing is said there
    }
    over = true;
    Thread.sleep(Long.MAX_VALUE); // until it is killed
  }

  private static synchronized void say(Object... parts) {
    StringBuilder line = new StringBuilder();
    for (Object p : parts) {
      line.append(line.length() > 0 ? "\t" : "").append(String.valueOf(p).replaceAll("\\s+", " "));
    }
    System.out.println(line);
    System.out.flush();
  }

  /** Repeats something, whatever it throws. */
  private static void forever(String client, String what, Round round) {
    Thread t = new Thread(() -> {
      while (!over) {
        try {
          round.run();
        } catch (Exception e) {
          say("error", client, what, e);
        }
        Checks.pause(BETWEEN / 2);
      }
    });
    t.setDaemon(true);
    t.start();
  }

  private static Object[] words(Object reply) {
    return reply instanceof List<?> l ? l.toArray() : new Object[0];
  }

  /** A client that can send any command: with one way for those that return at once, and one for those that wait. */
  private static void work(String client, Sender send, Sender wait) {
    int[] n = {0};
    forever(client, "RPUSH, DQ.ADD", () -> {
      String number = String.valueOf(++n[0]);
      send.send("RPUSH", "ledger:" + client, number);
      say("told", client, number);
      send.send("DQ.ADD", "queue:" + client, "DELAY", "20", number);
    });
    for (String who : new String[] {"holds", "waits"}) {
      forever(client, "LK.ACQUIRE", () -> {
        Object[] reply = words(wait.send("LK.ACQUIRE", "lock:" + client, who, "2000", "BLOCK", "30000"));
        if (reply.length > 1 && reply[0].equals(1L)) {
          say("fence", client, who, reply[1]);
          Checks.pause(BETWEEN / 2);
          wait.send("LK.RELEASE", "lock:" + client, who);
        }
      });
    }
    forever(client, "DQ.POP", () -> {
      if (words(wait.send("DQ.POP", "queue:" + client, "BLOCK", "30000")).length > 0) {
        say("got", client, "DQ.POP");
      }
    });
    forever(client, "RL.ACQUIRE", () -> {
      Object[] reply = words(wait.send("RL.ACQUIRE", "limiter:" + client, "1", "BLOCK", "30000", "GCRA", "5", "1000"));
      if (reply.length > 0 && reply[0].equals(0L)) {
        say("got", client, "RL.ACQUIRE");
      }
    });
  }

  private static Sender jedis(Set<HostAndPort> at, int patience) {
    JedisSentineled j = new JedisSentineled(NAME, DefaultJedisClientConfig.builder().socketTimeoutMillis(patience).build(), at,
        DefaultJedisClientConfig.builder().build());
    return words -> {
      ProtocolCommand command = () -> words[0].getBytes(StandardCharsets.UTF_8);
      return j.sendCommand(command, Arrays.copyOfRange(words, 1, words.length));
    };
  }

  private static void jedis(List<String> addresses) {
    Set<HostAndPort> at = new HashSet<>();
    for (String a : addresses) {
      at.add(HostAndPort.from(a));
    }
    work("Jedis", jedis(at, PATIENCE), jedis(at, LONG));
  }

  private static void lettuce(List<String> addresses) {
    RedisURI.Builder at = null;
    for (String a : addresses) {
      String[] parts = a.split(":");
      at = at == null ? RedisURI.Builder.sentinel(parts[0], Integer.parseInt(parts[1]), NAME)
          : at.withSentinel(parts[0], Integer.parseInt(parts[1]));
    }
    RedisClient client = RedisClient.create(at.build());
    client.setOptions(ClientOptions.builder().timeoutOptions(TimeoutOptions.enabled()).build());
    // A connection for each thread that waits, since one holds up what is sent behind it.
    ThreadLocal<StatefulRedisConnection<String, String>> waiting = ThreadLocal.withInitial(client::connect);
    work("Lettuce", words -> lettuce(client.connect(), true, PATIENCE, words), words -> lettuce(waiting.get(), false, LONG, words));
  }

  private record Named(String name) implements ProtocolKeyword {
    @Override
    public byte[] getBytes() {
      return name.getBytes(StandardCharsets.UTF_8);
    }
  }

  private static Object lettuce(StatefulRedisConnection<String, String> c, boolean once, int patience, String... words) {
    try {
      c.setTimeout(Duration.ofMillis(patience));
      CommandArgs<String, String> args = new CommandArgs<>(StringCodec.UTF8);
      for (int i = 1; i < words.length; i++) {
        args.add(words[i]);
      }
      return c.sync().dispatch(new Named(words[0]), new NestedMultiOutput<>(StringCodec.UTF8), args);
    } finally {
      if (once) {
        c.close();
      }
    }
  }

  private static void redisson(List<String> addresses) {
    Config config = new Config();
    config.useSentinelServers().setMasterName(NAME).setCheckSentinelsList(true).setTimeout(PATIENCE).setScanInterval(500)
        .setReadMode(ReadMode.MASTER).setFailedSlaveReconnectionInterval(500)
        .addSentinelAddress(addresses.stream().map(a -> "redis://" + a).toArray(String[]::new));
    config.setCodec(INSTANCE).setLockWatchdogTimeout(3_000);
    RedissonClient r = Redisson.create(config);
    RList<String> ledger = r.getList("ledger:Redisson");
    RBlockingQueue<String> queue = r.getBlockingQueue("queue:Redisson");
    int[] n = {0};
    forever("Redisson", "RPUSH", () -> {
      String number = String.valueOf(++n[0]);
      ledger.add(number);
      say("told", "Redisson", number);
      queue.add(number);
    });
    forever("Redisson", "BLPOP", () -> {
      if (queue.poll(20, TimeUnit.SECONDS) != null) {
        say("got", "Redisson", "BLPOP");
      }
    });
    RFencedLock lock = r.getFencedLock("lock:Redisson");
    forever("Redisson", "a lock", () -> {
      if (lock.tryLock(20, 3, TimeUnit.SECONDS)) {
        say("got", "Redisson", "lock");
        Checks.pause(BETWEEN / 2);
        lock.unlock();
      }
    });
  }
}
