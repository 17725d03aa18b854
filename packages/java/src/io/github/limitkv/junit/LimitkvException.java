package io.github.limitkv.junit;

/** A command was refused, or there is no server. */
public final class LimitkvException extends RuntimeException {
  private static final long serialVersionUID = 1;

  LimitkvException(String message) {
    super(message);
  }

  LimitkvException(String message, Throwable cause) {
    super(message, cause);
  }
}
