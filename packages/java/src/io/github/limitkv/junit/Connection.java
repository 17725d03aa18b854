package io.github.limitkv.junit;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.net.Socket;
import java.util.ArrayList;

/** A client of one connection, with as much of the protocol as the helpers need, so that they need no client library. */
final class Connection {
  private final Socket socket;
  private final InputStream in;

  Connection(String host, int port, String password) {
    try {
      socket = new Socket(host, port);
      socket.setTcpNoDelay(true);
      in = new BufferedInputStream(socket.getInputStream());
    } catch (IOException e) {
      throw new LimitkvException("limitkv at " + host + ":" + port + ": " + e.getMessage(), e);
    }
    if (password != null) {
      run("AUTH", password);
    }
  }

  synchronized Object run(Object... words) {
    try {
      var request = new ByteArrayOutputStream();
      request.write(("*" + words.length + "\r\n").getBytes(UTF_8));
      for (var word : words) {
        var bytes = word instanceof byte[] ? (byte[]) word : String.valueOf(word).getBytes(UTF_8);
        request.write(("$" + bytes.length + "\r\n").getBytes(UTF_8));
        request.write(bytes);
        request.write('\r');
        request.write('\n');
      }
      socket.getOutputStream().write(request.toByteArray());
      var reply = read();
      if (reply instanceof LimitkvException) {
        throw (LimitkvException) ((LimitkvException) reply).fillInStackTrace();
      }
      return reply;
    } catch (IOException e) {
      throw new LimitkvException("limitkv: " + e.getMessage(), e);
    }
  }

  private Object read() throws IOException {
    var line = line();
    var text = line.substring(1);
    switch (line.charAt(0)) {
      case '+':
        return text;
      case '-':
        return new LimitkvException(text);
      case ':':
        return Long.valueOf(text);
      case '$':
        var length = Integer.parseInt(text);
        if (length < 0) {
          return null;
        }
        var bytes = in.readNBytes(length + 2);
        if (bytes.length != length + 2) {
          throw new EOFException("the connection was closed");
        }
        return new String(bytes, 0, length, UTF_8);
      case '*':
        var count = Integer.parseInt(text);
        if (count < 0) {
          return null;
        }
        var list = new ArrayList<Object>(count);
        for (int i = 0; i < count; i++) {
          list.add(read());
        }
        return list;
      default:
        throw new IOException("unexpected reply " + line);
    }
  }

  private String line() throws IOException {
    var bytes = new ByteArrayOutputStream();
    for (int b; (b = in.read()) != '\n'; ) {
      if (b < 0) {
        throw new EOFException("the connection was closed");
      }
      if (b != '\r') {
        bytes.write(b);
      }
    }
    return bytes.toString(UTF_8);
  }

  void close() {
    try {
      socket.close();
    } catch (IOException e) {
      throw new LimitkvException("limitkv: " + e.getMessage(), e);
    }
  }
}
