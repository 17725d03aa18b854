// The servers that the checks use, started as a user would start them: an open one with a unix socket as well, one with a
// password, and one with TLS, whose certificate is made for the occasion. With SERVER_KIND=redis the binary that LIMITKV
// names is a redis-server, so that a check which fails can be told from a check which is wrong.
package clients;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

final class Servers implements AutoCloseable {
  static final String PASSWORD = "a-secret";
  static final String TRUST_PASSWORD = "changeit";

  private static final boolean REDIS = "redis".equals(System.getenv("SERVER_KIND"));
  private static final Pattern READY = Pattern.compile("listens on 127\\.0\\.0\\.1:(\\d+)|Ready to accept connections tcp");

  /** The port of the server that is open, of the one with a password, of the one with TLS (0 if it has no TLS). */
  final int plain, secret, tls;
  final Path socket, trust;

  private final Path dir;
  private final List<Process> processes = Collections.synchronizedList(new ArrayList<>());

  Servers() throws Exception {
    dir = Files.createTempDirectory("limitkv-java-");
    Runtime.getRuntime().addShutdownHook(new Thread(this::close));
    socket = dir.resolve("sock");
    trust = dir.resolve("trust.p12");
    Path cert = dir.resolve("cert.pem"), key = dir.resolve("key.pem");
    execute("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key.toString(), "-out", cert.toString(),
        "-days", "1", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost");
    writeTrust(cert);
    plain = start("--unixsocket", socket.toString());
    secret = start("--requirepass", PASSWORD);
    tls = hasTls() ? startTls(cert, key) : 0;
  }

  private int startTls(Path cert, Path key) throws Exception {
    int port = freePort();
    start("--tls-port", "" + port, "--tls-cert-file", cert.toString(), "--tls-key-file", key.toString(),
        "--tls-ca-cert-file", cert.toString(), "--tls-auth-clients", "no");
    return port;
  }

  /** A Redis may be built without TLS. */
  private boolean hasTls() throws Exception {
    if (!REDIS) {
      return true;
    }
    Process ldd = new ProcessBuilder("ldd", binary()).redirectErrorStream(true).start();
    return new String(ldd.getInputStream().readAllBytes()).contains("libssl");
  }

  private static String binary() {
    String binary = System.getenv("LIMITKV");
    if (binary == null) {
      throw new IllegalStateException("LIMITKV does not name the server's binary");
    }
    return binary;
  }

  /** Starts a server and returns the port that it listens on. */
  private int start(String... arguments) throws Exception {
    List<String> command = new ArrayList<>(List.of(binary()));
    int port = 0;
    if (REDIS) {
      port = freePort();
      command.addAll(List.of("--save", "", "--bind", "127.0.0.1"));
    }
    command.addAll(List.of("--port", "" + port));
    command.addAll(List.of(arguments));
    Process p = new ProcessBuilder(command).directory(dir.toFile()).redirectErrorStream(true).start();
    processes.add(p);
    BufferedReader lines = new BufferedReader(new InputStreamReader(p.getInputStream()));
    CompletableFuture<Integer> ready = new CompletableFuture<>();
    int given = port;
    Thread reader = new Thread(() -> read(lines, given, ready), "server output");
    reader.setDaemon(true);
    reader.start();
    return ready.get(10, TimeUnit.SECONDS);
  }

  /** Reads what a server prints, to its end, so that it never waits for its reader. */
  private static void read(BufferedReader lines, int given, CompletableFuture<Integer> ready) {
    StringBuilder said = new StringBuilder();
    try {
      for (String line; (line = lines.readLine()) != null; ) {
        Matcher m = READY.matcher(line);
        if (m.find()) {
          ready.complete(m.group(1) == null ? given : Integer.parseInt(m.group(1)));
        }
        if (!ready.isDone()) {
          said.append(line).append('\n');
        }
      }
    } catch (IOException e) {
      said.append(e);
    }
    ready.completeExceptionally(new IOException("the server ended: " + said));
  }

  private static int freePort() throws IOException {
    try (ServerSocket s = new ServerSocket(0)) {
      return s.getLocalPort();
    }
  }

  private static void execute(String... command) throws Exception {
    Process p = new ProcessBuilder(command).redirectErrorStream(true).start();
    String said = new String(p.getInputStream().readAllBytes());
    if (p.waitFor() != 0) {
      throw new IOException(command[0] + ": " + said);
    }
  }

  /** Puts the certificate into a store, which is how Java programs are told whom to trust. */
  private void writeTrust(Path cert) throws Exception {
    KeyStore store = KeyStore.getInstance("PKCS12");
    store.load(null, null);
    try (var in = Files.newInputStream(cert); OutputStream out = Files.newOutputStream(trust)) {
      store.setCertificateEntry("server", CertificateFactory.getInstance("X.509").generateCertificate(in));
      store.store(out, TRUST_PASSWORD.toCharArray());
    }
  }

  @Override
  public synchronized void close() {
    for (Process p : processes) {
      p.destroyForcibly();
    }
    try (var files = Files.walk(dir)) {
      files.sorted(Comparator.reverseOrder()).forEach(f -> f.toFile().delete());
    } catch (IOException e) {
      // Nothing is left to remove.
    }
  }
}
