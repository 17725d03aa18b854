// The servers that the checks use, started as a user would start them: an open one with a unix socket as well, one with a
// password and a user, two with TLS – the second asks for the client's certificate –, and a cluster of one node.
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

  static final String USER = "app", USER_PASSWORD = "another";

  private static final Pattern READY = Pattern.compile("listens on 127\\.0\\.0\\.1:(\\d+)");

  /** The ports of the servers. */
  final int plain, secret, tls, mutual, clustered;

  /** The unix socket, the store of whom to trust, the store of a client's own certificate. */
  final Path socket, trust, own;

  private final Path dir;
  private final List<Process> processes = Collections.synchronizedList(new ArrayList<>());

  Servers() throws Exception {
    dir = Files.createTempDirectory("limitkv-java-");
    Runtime.getRuntime().addShutdownHook(new Thread(this::close));
    socket = dir.resolve("sock");
    trust = dir.resolve("trust.p12");
    own = dir.resolve("own.p12");
    Path cert = dir.resolve("cert.pem"), key = dir.resolve("key.pem");
    execute("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key.toString(), "-out", cert.toString(),
        "-days", "1", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost");
    execute("openssl", "pkcs12", "-export", "-in", cert.toString(), "-inkey", key.toString(), "-out", own.toString(), "-passout",
        "pass:" + TRUST_PASSWORD);
    writeTrust(cert);
    plain = start("--unixsocket", socket.toString(), "--notify-keyspace-events", "KEA");
    secret = start("--requirepass", PASSWORD, "--user", USER, "on", ">" + USER_PASSWORD, "~*", "&*", "+@all", "-@dangerous", "+info");
    tls = startTls(cert, key, "no");
    mutual = startTls(cert, key, "yes");
    clustered = start("--cluster-enabled", "yes");
  }

  private int startTls(Path cert, Path key, String authClients) throws Exception {
    int port = freePort();
    start("--tls-port", "" + port, "--tls-cert-file", cert.toString(), "--tls-key-file", key.toString(),
        "--tls-ca-cert-file", cert.toString(), "--tls-auth-clients", authClients);
    return port;
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
    List<String> command = new ArrayList<>(List.of(binary(), "--save", "", "--port", "0"));
    command.addAll(List.of(arguments));
    Process p = new ProcessBuilder(command).directory(dir.toFile()).redirectErrorStream(true).start();
    processes.add(p);
    BufferedReader lines = new BufferedReader(new InputStreamReader(p.getInputStream()));
    CompletableFuture<Integer> ready = new CompletableFuture<>();
    Thread reader = new Thread(() -> read(lines, ready), "server output");
    reader.setDaemon(true);
    reader.start();
    return ready.get(10, TimeUnit.SECONDS);
  }

  /** Reads what a server prints, to its end, so that it never waits for its reader. */
  private static void read(BufferedReader lines, CompletableFuture<Integer> ready) {
    StringBuilder said = new StringBuilder();
    try {
      for (String line; (line = lines.readLine()) != null; ) {
        Matcher m = READY.matcher(line);
        if (m.find()) {
          ready.complete(Integer.parseInt(m.group(1)));
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
