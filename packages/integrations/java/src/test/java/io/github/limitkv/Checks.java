package io.github.limitkv;

import com.sun.net.httpserver.HttpServer;
import io.github.bucket4j.Bandwidth;
import io.github.bucket4j.Bucket;
import io.github.bucket4j.BucketConfiguration;
import io.github.bucket4j.ConsumptionProbe;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import java.io.BufferedReader;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Random;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.cloud.gateway.filter.ratelimit.KeyResolver;
import org.springframework.cloud.gateway.support.ConfigurationService;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import reactor.core.publisher.Mono;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.JedisPooled;

/**
 * Checks of the rate limiter in a real gateway in front of an HTTP service, and of Bucket4j's buckets, on a real server whose
 * clock stands still and is moved. Each prints a line: pass, the framework, its version, the check; or fail, and the reason.
 */
public class Checks {

    private static final Pattern LISTENS = Pattern.compile("listens on \\S+:(\\d+)");
    private static int failed;

    /** limitkv, of which LIMITKV names the binary. */
    static class Server implements AutoCloseable {
        final Process process;
        final int port;
        final JedisPooled control;

        Server() throws Exception {
            process = new ProcessBuilder(System.getenv("LIMITKV"), "--test", "--port", "0", "--save", "")
                .redirectError(ProcessBuilder.Redirect.INHERIT).start();
            BufferedReader out = process.inputReader();
            Matcher m = LISTENS.matcher("");
            while (!m.find()) { // the line comes when the server is ready
                m = LISTENS.matcher(Objects.requireNonNull(out.readLine(), "the server did not say where it listens"));
            }
            port = Integer.parseInt(m.group(1));
            control = new JedisPooled("127.0.0.1", port);
            control.sendCommand(() -> "LKV.CLOCK".getBytes(), "FREEZE", "1700000000000");
        }

        void advance(long ms) { control.sendCommand(() -> "LKV.CLOCK".getBytes(), "ADVANCE", Long.toString(ms)); }

        @Override
        public void close() throws Exception {
            control.close();
            process.destroyForcibly().waitFor();
        }
    }

    interface Check { void run(Server server) throws Exception; }

    static void check(String framework, String version, String name, Check check) throws Exception {
        try (Server server = new Server()) {
            check.run(server);
            System.out.println(String.join("\t", "pass", framework, version, name));
        } catch (Throwable e) {
            failed++;
            StackTraceElement at = java.util.Arrays.stream(e.getStackTrace()).filter(f -> f.getClassName().startsWith(Checks.class.getName()))
                .skip(e instanceof AssertionError ? 1 : 0).findFirst().orElse(e.getStackTrace()[0]);
            System.out.println(String.join("\t", "fail", framework, version, name, (at + ": " + e).replaceAll("\\s+", " ")));
        }
    }

    static void want(Object got, Object wanted) {
        if (!String.valueOf(wanted).equals(String.valueOf(got))) {
            throw new AssertionError(got + " is not " + wanted);
        }
    }

    /** The gateway, as its users make it: beans, and routes in the configuration. */
    @EnableAutoConfiguration
    static class Gateway {
        @Bean
        RedisClient redisClient(org.springframework.core.env.Environment env) {
            RedisURI uri = RedisURI.create("127.0.0.1", env.getRequiredProperty("limitkv.port", Integer.class));
            return RedisClient.create(uri);
        }

        @Bean
        LimitkvRateLimiter limitkvRateLimiter(RedisClient client, ConfigurationService configuration) {
            return new LimitkvRateLimiter(client.connect(), configuration);
        }

        @Bean
        KeyResolver userKeyResolver() {
            return exchange -> Mono.justOrEmpty(exchange.getRequest().getHeaders().getFirst("X-User"));
        }
    }

    static final HttpClient HTTP = HttpClient.newHttpClient();

