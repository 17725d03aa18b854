// Spring's connection factories for a way to connect, over Lettuce and over Jedis.
package clients;

import io.lettuce.core.ClientOptions;
import io.lettuce.core.SslOptions;
import io.lettuce.core.protocol.ProtocolVersion;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.time.Duration;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;
import org.springframework.data.redis.connection.RedisConnectionFactory;
import org.springframework.data.redis.connection.RedisSocketConfiguration;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.jedis.JedisClientConfiguration;
import org.springframework.data.redis.connection.jedis.JedisConnectionFactory;
import org.springframework.data.redis.connection.lettuce.LettuceClientConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import redis.clients.jedis.RedisProtocol;

final class SpringFactories {
  private SpringFactories() {}

  static RedisConnectionFactory lettuce(Servers servers, RedisStandaloneConfiguration at, Ways w, int protocol) {
    SslOptions.Builder ssl = SslOptions.builder().jdkSslProvider().truststore(servers.trust.toFile(), Servers.TRUST_PASSWORD);
    if (w.certified()) {
      ssl.keystore(servers.own.toFile(), Servers.TRUST_PASSWORD.toCharArray());
    }
    ClientOptions options = ClientOptions.builder().sslOptions(ssl.build())
        .protocolVersion(protocol == 2 ? ProtocolVersion.RESP2 : ProtocolVersion.RESP3).build();
    var client = LettuceClientConfiguration.builder().clientOptions(options).commandTimeout(Duration.ofSeconds(10)).shutdownQuietPeriod(Duration.ZERO);
    if (w.tls()) {
      client.useSsl();
    }
    LettuceConnectionFactory f = w.unix() ? new LettuceConnectionFactory(new RedisSocketConfiguration(servers.socket.toString()), client.build())
        : new LettuceConnectionFactory(at, client.build());
    f.afterPropertiesSet();
    f.start();
    return f;
  }

  static RedisConnectionFactory jedis(Servers servers, RedisStandaloneConfiguration at, Ways w, int protocol) throws Exception {
    var client = JedisClientConfiguration.builder().customize(c -> c.protocol(protocol == 2 ? RedisProtocol.RESP2 : RedisProtocol.RESP3));
    if (w.tls()) {
      client.useSsl().sslSocketFactory(context(servers, w.certified()).getSocketFactory());
    }
    JedisConnectionFactory f = new JedisConnectionFactory(at, client.build());
    f.afterPropertiesSet();
    f.start();
    return f;
  }

  private static SSLContext context(Servers servers, boolean certified) throws Exception {
    TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
    trust.init(store(servers.trust));
    KeyManagerFactory keys = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
    keys.init(certified ? store(servers.own) : null, Servers.TRUST_PASSWORD.toCharArray());
    SSLContext context = SSLContext.getInstance("TLS");
    context.init(certified ? keys.getKeyManagers() : null, trust.getTrustManagers(), null);
    return context;
  }

  private static KeyStore store(Path path) throws Exception {
    KeyStore store = KeyStore.getInstance("PKCS12");
    try (var in = Files.newInputStream(path)) {
      store.load(in, Servers.TRUST_PASSWORD.toCharArray());
    }
    return store;
  }
}
