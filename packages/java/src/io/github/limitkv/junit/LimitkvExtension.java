package io.github.limitkv.junit;

import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ExtensionContext.Namespace;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;

/**
 * Hands out servers to tests by the type of their parameters. One server serves all tests of the JVM; a {@link Limitkv} parameter
 * is a namespace of it that only this test sees, empty when the test begins. A {@link LimitkvServer} is that server itself.
 * When a test has ended, the clock runs again.
 *
 * <pre>{@code
 * @ExtendWith(LimitkvExtension.class)
 * class SessionTest {
 *   @Test
 *   void sessionEndsAfterAMinute(Limitkv limitkv) {
 *     try (var client = new JedisPooled(limitkv.uri())) {
 *       client.setex("session", 60, "42");
 *       limitkv.advance(Duration.ofSeconds(61)); // what falls due meanwhile has happened
 *       assertNull(client.get("session"));
 *     }
 *   }
 * }
 * }</pre>
 */
public final class LimitkvExtension implements ParameterResolver, AfterEachCallback {
  /** What a test was given, closed by JUnit when that test has ended. */
  private static final class Given implements ExtensionContext.Store.CloseableResource {
    final LimitkvNamespace namespace = LimitkvServer.shared().namespace();

    @Override
    public void close() {
      namespace.close();
    }
  }

  @Override
  public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
    var type = parameter.getParameter().getType();
    return type == Limitkv.class || type == LimitkvServer.class;
  }

  @Override
  public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
    if (parameter.getParameter().getType() == LimitkvServer.class) {
      return LimitkvServer.shared();
    }
    var store = context.getStore(Namespace.create(LimitkvExtension.class));
    return store.getOrComputeIfAbsent(Given.class, key -> new Given(), Given.class).namespace;
  }

  @Override
  public void afterEach(ExtensionContext context) {
    LimitkvServer.resumeShared();
  }
}
