// The cluster clients of Jedis, Lettuce and Spring, against a cluster of one node that has all slots.
package clients;

import static clients.Checks.eventually;
import static clients.Checks.want;
import static clients.Checks.wantThrown;
import static clients.Checks.wantTrue;

import io.lettuce.core.LettuceVersion;
import io.lettuce.core.RedisURI;
import io.lettuce.core.ScriptOutputType;
import io.lettuce.core.cluster.ClusterClientOptions;
import io.lettuce.core.cluster.RedisClusterClient;
import io.lettuce.core.cluster.SlotHash;
import io.lettuce.core.cluster.api.StatefulRedisClusterConnection;
import io.lettuce.core.cluster.pubsub.RedisClusterPubSubAdapter;
import io.lettuce.core.cluster.pubsub.StatefulRedisClusterPubSubConnection;
import io.lettuce.core.cluster.models.partitions.RedisClusterNode;
import io.lettuce.core.protocol.ProtocolVersion;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import org.springframework.data.redis.connection.RedisClusterConfiguration;
import org.springframework.data.redis.connection.jedis.JedisConnectionFactory;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.data.redis.core.StringRedisTemplate;
import org.springframework.data.redis.core.script.DefaultRedisScript;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.JedisCluster;
import redis.clients.jedis.JedisShardedPubSub;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.Response;
import redis.clients.jedis.csc.CacheConfig;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.exceptions.JedisClusterOperationException;

final class Clusters {
  private static final String ADD = "return redis.call('INCRBY', KEYS[1], ARGV[1])";

  private Clusters() {}

  static void run(Servers servers) throws Exception {
    jedis(servers, new Checks("Jedis", "redis.clients", "jedis"));
    lettuce(servers, new Checks("Lettuce", LettuceVersion.getVersion().split("/")[0]));
    spring(servers, new Checks("Spring Data Redis", StringRedisTemplate.class.getPackage().getImplementationVersion()));
  }

  private static void jedis(Servers servers, Checks checks) {
    for (RedisProtocol protocol : RedisProtocol.values()) {
      checks.check("features", "JedisCluster: slots, pipeline over them, scripts, sharded pub/sub, " + protocol, () -> {
        String p = "jedis:" + protocol + ":";
        try (JedisCluster c = new JedisCluster(Set.of(new HostAndPort("127.0.0.1", servers.clustered)), DefaultJedisClientConfig.builder().protocol(protocol).build())) {
          want(c.getClusterNodes().size(), 1);
          try (var pipeline = c.pipelined()) {
            Response<String> last = null;
            for (int i = 0; i < 200; i++) {
              last = pipeline.set(p + i, "v" + i);
            }
            pipeline.sync();
            want(last.get(), "OK");
          }
          want(c.get(p + 199), "v199");
          want(c.incrBy("{" + p + "}n", 3), 3L);
          String sha = c.scriptLoad(ADD, "{" + p + "}n");
          want(c.evalsha(sha, List.of("{" + p + "}n"), List.of("4")), 7L);
          wantThrown(JedisClusterOperationException.class, () -> c.mget("a", "b"));
          ConcurrentLinkedQueue<String> got = new ConcurrentLinkedQueue<>();
          JedisShardedPubSub sub = new JedisShardedPubSub() {
            @Override
            public void onSMessage(String channel, String message) {
              got.add(message);
              sunsubscribe(channel);
            }
          };
          Thread t = new Thread(() -> c.ssubscribe(sub, p + "shard"));
          t.start();
          eventually("the subscription", () -> c.spublish(p + "shard", "hello") == 1);
          t.join(5000);
          want(List.copyOf(got), List.of("hello"));
        }
      });
    }
    checks.check("features", "JedisCluster with a client-side cache", () -> {
      try (JedisCluster cached = new JedisCluster(Set.of(new HostAndPort("127.0.0.1", servers.clustered)),
              DefaultJedisClientConfig.builder().protocol(RedisProtocol.RESP3).build(), CacheConfig.builder().maxSize(100).build());
          JedisCluster other = new JedisCluster(new HostAndPort("127.0.0.1", servers.clustered))) {
        other.set("jedis:csc", "1");
        want(cached.get("jedis:csc"), "1");
        want(cached.get("jedis:csc"), "1");
        want(cached.getCache().getStats().getHitCount(), 1L);
        other.set("jedis:csc", "2");
        eventually("the new value", () -> cached.get("jedis:csc").equals("2"));
      }
    });
    checks.check("features", "a plain connection to a cluster hears of other slots' keys what a cluster says", () -> {
      try (var one = new redis.clients.jedis.Jedis("127.0.0.1", servers.clustered)) {
        JedisDataException e = wantThrown(JedisDataException.class, () -> one.mget("a", "b"));
        want(e.getMessage(), "CROSSSLOT Keys in request don't hash to the same slot");
        want(one.clusterKeySlot("{tag}x"), (long) SlotHash.getSlot("tag"));
      }
    });
  }

