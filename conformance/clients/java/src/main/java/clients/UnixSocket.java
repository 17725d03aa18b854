// A java.net.Socket over a unix socket, as users of Jedis write it: Java has channels for unix sockets, but no Socket.
package clients;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.Socket;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.channels.Channels;
import java.nio.file.Path;

final class UnixSocket extends Socket {
  private final SocketChannel channel;

  UnixSocket(Path path) throws IOException {
    channel = SocketChannel.open(UnixDomainSocketAddress.of(path));
  }

  @Override
  public InputStream getInputStream() {
    return Channels.newInputStream(channel);
  }

  @Override
  public OutputStream getOutputStream() {
    return new OutputStream() {
      @Override
      public void write(int b) throws IOException {
        write(new byte[] {(byte) b}, 0, 1);
      }

      @Override
      public void write(byte[] b, int off, int len) throws IOException {
        for (ByteBuffer buffer = ByteBuffer.wrap(b, off, len); buffer.hasRemaining(); ) {
          channel.write(buffer);
        }
      }
    };
  }

  @Override
  public boolean isConnected() {
    return channel.isConnected();
  }

  @Override
  public boolean isBound() {
    return true;
  }

  @Override
  public boolean isClosed() {
    return !channel.isOpen();
  }

  @Override
  public void setSoTimeout(int timeout) {
    // A channel has no timeout; a check has.
  }

  @Override
  public int getSoTimeout() {
    return 0;
  }

  @Override
  public void close() throws IOException {
    channel.close();
  }
}