    static String ask(int port, String path, String user) throws Exception {
        HttpRequest request = HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + path)).header("X-User", user).build();
        HttpResponse<String> answer = HTTP.send(request, HttpResponse.BodyHandlers.ofString());
        List<String> all = new ArrayList<>(List.of(Integer.toString(answer.statusCode())));
        for (String name : List.of("RateLimit", "RateLimit-Policy", "Retry-After")) {
            all.add(String.join(", ", answer.headers().allValues(name)));
        }
        return String.join(" | ", all);
    }

    static ConfigurableApplicationContext gateway(int limitkv, int service, String heavyRule) {
        List<String> args = new ArrayList<>(List.of("--server.port=0", "--limitkv.port=" + limitkv, "--spring.main.banner-mode=off", "--logging.level.root=off"));
        String[][] routes = {
            {"shop", "limitkv.rule=LOG 3 60000"},
            {"plan", "limitkv.rule=CAL 2 DAY TZ Asia/Tokyo", "limitkv.policy=plan", "limitkv.failure-mode=closed", "limitkv.timeout=500ms"},
            {"heavy", "limitkv.rule=" + heavyRule, "limitkv.cost=6"},
        };
        for (int i = 0; i < routes.length; i++) {
            String route = "--spring.cloud.gateway.server.webflux.routes[" + i + "].";
            args.addAll(List.of(route + "id=" + routes[i][0], route + "uri=http://127.0.0.1:" + service, route + "predicates[0]=Path=/" + routes[i][0],
                route + "filters[0].name=RequestRateLimiter", route + "filters[0].args.rate-limiter=#{@limitkvRateLimiter}",
                route + "filters[0].args.key-resolver=#{@userKeyResolver}"));
            for (int j = 1; j < routes[i].length; j++) {
                args.add(route + "filters[0].args." + routes[i][j]);
            }
        }
        SpringApplication app = new SpringApplicationBuilder(Gateway.class).web(WebApplicationType.REACTIVE).build();
        app.setLogStartupInfo(false);
        return app.run(args.toArray(new String[0]));
    }

    static void springCloudGateway() throws Exception {
        String version = LimitkvRateLimiter.class.getSuperclass().getPackage().getImplementationVersion();
        HttpServer service = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        service.createContext("/", exchange -> {
            exchange.sendResponseHeaders(200, -1);
            exchange.close();
        });
        service.start();
        check("Spring Cloud Gateway", version, "a limiter for each route and key, the headers, costs, failure modes", server -> {
            try (ConfigurableApplicationContext app = gateway(server.port, service.getAddress().getPort(), "GCRA 5 1000")) {
                int port = app.getEnvironment().getRequiredProperty("local.server.port", Integer.class);
                String policy = " | \"default\";q=3;w=60 | ";
                want(ask(port, "/shop", "ann"), "200 | \"default\";r=2;t=60" + policy);
                server.advance(20000);
                want(ask(port, "/shop", "ann"), "200 | \"default\";r=1;t=60" + policy);
                want(ask(port, "/shop", "ann"), "200 | \"default\";r=0;t=60" + policy);
                want(ask(port, "/shop", "ann"), "429 | \"default\";r=0;t=60" + policy + "40");
                want(ask(port, "/shop", "bob"), "200 | \"default\";r=2;t=60" + policy);
                server.advance(40000);
                want(ask(port, "/shop", "ann"), "200 | \"default\";r=0;t=60" + policy);
                String plan = " | \"plan\";q=2;w=86400 | ";
                want(ask(port, "/plan", "ann"), "200 | \"plan\";r=1;t=60340" + plan);
                want(ask(port, "/plan", "ann"), "200 | \"plan\";r=0;t=60340" + plan);
                want(ask(port, "/plan", "ann"), "429 | \"plan\";r=0;t=60340" + plan + "60340");
                want(ask(port, "/heavy", "ann"), "429 |  | \"default\";q=5;w=1 | "); // never
                server.process.destroyForcibly().waitFor();
                for (int i = 0; i < 3; i++) {
                    want(ask(port, "/shop", "ann"), "200 | " + policy);
                    want(ask(port, "/plan", "ann"), "429 | " + plan + "1");
                }
            }
        });
        check("Spring Cloud Gateway", version, "a server that does not answer: in time, open and closed", server -> {
            try (ConfigurableApplicationContext app = gateway(server.port, service.getAddress().getPort(), "GCRA 5 1000")) {
                int port = app.getEnvironment().getRequiredProperty("local.server.port", Integer.class);
                ask(port, "/shop", "ann");
                // A stopped process keeps its connections, and says nothing.
                new ProcessBuilder("kill", "-STOP", Long.toString(server.process.pid())).start().waitFor();
                long began = System.nanoTime();
                want(ask(port, "/shop", "ann").substring(0, 3), "200");
                want(ask(port, "/plan", "ann").substring(0, 3), "429");
                want((System.nanoTime() - began) / 1_000_000_000 < 10, true);
            }
        });
        check("Spring Cloud Gateway", version, "a rule that is none stops the gateway from starting", server ->
            throwsA(IllegalArgumentException.class, () -> gateway(server.port, 1, "FIXED 5").close()));
        service.stop(0);
    }

    static BucketConfiguration greedy(long capacity, long tokens, long ms) {
        return BucketConfiguration.builder().addLimit(l -> l.capacity(capacity).refillGreedy(tokens, Duration.ofMillis(ms))).build();
    }

    static Bucket bucket(LimitkvProxyManager manager, String key, BucketConfiguration configuration) {
        return manager.builder().build(key, () -> configuration);
    }

    static void bucket4j() throws Exception {
        String version = Bucket.class.getPackage().getImplementationVersion() == null ? "8.15.0" : Bucket.class.getPackage().getImplementationVersion();
        check("Bucket4j", version, "a greedy bandwidth is GCRA; probes, estimates and headers", server -> {
            LimitkvProxyManager manager = new LimitkvProxyManager(server.control, LimitkvProxyManager.FailureMode.THROW);
            BucketConfiguration ten = greedy(10, 5, 1000);
            Bucket bucket = bucket(manager, "b", ten);
            want(bucket.getAvailableTokens(), 10);
            want(bucket.tryConsume(8), true);
            want(server.control.type("b"), "ratelimit");
            want(bucket.tryConsume(3), false);
            want(bucket.estimateAbilityToConsume(3).getNanosToWaitForRefill(), 200_000_000L);
            ConsumptionProbe probe = bucket.tryConsumeAndReturnRemaining(3);
            want(List.of(probe.isConsumed(), probe.getRemainingTokens(), probe.getNanosToWaitForRefill(), probe.getNanosToWaitForReset()), "[false, 2, 200000000, 1600000000]");
            want(LimitkvProxyManager.headers("api", ten, probe), "{RateLimit-Policy=\"api\";q=5;w=1, RateLimit=\"api\";r=2;t=2, Retry-After=1}");
            server.advance(200);
            probe = bucket.tryConsumeAndReturnRemaining(3);
            want(List.of(probe.isConsumed(), probe.getRemainingTokens()), "[true, 0]");
            server.advance(1000);
            want(bucket.tryConsumeAsMuchAsPossible(), 5);
            want(bucket.tryConsumeAsMuchAsPossible(), 0);
            bucket.addTokens(3);
            want(bucket.getAvailableTokens(), 3);
            want(bucket.tryConsume(11), false);
            want(bucket.tryConsumeAndReturnRemaining(11).getNanosToWaitForRefill(), Long.MAX_VALUE);
            bucket.reset();
            want(bucket.getAvailableTokens(), 10);
            want(manager.asAsync().builder().build("b", () -> java.util.concurrent.CompletableFuture.completedFuture(ten)).tryConsume(4).get(), true);
            want(bucket.getAvailableTokens(), 6);
            manager.removeProxy("b");
            want(server.control.exists("b"), false);
        });
        check("Bucket4j", version, "several bandwidths, and an interval, which is FIXED", server -> {
            LimitkvProxyManager manager = new LimitkvProxyManager(server.control, LimitkvProxyManager.FailureMode.THROW);
            Bucket bucket = bucket(manager, "b", BucketConfiguration.builder().addLimit(l -> l.capacity(2).refillGreedy(2, Duration.ofSeconds(1)))
                .addLimit(l -> l.capacity(3).refillIntervally(3, Duration.ofMinutes(1))).build());
            want(List.of(bucket.tryConsume(2), bucket.tryConsume(1)), "[true, false]");
            server.advance(1000);
            want(List.of(bucket.tryConsume(1), bucket.tryConsume(1)), "[true, false]");
            server.advance(59000);
            want(bucket.tryConsume(2), true);
        });
        check("Bucket4j", version, "grants what a local bucket grants, at random times", server -> {
            long seed = System.getenv("SEED") == null ? System.nanoTime() % 1_000_000 : Long.parseLong(System.getenv("SEED"));
            Random random = new Random(seed);
            LimitkvProxyManager manager = new LimitkvProxyManager(server.control, LimitkvProxyManager.FailureMode.THROW);
            long[] nanos = {0};
            Bucket local = Bucket.builder().addLimit(l -> l.capacity(20).refillGreedy(10, Duration.ofMillis(1000)))
                .withCustomTimePrecision(new io.github.bucket4j.TimeMeter() {
                    @Override public long currentTimeNanos() { return nanos[0]; }
                    @Override public boolean isWallClockBased() { return false; }
                }).build();
            Bucket remote = bucket(manager, "r", greedy(20, 10, 1000));
            int granted = 0;
            for (int i = 0; i < 1000; i++) {
                long ms = random.nextInt(4) * 100;
                server.advance(ms);
                nanos[0] += ms * 1_000_000;
                int tokens = 1 + random.nextInt(4);
                boolean took = local.tryConsume(tokens);
                want("seed " + seed + ", step " + i + ": " + remote.tryConsume(tokens), "seed " + seed + ", step " + i + ": " + took);
                want("seed " + seed + ", step " + i + ": " + remote.getAvailableTokens(), "seed " + seed + ", step " + i + ": " + local.getAvailableTokens());
                granted += took ? 1 : 0;
            }
            want("seed " + seed + ": " + (granted > 200 && granted < 950), "seed " + seed + ": true");
        });
        check("Bucket4j", version, "blocking: tokens are reserved, and waited for", server -> {
            server.control.sendCommand(() -> "LKV.CLOCK".getBytes(), "RESUME");
            LimitkvProxyManager manager = new LimitkvProxyManager(server.control, LimitkvProxyManager.FailureMode.THROW);
            Bucket bucket = bucket(manager, "b", greedy(2, 1, 500));
            want(bucket.tryConsume(2), true);
            long began = System.nanoTime();
            want(bucket.asBlocking().tryConsume(2, Duration.ofMinutes(1)), true);
            want(System.nanoTime() - began > 500_000_000L, true);
            want(bucket.asBlocking().tryConsume(2, Duration.ofMillis(10)), false);
            want(bucket.asBlocking().tryConsume(3, Duration.ofMinutes(1)), false);
        });
        check("Bucket4j", version, "a server that is away: throw, open, closed; what is not supported says so", server -> {
            LimitkvProxyManager manager = new LimitkvProxyManager(server.control, LimitkvProxyManager.FailureMode.THROW);
            Bucket bucket = bucket(manager, "b", greedy(2, 1, 500));
            bucket.tryConsume(1);
            throwsA(UnsupportedOperationException.class, () -> bucket.forceAddTokens(1));
            throwsA(UnsupportedOperationException.class, () -> bucket(manager, "i", BucketConfiguration.builder()
                .addLimit(l -> l.capacity(3).refillIntervally(1, Duration.ofMinutes(1))).build()).tryConsume(1));
            for (var mode : List.of(LimitkvProxyManager.FailureMode.OPEN, LimitkvProxyManager.FailureMode.CLOSED)) {
                Bucket chosen = bucket(new LimitkvProxyManager(server.control, mode), "b", greedy(2, 1, 500));
                server.control.sendCommand(() -> "LKV.FAULT".getBytes(), "ADD", "rl.acquire", "1", "ERROR", "LOADING the dataset");
                want(chosen.tryConsume(1), mode == LimitkvProxyManager.FailureMode.OPEN);
                server.control.set("text", "no limiter");
                throwsA(redis.clients.jedis.exceptions.JedisDataException.class,
                    () -> bucket(new LimitkvProxyManager(server.control, mode), "text", greedy(2, 1, 500)).tryConsume(1));
            }
            int port = server.port;
            server.process.destroyForcibly().waitFor();
            try (JedisPooled away = new JedisPooled("127.0.0.1", port)) {
                Bucket thrown = bucket(new LimitkvProxyManager(away, LimitkvProxyManager.FailureMode.THROW), "b", greedy(2, 1, 500));
                throwsA(redis.clients.jedis.exceptions.JedisConnectionException.class, () -> thrown.tryConsume(1));
                Bucket open = bucket(new LimitkvProxyManager(away, LimitkvProxyManager.FailureMode.OPEN), "b", greedy(2, 1, 500));
                want(List.of(open.tryConsume(1), open.tryConsumeAndReturnRemaining(1).isConsumed()), "[true, true]");
                Bucket closed = bucket(new LimitkvProxyManager(away, LimitkvProxyManager.FailureMode.CLOSED), "b", greedy(2, 1, 500));
                want(List.of(closed.tryConsume(1), closed.tryConsumeAndReturnRemaining(1).getNanosToWaitForRefill()), "[false, 1000000000]");
            }
            try (ServerSocket silent = new ServerSocket(0); JedisPooled waits = new JedisPooled(new HostAndPort("127.0.0.1", silent.getLocalPort()),
                DefaultJedisClientConfig.builder().timeoutMillis(100).build())) {
                Bucket open = bucket(new LimitkvProxyManager(waits, LimitkvProxyManager.FailureMode.OPEN), "b", greedy(2, 1, 500));
                want(open.tryConsume(1), true);
            }
        });
    }

    interface Throwing { void run() throws Exception; }

    static void throwsA(Class<? extends Exception> wanted, Throwing call) {
        try {
            call.run();
        } catch (Exception e) {
            for (Throwable t = e; t != null; t = t.getCause()) {
                if (wanted.isInstance(t)) {
                    return;
                }
            }
            throw new AssertionError(e);
        }
        throw new AssertionError("nothing was thrown");
    }

    public static void main(String[] args) throws Exception {
        bucket4j();
        springCloudGateway();
        System.exit(failed > 0 ? 1 : 0);
    }
}
