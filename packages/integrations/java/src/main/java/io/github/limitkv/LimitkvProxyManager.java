package io.github.limitkv;

import io.github.bucket4j.Bandwidth;
import io.github.bucket4j.BucketConfiguration;
import io.github.bucket4j.ConsumptionProbe;
import io.github.bucket4j.EstimationProbe;
import io.github.bucket4j.Nothing;
import io.github.bucket4j.distributed.proxy.AbstractProxyManager;
import io.github.bucket4j.distributed.proxy.ClientSideConfig;
import io.github.bucket4j.distributed.remote.CommandResult;
import io.github.bucket4j.distributed.remote.RemoteCommand;
import io.github.bucket4j.distributed.remote.Request;
import io.github.bucket4j.distributed.remote.commands.AddTokensCommand;
import io.github.bucket4j.distributed.remote.commands.ConsumeAsMuchAsPossibleCommand;
import io.github.bucket4j.distributed.remote.commands.CreateInitialStateAndExecuteCommand;
import io.github.bucket4j.distributed.remote.commands.EstimateAbilityToConsumeCommand;
import io.github.bucket4j.distributed.remote.commands.GetAvailableTokensCommand;
import io.github.bucket4j.distributed.remote.commands.ReserveAndCalculateTimeToSleepCommand;
import io.github.bucket4j.distributed.remote.commands.ResetCommand;
import io.github.bucket4j.distributed.remote.commands.TryConsumeAndReturnRemainingTokensCommand;
import io.github.bucket4j.distributed.remote.commands.TryConsumeCommand;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import redis.clients.jedis.UnifiedJedis;
import redis.clients.jedis.commands.ProtocolCommand;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.exceptions.JedisException;

/**
 * Bucket4j's buckets as limiters of limitkv: each call is one command, decided by the server and its clock. (What Bucket4j has
 * for Redis reads a bucket's bytes, changes them, and writes them back if nobody else did meanwhile; it works on limitkv too.)
 *
 * <p>A bandwidth with refillGreedy is GCRA. One with refillIntervally that refills the whole capacity is FIXED, whose interval
 * begins with the first request. Not supported, with an UnsupportedOperationException that says so: other intervals, initial
 * tokens, changes of the configuration, forceAddTokens, consumeIgnoringRateLimits, verbose calls and batching. A bucket that is
 * full is no key: it takes no memory.
 *
 * <p>How long a call waits is the Jedis client's socketTimeout, and its pool's maxWait. What happens then is the FailureMode, as it
 * is where the server cannot serve now: while it loads, is a replica, or has no memory or disk left.
 */
public class LimitkvProxyManager extends AbstractProxyManager<String> {

    /** What a call does while the server is away: throw, as Bucket4j does; grant; or refuse. */
    public enum FailureMode { THROW, OPEN, CLOSED }

    private static final ProtocolCommand ACQUIRE = () -> "RL.ACQUIRE".getBytes(), RELEASE = () -> "RL.RELEASE".getBytes();
    private static final long MOST = 1_000_000_000_000L; // that a call can take
    private static final long AWAY_NANOS = 1_000_000_000L; // when to come back, while the server is away

    /** Takes into debt what is back within ARGV[2] ms, and returns when; -1 if it takes longer. ARGV[3] on: the rules. */
    private static final String RESERVE = """
        local taken = redis.call('RL.ACQUIRE', KEYS[1], ARGV[1], unpack(ARGV, 3))
        if taken[1] == 0 then return 0 end
        if taken[4] < 0 or taken[4] > tonumber(ARGV[2]) then return -1 end
        redis.call('RL.ACQUIRE', KEYS[1], ARGV[1], 'FORCE', unpack(ARGV, 3))
        return taken[4]
        """;

    private final UnifiedJedis jedis;
    private final FailureMode failureMode;

    public LimitkvProxyManager(UnifiedJedis jedis, FailureMode failureMode) {
        super(ClientSideConfig.getDefault());
        this.jedis = jedis;
        this.failureMode = failureMode;
    }

