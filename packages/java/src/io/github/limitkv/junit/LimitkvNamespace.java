package io.github.limitkv.junit;

/**
 * What is to a test as a server of its own: databases, channels, functions, faults and snapshots that nobody else sees. The
 * clock, the random numbers, the settings and the users are the server's, for all. Closing it removes it with everything in it.
 */
public final class LimitkvNamespace extends Limitkv {
  private final LimitkvServer server;
  private final String name;

  LimitkvNamespace(LimitkvServer server) {
    this(server, uniqueName());
  }

  private LimitkvNamespace(LimitkvServer server, String name) {
    super(server.host(), ((Long) server.run("LKV.NAMESPACE", "PORT", name)).intValue(), server.password());
    this.server = server;
    this.name = name;
  }

  /** The namespace's name. */
  public String name() {
    return name;
  }

  @Override
  LimitkvServer server() {
    return server;
  }

  @Override
  public void close() {
    super.close();
    server.run("LKV.NAMESPACE", "DROP", name);
  }
}
