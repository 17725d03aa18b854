// The digest that a script is known by, computed by the client as users do, so that the server's is checked by it.
package clients;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.HexFormat;

final class Scripts {
  private Scripts() {}

  static String sha1(String script) throws Exception {
    return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-1").digest(script.getBytes(StandardCharsets.UTF_8)));
  }
}