    /** The headers that tell of a call on a bucket of one bandwidth, and Retry-After if it was refused. */
    public static Map<String, String> headers(String policy, BucketConfiguration configuration, ConsumptionProbe probe) {
        Map<String, String> headers = new LinkedHashMap<>();
        headers.put("RateLimit-Policy", Rule.parse(rules(configuration).get(0)).policy(Rule.name(policy)));
        headers.put("RateLimit", Rule.state(policy, probe.getRemainingTokens(), millis(probe.getNanosToWaitForReset())));
        if (!probe.isConsumed() && probe.getNanosToWaitForRefill() != Long.MAX_VALUE) {
            headers.put("Retry-After", Long.toString(Math.max(1, Rule.seconds(millis(probe.getNanosToWaitForRefill())))));
        }
        return headers;
    }

    @Override
    @SuppressWarnings("unchecked")
    protected <T> CommandResult<T> execute(String key, Request<T> request) {
        RemoteCommand<?> command = request.getCommand();
        List<String> rules = List.of();
        if (command instanceof CreateInitialStateAndExecuteCommand<?> create) {
            rules = words(create.getConfiguration());
            command = create.getTargetCommand();
        }
        Object data;
        try {
            data = answer(key, command, rules);
        } catch (JedisException e) { // also that the pool has no connection left, while the server hangs
            if (e instanceof JedisDataException && e.getMessage().startsWith("NOLIMITER")) {
                return CommandResult.bucketNotFound(); // then Bucket4j calls again, with the configuration
            }
            if (failureMode == FailureMode.THROW || Rule.isMistake(e)) {
                throw e;
            }
            data = away(command, e);
        }
        return (CommandResult<T>) new CommandResult<>(data, 0);
    }

    private Object answer(String key, RemoteCommand<?> command, List<String> rules) {
        if (command instanceof TryConsumeCommand c) {
            List<Long> reply = acquire(key, c.getTokensToConsume(), rules);
            return reply != null && reply.get(0) == 0;
        } else if (command instanceof TryConsumeAndReturnRemainingTokensCommand c) {
            List<Long> reply = acquire(key, c.getTokensToConsume(), rules);
            if (reply == null) { // never
                List<Long> now = acquire(key, 1, rules, "PEEK");
                return ConsumptionProbe.rejected(now.get(2), Long.MAX_VALUE, nanos(now.get(4)));
            }
            return reply.get(0) == 0 ? ConsumptionProbe.consumed(reply.get(2), nanos(reply.get(4)))
                : ConsumptionProbe.rejected(reply.get(2), nanos(reply.get(3)), nanos(reply.get(4)));
        } else if (command instanceof EstimateAbilityToConsumeCommand c) {
            List<Long> reply = acquire(key, c.getTokensToConsume(), rules, "PEEK");
            if (reply == null) {
                return EstimationProbe.canNotBeConsumed(acquire(key, 1, rules, "PEEK").get(2), Long.MAX_VALUE);
            }
            return reply.get(0) == 0 ? EstimationProbe.canBeConsumed(reply.get(2)) : EstimationProbe.canNotBeConsumed(reply.get(2), nanos(reply.get(3)));
        } else if (command instanceof GetAvailableTokensCommand) {
            return acquire(key, 1, rules, "PEEK").get(2);
        } else if (command instanceof ConsumeAsMuchAsPossibleCommand c) {
            List<Long> reply = acquire(key, Math.min(c.getLimit(), MOST), rules, "ATMOST");
            return reply.get(0) == 0 ? reply.get(5) : 0L;
        } else if (command instanceof ReserveAndCalculateTimeToSleepCommand c) {
            return reserve(key, c.getTokensToConsume(), c.getWaitIfBusyNanosLimit(), rules);
        } else if (command instanceof AddTokensCommand c) {
            jedis.sendCommand(RELEASE, key, Long.toString(c.getTokensToAdd()));
            return Nothing.INSTANCE;
        } else if (command instanceof ResetCommand) {
            jedis.del(key);
            return Nothing.INSTANCE;
        }
        throw new UnsupportedOperationException("limitkv's buckets have no " + command.getClass().getSimpleName());
    }

