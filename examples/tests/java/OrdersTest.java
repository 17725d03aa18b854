import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.nio.charset.StandardCharsets;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import redis.clients.jedis.JedisPooled;
import redis.clients.jedis.util.SafeEncoder;

/** An order's time-out and a login's limit, without waiting for them: JUnit 5 and Jedis. */
class OrdersTest {
    static final JedisPooled CLIENT = new JedisPooled(System.getenv("LIMITKV_URL"));

    static Object send(String command, String... args) { return CLIENT.sendCommand(() -> SafeEncoder.encode(command), args); }

    static void advance(long ms) { send("LKV.CLOCK", "ADVANCE", Long.toString(ms)); }

    static long login() { return (Long) ((List<?>) send("RL.ACQUIRE", "login:ann", "1", "LOG", "3", "60000")).get(0); }

    @BeforeEach
    void begin() {
        CLIENT.flushAll();
        send("LKV.CLOCK", "FREEZE"); // from here on time passes only when a test says so
    }

    @Test
    void anOrderIsOverAfter15Minutes() {
        send("DQ.ADD", "orders", "DELAY", "900000", "ID", "order:7", "ann");
        advance(899999);
        assertNull(send("DQ.POP", "orders"));
        advance(1);
        List<?> entry = (List<?>) ((List<?>) send("DQ.POP", "orders")).get(0);
        assertEquals("order:7", new String((byte[]) entry.get(0), StandardCharsets.UTF_8));
    }

    @Test
    void theFourthLoginInAMinuteIsRefused() {
        assertEquals(List.of(0L, 0L, 0L, 1L), List.of(login(), login(), login(), login()));
        advance(60000);
        assertEquals(0, login());
    }
}
