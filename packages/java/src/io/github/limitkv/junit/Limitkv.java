package io.github.limitkv.junit;

import java.net.URI;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;

/**
 * An address where any Redis client connects, and what a test can do to what is behind it: a {@link LimitkvServer}, or a
 * {@link LimitkvNamespace} of one.
 */
public abstract class Limitkv implements AutoCloseable {
  private static final AtomicLong NUMBERS = new AtomicLong();

  private final String host;
  private final int port;
  private final String password;
  private final Connection connection;

  Limitkv(String host, int port, String password) {
    this.host = host;
    this.port = port;
    this.password = password;
    this.connection = new Connection(host, port, password);
  }

  /** A name that no other snapshot or namespace of any process has. */
  static String uniqueName() {
    return "java-" + ProcessHandle.current().pid() + "-" + NUMBERS.incrementAndGet();
  }

  abstract LimitkvServer server();

  /** Ends it. */
  @Override
  public void close() {
    connection.close();
  }

  /** The host, an IP address. */
  public String host() {
    return host;
  }

  /** The port. */
  public int port() {
    return port;
  }

  /** The password, null if there is none. */
  public String password() {
    return password;
  }

  /** The address as clients take it: redis://127.0.0.1:12345. */
  public String url() {
    var user = "";
    if (password != null) {
      user = ":" + URLEncoder.encode(password, StandardCharsets.UTF_8).replace("+", "%20") + "@";
    }
    return "redis://" + user + (host.contains(":") ? "[" + host + "]" : host) + ":" + port;
  }

  /** The same as {@link #url()}. */
  public URI uri() {
    return URI.create(url());
  }

  /**
   * Sends any command. Words are sent as they print, byte arrays as they are.
   *
   * @return a String, a Long, a List of these, or null
   * @throws LimitkvException if the server refuses it
   */
  public Object run(Object... words) {
    return connection.run(words);
  }

  /** Empties all databases. */
  public void flushAll() {
    run("FLUSHALL");
  }

  /** Stops the clock, by which TTLs, TIME, limiters, queues, locks and the timeouts of blocking commands go. */
  public void freeze() {
    run("LKV.CLOCK", "FREEZE");
    server().frozen = true;
  }

  /** Stops the clock at a time, to the millisecond. */
  public void freeze(Instant at) {
    run("LKV.CLOCK", "FREEZE", at.toEpochMilli());
    server().frozen = true;
  }

  /**
   * Stops the clock if it runs, and moves it forward by whole milliseconds. All that falls due on the way has happened, in
   * order of time, when it returns.
   */
  public void advance(Duration by) {
    run("LKV.CLOCK", "ADVANCE", by.toMillis());
    server().frozen = true;
  }

  /** Lets the clock run again, with the system's time. */
  public void resume() {
    run("LKV.CLOCK", "RESUME");
    server().frozen = false;
  }

  /** The server's time. */
  public Instant now() {
    return Instant.ofEpochMilli((Long) run("LKV.CLOCK", "NOW"));
  }

  /** Makes the server's random choices (SPOP, RANDOMKEY, math.random in scripts) repeatable. */
  public void seed(long seed) {
    run("LKV.SEED", seed);
  }

  /** Keeps all keys of all databases, and the functions. */
  public Snapshot snapshot() {
    return new Snapshot(this);
  }

  /**
   * Has the next commands that match reply an error.
   *
   * @param pattern a name with * and ? ("get", "z*", "config|set"), or, with a blank in it, a whole line ("GET user:*")
   * @param text the error, which begins with its code: "LOADING Redis is loading the dataset in memory"
   */
  public void failNext(String pattern, int count, String text) {
    run("LKV.FAULT", "ADD", pattern, count, "ERROR", text);
  }

  /** Has the next commands that match run later, by the server's clock. */
  public void delayNext(String pattern, int count, Duration by) {
    run("LKV.FAULT", "ADD", pattern, count, "DELAY", by.toMillis());
  }

  /** Has the next commands that match end their connection instead of running. */
  public void disconnectNext(String pattern, int count) {
    run("LKV.FAULT", "ADD", pattern, count, "DISCONNECT");
  }

  /** Takes back the faults that have not happened yet. */
  public void clearFaults() {
    run("LKV.FAULT", "CLEAR");
  }

  /** Begins to keep the commands that clients send, and forgets what was kept before. */
  public void record() {
    run("LKV.LOG", "ON");
    run("LKV.LOG", "RESET");
  }

  /** The commands that were received since {@link #record()} and match a pattern ("*" for all), the oldest first. */
  @SuppressWarnings("unchecked")
  public List<List<String>> received(String pattern) {
    var received = new ArrayList<List<String>>();
    for (var entry : (List<List<Object>>) run("LKV.LOG", "GET", "MATCH", pattern)) {
      received.add((List<String>) entry.get(3));
    }
    return received;
  }

  /** What is to a test as a server of its own, and costs less. */
  public LimitkvNamespace namespace() {
    return new LimitkvNamespace(server());
  }

  /** All keys as they were. Closing it brings them back, and forgets them. */
  public static final class Snapshot implements AutoCloseable {
    private final Limitkv keys;
    private final String name = uniqueName();
    private final Instant at;

    private Snapshot(Limitkv keys) {
      this.keys = keys;
      this.at = keys == keys.server() && keys.server().frozen ? keys.now() : null;
      keys.run("LKV.SNAPSHOT", "SAVE", name);
    }

    /**
     * Brings them back, as often as it is called. A server's clock that stood is put back, since deadlines are times; a
     * namespace's is not its alone.
     */
    public void restore() {
      if (at != null) {
        keys.freeze(at);
      }
      keys.run("LKV.SNAPSHOT", "RESTORE", name);
    }

    @Override
    public void close() {
      restore();
      keys.run("LKV.SNAPSHOT", "DROP", name);
    }
  }
}
