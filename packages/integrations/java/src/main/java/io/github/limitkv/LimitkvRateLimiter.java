package io.github.limitkv;

import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.output.ArrayOutput;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.ProtocolKeyword;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.springframework.cloud.gateway.filter.ratelimit.AbstractRateLimiter;
import org.springframework.cloud.gateway.support.ConfigurationService;
import reactor.core.publisher.Mono;

/**
 * A RateLimiter for Spring Cloud Gateway, by limitkv and Lettuce. Make a bean of it, and name it in a route:
 *
 * <pre>
 * filters:
 * - name: RequestRateLimiter
 *   args:
 *     rate-limiter: "#{&#64;limitkvRateLimiter}"
 *     key-resolver: "#{&#64;userKeyResolver}"
 *     limitkv.rule: GCRA 100 60000 BURST 20
 *     limitkv.failure-mode: closed
 * </pre>
 *
 * The gateway sends what it returns: RateLimit and RateLimit-Policy with each answer, Retry-After with a 429. Each route has
 * limiters of its own, one for each key.
 */
public class LimitkvRateLimiter extends AbstractRateLimiter<LimitkvRateLimiter.Config> {

    public enum FailureMode { OPEN, CLOSED }

    /** What a route says. */
    public static class Config {
        private Rule rule;
        private String policy = "default";
        private long cost = 1;
        private FailureMode failureMode = FailureMode.OPEN;
        private Duration timeout = Duration.ofMillis(100);

        /** A rule as RL.ACQUIRE has it: "LOG 100 60000", "CAL 10000 MONTH TZ Europe/Berlin". */
        public void setRule(String rule) { this.rule = Rule.parse(rule); }
        public String getRule() { return rule == null ? null : rule.text(); }
        /** The limit's name in the headers. */
        public void setPolicy(String policy) { this.policy = Rule.name(policy); }
        public String getPolicy() { return policy; }
        /** What a request takes. */
        public void setCost(long cost) { this.cost = cost; }
        public long getCost() { return cost; }
        /** Whether requests pass while the server is away or does not answer in time: OPEN, or CLOSED, they are refused. */
        public void setFailureMode(FailureMode failureMode) { this.failureMode = failureMode; }
        public FailureMode getFailureMode() { return failureMode; }
        public void setTimeout(Duration timeout) { this.timeout = timeout; }
        public Duration getTimeout() { return timeout; }
    }

    private static final byte[] NAME = "RL.ACQUIRE".getBytes(StandardCharsets.US_ASCII);
    private static final ProtocolKeyword ACQUIRE = () -> NAME;

    private final StatefulRedisConnection<String, String> connection;

    public LimitkvRateLimiter(StatefulRedisConnection<String, String> connection, ConfigurationService configuration) {
        super(Config.class, "limitkv", configuration);
        this.connection = connection;
    }

    @Override
    public Mono<Response> isAllowed(String routeId, String id) {
        Config config = getConfig().get(routeId);
        if (config == null || config.rule == null) {
            return Mono.error(new IllegalStateException("route " + routeId + " has no limitkv.rule"));
        }
        Map<String, String> headers = new LinkedHashMap<>();
        headers.put("RateLimit-Policy", config.rule.policy(config.policy));
        return Mono.defer(() -> ask("limit:" + routeId + ":" + id, config))
            .timeout(config.timeout)
            .map(reply -> {
                headers.put("RateLimit", Rule.state(config.policy, reply.get(2), reply.get(4)));
                boolean granted = reply.get(0) == 0;
                if (!granted && reply.get(3) >= 0) {
                    headers.put("Retry-After", Long.toString(Math.max(1, Rule.seconds(reply.get(3)))));
                }
                return new Response(granted, headers);
            })
            .onErrorResume(error -> {
                if (Rule.isAboveCapacity(error)) {
                    return Mono.just(new Response(false, headers)); // such a request can never be granted
                }
                if (Rule.isMistake(error)) {
                    return Mono.error(error);
                }
                boolean open = config.failureMode == FailureMode.OPEN;
                if (!open) {
                    headers.put("Retry-After", "1");
                }
                return Mono.just(new Response(open, headers));
            });
    }

    @SuppressWarnings("unchecked")
    private Mono<List<Long>> ask(String key, Config config) {
        if (!connection.isOpen()) { // Lettuce would keep the command until there is a connection again
            return Mono.error(new IllegalStateException("there is no connection to limitkv"));
        }
        CommandArgs<String, String> args = new CommandArgs<>(StringCodec.UTF8).addKey(key).add(config.cost);
        config.rule.words().forEach(args::add);
        return Mono.fromCompletionStage(connection.async().dispatch(ACQUIRE, new ArrayOutput<>(StringCodec.UTF8), args))
            .map(reply -> (List<Long>) (List<?>) reply);
    }
}
