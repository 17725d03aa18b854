// The checks of one client, each a line for the runner: what was tried, and why it failed if it did. A check has a time
// limit, since a server that never answers must be a failed check and not a run without an end.
package clients;

import java.io.InputStream;
import java.io.PrintStream;
import java.util.Objects;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.BooleanSupplier;

final class Checks {
  /** Most seconds for a check; the longest waits 19 seconds for its permits. */
  private static final int SECONDS_MAX = 40;

  private static final PrintStream OUT = System.out;

  private final String client, version;

  Checks(String client, String group, String artifact) throws Exception {
    this.client = client;
    this.version = version(group, artifact);
  }

  /** For a library that says its version in another way. */
  Checks(String client, String version) {
    this.client = client;
    this.version = version;
  }

  interface Body {
    void run() throws Exception;
  }

  /** The version that the library says it is, which Maven puts into its jar. */
  private static String version(String group, String artifact) throws Exception {
    Properties p = new Properties();
    try (InputStream in = Checks.class.getResourceAsStream("/META-INF/maven/" + group + "/" + artifact + "/pom.properties")) {
      p.load(in);
    }
    return p.getProperty("version");
  }

  void check(String area, String name, Body body) {
    FutureTask<Void> task = new FutureTask<>(() -> {
      body.run();
      return null;
    });
    Thread t = new Thread(task, client + ": " + name);
    t.setDaemon(true);
    t.start();
    try {
      task.get(SECONDS_MAX, TimeUnit.SECONDS);
      print("pass", area, name);
    } catch (ExecutionException e) {
      print("fail", area, name, reason(e.getCause()));
    } catch (TimeoutException e) {
      StackTraceElement[] at = t.getStackTrace();
      t.interrupt();
      print("fail", area, name, "not done after " + SECONDS_MAX + " s" + where(at));
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  private static String reason(Throwable e) {
    StringBuilder s = new StringBuilder(e.toString());
    for (Throwable c = e.getCause(); c != null; c = c.getCause()) {
      s.append("; ").append(c);
    }
    return s + where(e.getStackTrace());
  }

  /** The line of the check that it happened in. */
  private static String where(StackTraceElement[] stack) {
    for (StackTraceElement e : stack) {
      if (e.getClassName().startsWith("clients.") && !e.getClassName().equals("clients.Checks")) {
        return " (" + e.getFileName() + ":" + e.getLineNumber() + ")";
      }
    }
    return "";
  }

  private void print(String verdict, String area, String name, String... reason) {
    StringBuilder line = new StringBuilder(String.join("\t", verdict, client, version, area, name));
    for (String r : reason) {
      line.append('\t').append(r.replaceAll("\\s+", " "));
    }
    synchronized (OUT) {
      OUT.println(line);
      OUT.flush();
    }
  }

  static void want(Object got, Object wanted) {
    if (!Objects.equals(got, wanted)) {
      throw new AssertionError(got + " is not " + wanted);
    }
  }

  static void wantTrue(boolean got, String what) {
    if (!got) {
      throw new AssertionError(what);
    }
  }

  /** Says that low ≤ got ≤ high, for times and what depends on them. */
  static void wantBetween(long got, long low, long high, String what) {
    wantTrue(low <= got && got <= high, what + ": " + got + " is not between " + low + " and " + high);
  }

  /** Says that the body fails with this exception, and returns it. */
  static <E extends Throwable> E wantThrown(Class<E> kind, Body body) {
    try {
      body.run();
    } catch (Throwable e) {
      for (Throwable c = e; c != null; c = c.getCause()) {
        if (kind.isInstance(c)) {
          return kind.cast(c);
        }
      }
      throw new AssertionError(e + " is not a " + kind.getSimpleName(), e);
    }
    throw new AssertionError("nothing was thrown, not " + kind.getSimpleName());
  }

  /** Waits up to 30 s for what another thread or the server does in its own time. */
  static void eventually(String what, BooleanSupplier condition) throws InterruptedException {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(30);
    while (!condition.getAsBoolean()) {
      wantTrue(System.nanoTime() < end, "not within 30 s: " + what);
      Thread.sleep(5);
    }
  }

  /** Sleeps, where an interruption cannot be thrown on. */
  static void pause(int millis) {
    try {
      Thread.sleep(millis);
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  /** Runs the body and returns its milliseconds. */
  static long millis(Body body) throws Exception {
    long start = System.nanoTime();
    body.run();
    return TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - start);
  }
}