  private static void lettuce(Servers servers, Checks checks) {
    for (ProtocolVersion version : ProtocolVersion.values()) {
      checks.check("features", "RedisClusterClient: slots, MSET and MGET over them, scripts, topology, pub/sub, " + version, () -> {
        String p = "lettuce:" + version + ":";
        RedisClusterClient client = RedisClusterClient.create(RedisURI.create("127.0.0.1", servers.clustered));
        client.setOptions(ClusterClientOptions.builder().protocolVersion(version).build());
        try {
          StatefulRedisClusterConnection<String, String> c = client.connect();
          var r = c.sync();
          Map<String, String> values = new TreeMap<>();
          for (int i = 0; i < 200; i++) {
            values.put(p + i, "v" + i);
          }
          want(r.mset(values), "OK");
          want(r.mget(values.keySet().toArray(new String[0])).size(), 200);
          want(r.del(values.keySet().toArray(new String[0])), 200L);
          want(r.eval(ADD, ScriptOutputType.INTEGER, new String[] {p + "n"}, "4"), 4L);
          want(r.evalsha(Scripts.sha1(ADD), ScriptOutputType.INTEGER, new String[] {p + "n"}, "4"), 8L);
          RedisClusterNode node = client.getPartitions().getPartition(0);
          want(node.getSlots().size(), SlotHash.SLOT_COUNT);
          client.refreshPartitions();
          want(client.getPartitions().size(), 1);
          want(c.getConnection(node.getNodeId()).sync().clusterMyId(), node.getNodeId());
          ConcurrentLinkedQueue<String> got = new ConcurrentLinkedQueue<>();
          StatefulRedisClusterPubSubConnection<String, String> sub = client.connectPubSub();
          sub.addListener(new RedisClusterPubSubAdapter<>() {
            @Override
            public void message(RedisClusterNode from, String channel, String message) {
              got.add(message);
            }

            @Override
            public void smessage(RedisClusterNode from, String channel, String message) {
              got.add(message);
            }
          });
          sub.sync().subscribe(p + "direct");
          sub.sync().ssubscribe(p + "shard");
          eventually("messages", () -> {
            r.publish(p + "direct", "one");
            r.spublish(p + "shard", "two");
            return got.contains("one") && got.contains("two");
          });
        } finally {
          client.shutdown(0, 2, TimeUnit.SECONDS);
        }
      });
    }
  }

  private static void spring(Servers servers, Checks checks) {
    RedisClusterConfiguration at = new RedisClusterConfiguration(List.of("127.0.0.1:" + servers.clustered));
    checks.check("features", "a cluster, over Lettuce and over Jedis", () -> {
      LettuceConnectionFactory lettuce = new LettuceConnectionFactory(at);
      JedisConnectionFactory jedis = new JedisConnectionFactory(at);
      lettuce.afterPropertiesSet();
      jedis.afterPropertiesSet();
      lettuce.start();
      jedis.start();
      for (var factory : List.of(lettuce, jedis)) {
        StringRedisTemplate t = new StringRedisTemplate(factory);
        Map<String, String> values = new TreeMap<>();
        for (int i = 0; i < 50; i++) {
          values.put("spring:" + i, "v" + i);
        }
        t.opsForValue().multiSet(values);
        want(t.opsForValue().multiGet(values.keySet()).size(), 50);
        want(t.execute(new DefaultRedisScript<>(ADD, Long.class), List.of("spring:n"), "4") % 4, 0L);
        wantTrue(t.opsForCluster().keys(factory.getClusterConnection().clusterGetNodes().iterator().next(), "spring:1*").size() >= 11, "KEYS of a node");
        want(t.delete(values.keySet()), 50L);
      }
      lettuce.destroy();
      jedis.destroy();
    });
  }
}
