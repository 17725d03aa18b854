package io.github.limitkv.junit;

import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Locale;

/**
 * The server's binary, which is in the jar for each platform. It is unpacked once, into a folder of the user's cache that is
 * named by what is in it: a system's folder for temporary files is for everybody, and somebody else could have put it there.
 */
final class Binary {
  private static Path path;

  private Binary() {}

  static synchronized Path path() {
    if (path == null) {
      try {
        path = unpack(platform(System.getProperty("os.name"), System.getProperty("os.arch")));
      } catch (IOException e) {
        throw new LimitkvException("limitkv cannot be unpacked: " + e, e);
      }
    }
    return path;
  }

  static String platform(String os, String arch) {
    os = os.toLowerCase(Locale.ROOT);
    var system = os.startsWith("windows") ? "windows" : os.startsWith("mac") ? "darwin" : os;
    var processor = arch.equals("x86_64") ? "amd64" : arch.equals("aarch64") ? "arm64" : arch;
    return system + "-" + processor;
  }

  private static Path unpack(String platform) throws IOException {
    var name = platform.startsWith("windows") ? "limitkv.exe" : "limitkv";
    var sum = Binary.class.getResourceAsStream("bin/" + platform + "/sha256");
    var binary = Binary.class.getResource("bin/" + platform + "/" + name);
    if (sum == null || binary == null) {
      throw new LimitkvException("limitkv: there is no binary for " + platform);
    }
    Path target;
    try (sum) {
      target = cache().resolve("limitkv").resolve(new String(sum.readAllBytes()).strip()).resolve(name);
    }
    if (Files.isExecutable(target)) {
      return target;
    }
    Files.createDirectories(target.getParent());
    var part = Files.createTempFile(target.getParent(), name, ".part");
    try (var in = binary.openStream()) {
      Files.copy(in, part, StandardCopyOption.REPLACE_EXISTING);
      if (!part.toFile().setExecutable(true)) {
        throw new IOException(part + " cannot be made executable");
      }
      // Another process may do the same: who is last replaces the file by one of the same bytes.
      Files.move(part, target, StandardCopyOption.ATOMIC_MOVE);
    } catch (FileAlreadyExistsException e) {
      return target; // on Windows, where it may run already
    } finally {
      Files.deleteIfExists(part);
    }
    return target;
  }

  private static Path cache() {
    var home = System.getProperty("user.home");
    for (var variable : new String[] {"XDG_CACHE_HOME", "LOCALAPPDATA"}) {
      var dir = System.getenv(variable);
      if (dir != null && !dir.isEmpty()) {
        return Path.of(dir);
      }
    }
    return Path.of(home, ".cache");
  }
}