    private Object away(RemoteCommand<?> command, JedisException e) {
        boolean open = failureMode == FailureMode.OPEN;
        if (command instanceof TryConsumeCommand) {
            return open;
        } else if (command instanceof TryConsumeAndReturnRemainingTokensCommand) {
            return open ? ConsumptionProbe.consumed(0, 0) : ConsumptionProbe.rejected(0, AWAY_NANOS, AWAY_NANOS);
        } else if (command instanceof EstimateAbilityToConsumeCommand) {
            return open ? EstimationProbe.canBeConsumed(0) : EstimationProbe.canNotBeConsumed(0, AWAY_NANOS);
        } else if (command instanceof ConsumeAsMuchAsPossibleCommand c) {
            return open ? c.getLimit() : 0L;
        } else if (command instanceof ReserveAndCalculateTimeToSleepCommand) {
            return open ? 0L : Long.MAX_VALUE;
        }
        throw e;
    }

    /** The five integers of RL.ACQUIRE, or null for a cost above the capacity, which can never be granted. */
    @SuppressWarnings("unchecked")
    private List<Long> acquire(String key, long tokens, List<String> rules, String... options) {
        List<String> args = new ArrayList<>(List.of(key, Long.toString(tokens)));
        args.addAll(List.of(options));
        args.addAll(rules);
        try {
            return (List<Long>) jedis.sendCommand(ACQUIRE, args.toArray(new String[0]));
        } catch (JedisDataException e) {
            if (Rule.isAboveCapacity(e)) {
                return null;
            }
            throw e;
        }
    }

    private long reserve(String key, long tokens, long waitNanos, List<String> rules) {
        List<String> args = new ArrayList<>(List.of(Long.toString(tokens), Long.toString(waitNanos / 1_000_000)));
        args.addAll(rules);
        try {
            long wait = (Long) jedis.eval(RESERVE, List.of(key), args);
            return wait < 0 ? Long.MAX_VALUE : nanos(wait);
        } catch (JedisDataException e) {
            if (Rule.isAboveCapacity(e)) {
                return Long.MAX_VALUE;
            }
            throw e;
        }
    }

    private static List<String> words(BucketConfiguration configuration) {
        return rules(configuration).stream().flatMap(rule -> List.of(rule.split(" ")).stream()).toList();
    }

    private static List<String> rules(BucketConfiguration configuration) {
        List<String> rules = new ArrayList<>();
        for (Bandwidth b : configuration.getBandwidths()) {
            if (b.getInitialTokens() != b.getCapacity() || b.getRefillPeriodNanos() % 1_000_000 != 0 || b.isIntervallyAligned()
                || !b.isGready() && b.getRefillTokens() != b.getCapacity()) {
                throw new UnsupportedOperationException("limitkv has no such bandwidth: " + b);
            }
            long ms = millis(b.getRefillPeriodNanos());
            rules.add(b.isGready() ? "GCRA " + b.getRefillTokens() + " " + ms + " BURST " + b.getCapacity() : "FIXED " + b.getCapacity() + " " + ms);
        }
        return rules;
    }

    private static long nanos(long millis) { return Math.max(0, millis) * 1_000_000; }

    private static long millis(long nanos) { return nanos / 1_000_000 + (nanos % 1_000_000 > 0 ? 1 : 0); }

    @Override
    public void removeProxy(String key) { jedis.del(key); }

    @Override
    public boolean isAsyncModeSupported() { return true; }

    @Override
    protected <T> CompletableFuture<CommandResult<T>> executeAsync(String key, Request<T> request) {
        return CompletableFuture.supplyAsync(() -> execute(key, request));
    }

    @Override
    protected CompletableFuture<Void> removeAsync(String key) {
        return CompletableFuture.runAsync(() -> removeProxy(key));
    }
}
