package io.github.limitkv.junit;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;

/**
 * A running server, a process of its own with the commands of {@code --test}, which keeps nothing on disk. It ends when it is
 * closed, and with this JVM at the latest, however that ends.
 */
public final class LimitkvServer extends Limitkv {
  private static final Pattern LISTENS = Pattern.compile(" listens on (\\S+):(\\d+) ");
  private static final int LOG_LINES = 1000;

  private static LimitkvServer shared;

  private final Child child;

  /** The clock stands. */
  volatile boolean frozen;

  private LimitkvServer(Child child, String password) {
    super(child.host, child.port, password);
    this.child = child;
  }

  /**
   * Starts a server on a free port of 127.0.0.1.
   *
   * @param flags as on the command line: "--requirepass", "secret"
   */
  public static LimitkvServer start(String... flags) {
    var child = new Child(flags);
    try {
      return new LimitkvServer(child, flag(flags, "--requirepass"));
    } catch (RuntimeException e) {
      child.end();
      throw e;
    }
  }

  /** The server that all tests of this JVM share, started when it is first asked for. It is not to be closed. */
  public static synchronized LimitkvServer shared() {
    if (shared == null) {
      shared = start();
    }
    return shared;
  }

  static synchronized void resumeShared() {
    if (shared != null) {
      shared.resume();
    }
  }

  /** The server's process id. */
  public long pid() {
    return child.process.pid();
  }

  /** The last lines that the server printed. */
  public String log() {
    return child.log();
  }

  @Override
  LimitkvServer server() {
    return this;
  }

  /** Stops the server. */
  @Override
  public void close() {
    super.close();
    child.end();
  }

  /** The process. */
  private static final class Child {
    final Process process;
    String host;
    int port;
    private final ArrayDeque<String> log = new ArrayDeque<>();

    Child(String... flags) {
      // Standard input is never written to: its end is how the server learns that this JVM is gone.
      var command = new ArrayList<>(
          List.of(Binary.path().toString(), "--test", "--until-eof", "--port", "0", "--loglevel", "warning"));
      command.addAll(List.of(flags));
      try {
        process = new ProcessBuilder(command).redirectErrorStream(true).start();
        var printed = new BufferedReader(new InputStreamReader(process.getInputStream(), UTF_8));
        for (String line; (line = printed.readLine()) != null; ) {
          keep(line);
          var found = LISTENS.matcher(line);
          if (found.find()) {
            host = found.group(1).replaceAll("[\\[\\]]", "");
            port = Integer.parseInt(found.group(2));
            // Who reads goes on, so that the server never waits for its log to be read.
            var reader = new Thread(() -> printed.lines().forEach(this::keep), "limitkv-log");
            reader.setDaemon(true);
            reader.start();
            return;
          }
        }
      } catch (IOException e) {
        throw new LimitkvException("limitkv did not start: " + e.getMessage(), e);
      }
      throw new LimitkvException("limitkv did not start: " + log());
    }

    private void keep(String line) {
      synchronized (log) {
        log.add(line);
        if (log.size() > LOG_LINES) {
          log.remove();
        }
      }
    }

    String log() {
      synchronized (log) {
        return String.join("\n", log);
      }
    }

    void end() {
      try {
        process.getOutputStream().close();
        if (!process.waitFor(10, TimeUnit.SECONDS)) {
          process.destroyForcibly().waitFor();
        }
      } catch (IOException e) {
        process.destroyForcibly();
      } catch (InterruptedException e) {
        process.destroyForcibly();
        Thread.currentThread().interrupt();
      }
    }
  }

  /** The value of a flag, the last one if it is given twice. */
  private static String flag(String[] flags, String name) {
    String value = null;
    for (int i = 0; i < flags.length; i++) {
      if (flags[i].equals(name) && i + 1 < flags.length) {
        value = flags[i + 1];
      } else if (flags[i].startsWith(name + "=")) {
        value = flags[i].substring(name.length() + 1);
      }
    }
    return value;
  }
}
