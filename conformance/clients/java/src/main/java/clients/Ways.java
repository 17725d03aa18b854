// The ways to reach a server, which every client is tried on: passwords, users, TLS with and without a certificate of the
// client's own, a unix socket. What a way must refuse is as much of a check as what it lets in.
package clients;

import java.util.List;

/** A way to connect. The port is that of the server; user and password may be null; unix is whether it is by the socket. */
record Ways(String area, String name, int port, String user, String password, boolean tls, boolean certified, boolean unix,
    boolean refused) {

  /** Connects and does something that needs the server; protocol is 2 or 3. */
  interface Use {
    void of(Ways way, int protocol) throws Exception;
  }

  static List<Ways> of(Servers s) {
    return List.of(
        new Ways("connect", "TCP", s.plain, null, null, false, false, false, false),
        new Ways("auth", "password", s.secret, null, Servers.PASSWORD, false, false, false, false),
        new Ways("auth", "ACL user", s.secret, Servers.USER, Servers.USER_PASSWORD, false, false, false, false),
        new Ways("auth", "a wrong password is refused", s.secret, null, "wrong", false, false, false, true),
        new Ways("auth", "no password is refused", s.secret, null, null, false, false, false, true),
        new Ways("tls", "server certificate verified", s.tls, null, null, true, false, false, false),
        new Ways("tls", "client certificate", s.mutual, null, null, true, true, false, false),
        new Ways("tls", "no client certificate is refused", s.mutual, null, null, true, false, false, true),
        new Ways("unix", "unix socket", 0, null, null, false, false, true, false));
  }

  /** Runs a check for each way and protocol. before is in front of the checks' names. */
  static void check(Checks checks, Servers servers, String before, boolean unix, int[] protocols, Use use) {
    for (Ways w : of(servers)) {
      if (w.unix && !unix) {
        continue;
      }
      for (int protocol : protocols) {
        String area = w.area.equals("connect") && protocol == 3 ? "resp3" : w.area;
        checks.check(area, before + w.name + ", RESP" + protocol, () -> {
          if (w.refused) {
            Checks.wantThrown(Exception.class, () -> use.of(w, protocol));
          } else {
            use.of(w, protocol);
          }
        });
      }
    }
  }
}
