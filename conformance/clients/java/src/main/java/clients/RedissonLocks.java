// Redisson's locks and synchronizers between two clients, so that what wakes a waiter has come over the server.
package clients;

import static clients.Checks.eventually;
import static clients.Checks.millis;
import static clients.Checks.want;
import static clients.Checks.wantBetween;
import static clients.Checks.wantThrown;
import static clients.Checks.wantTrue;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.redisson.api.RCountDownLatch;
import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RReadWriteLock;
import org.redisson.api.RSemaphore;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;
import org.redisson.config.Protocol;

final class RedissonLocks {
  private static final String P = "redisson:locks:";

  private final Checks checks;
  private final RedissonClient a, b;
  private final Servers servers;

  private RedissonLocks(Servers servers) throws Exception {
    this.servers = servers;
    checks = new Checks("Redisson", "org.redisson", "redisson");
    a = RedissonClients.open(servers, Protocol.RESP2);
    b = RedissonClients.open(servers, Protocol.RESP3);
  }

  static void run(Servers servers) throws Exception {
    RedissonLocks l = new RedissonLocks(servers);
    l.locks();
    l.kinds();
    l.synchronizers();
    l.a.shutdown();
    l.b.shutdown();
  }

  /** Runs the body in another thread, since locks are held by threads. */
  private static <T> CompletableFuture<T> elsewhere(java.util.concurrent.Callable<T> body) {
    CompletableFuture<T> f = new CompletableFuture<>();
    Thread t = new Thread(() -> {
      try {
        f.complete(body.call());
      } catch (Throwable e) {
        f.completeExceptionally(e);
      }
    });
    t.setDaemon(true);
    t.start();
    return f;
  }

  private void locks() {
    checks.check("features", "the watchdog renews a lock, and ends with its holder", () -> {
      Config config = RedissonClients.config(Protocol.RESP3).setLockWatchdogTimeout(1500);
      RedissonClient holder = RedissonClients.open(config, "redis://127.0.0.1:" + servers.plain);
      holder.getLock(P + "dog").lock();
      long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(4000);
      while (System.nanoTime() < end) {
        wantBetween(b.getLock(P + "dog").remainTimeToLive(), 1, 1500, "ms of the lock, which is held longer than the watchdog's time");
        Thread.sleep(20);
      }
      holder.shutdown(0, 1, TimeUnit.SECONDS);
      wantTrue(b.getLock(P + "dog").tryLock(10, TimeUnit.SECONDS), "the lock whose holder is gone");
      b.getLock(P + "dog").unlock();
    });
    checks.check("blocking", "unlock wakes a waiter of another client at once", () -> {
      a.getLock(P + "wake").lock();
      var waits = elsewhere(() -> {
        b.getLock(P + "wake").lock();
        long at = System.nanoTime();
        b.getLock(P + "wake").unlock();
        return at;
      });
      Thread.sleep(300);
      wantTrue(!waits.isDone(), "the lock is held");
      long unlocked = System.nanoTime();
      a.getLock(P + "wake").unlock();
      wantBetween(TimeUnit.NANOSECONDS.toMillis(waits.get(25, TimeUnit.SECONDS) - unlocked), 0, 20_000, "ms until the waiter had it, which looks by itself after 30 s");
    });
    checks.check("features", "RLock: again by its thread, leases, tryLock with a time, a foreign unlock, forceUnlock", () -> {
      RLock lock = a.getLock(P + "lock");
      lock.lock(60, TimeUnit.SECONDS);
      lock.lock(60, TimeUnit.SECONDS);
      want(lock.getHoldCount(), 2);
      wantBetween(millis(() -> want(elsewhere(() -> b.getLock(P + "lock").tryLock(100, TimeUnit.MILLISECONDS)).get(), false)), 100, 30_000, "ms of tryLock");
      wantThrown(IllegalMonitorStateException.class, () -> b.getLock(P + "lock").unlock());
      lock.lock(400, TimeUnit.MILLISECONDS); // the lease is this from now on
      want(elsewhere(() -> {
        boolean got = b.getLock(P + "lock").tryLock(30, 60, TimeUnit.SECONDS);
        b.getLock(P + "lock").unlock();
        return got;
      }).get(), true);
      wantThrown(IllegalMonitorStateException.class, lock::unlock);
      lock.lock();
      var waits = elsewhere(() -> b.getLock(P + "lock").tryLock(30, 1, TimeUnit.SECONDS));
      Thread.sleep(100);
      want(b.getLock(P + "lock").forceUnlock(), true);
      want(waits.get(30, TimeUnit.SECONDS), true);
    });
    checks.check("features", "RFairLock: in the order of coming", () -> {
      List<Integer> order = Collections.synchronizedList(new ArrayList<>());
      RLock held = a.getFairLock(P + "fair");
      held.lock();
      List<CompletableFuture<Object>> all = new ArrayList<>();
      for (int i = 0; i < 6; i++) {
        int n = i;
        RedissonClient r = i % 2 == 0 ? a : b;
        all.add(elsewhere(() -> {
          r.getFairLock(P + "fair").lock();
          order.add(n);
          r.getFairLock(P + "fair").unlock();
          return null;
        }));
        eventually("it stands in the line", () -> a.getDeque("redisson_lock_queue:{" + P + "fair}").size() == n + 1);
      }
      want(order.size(), 0);
      held.unlock();
      for (var f : all) {
        f.get(10, TimeUnit.SECONDS);
      }
      want(order, List.of(0, 1, 2, 3, 4, 5));
    });
  }

  private void kinds() {
    checks.check("features", "RReadWriteLock: readers together, a writer alone, from writing to reading", () -> {
      RReadWriteLock one = a.getReadWriteLock(P + "rw"), two = b.getReadWriteLock(P + "rw");
      one.readLock().lock();
      want(elsewhere(() -> {
        boolean got = two.readLock().tryLock(1, 10, TimeUnit.SECONDS);
        want(two.writeLock().tryLock(), false);
        two.readLock().unlock();
        return got;
      }).get(), true);
      want(elsewhere(() -> two.writeLock().tryLock(500, TimeUnit.MILLISECONDS)).get(), false);
      var writer = elsewhere(() -> {
        boolean got = two.writeLock().tryLock(5, 10, TimeUnit.SECONDS);
        want(got, true);
        want(elsewhere(() -> one.readLock().tryLock()).get(), false);
        two.readLock().lock();
        two.writeLock().unlock();
        want(elsewhere(() -> one.readLock().tryLock(1, 1, TimeUnit.SECONDS)).get(), true);
        two.readLock().unlock();
        return got;
      });
      Thread.sleep(100);
      one.readLock().unlock();
      want(writer.get(10, TimeUnit.SECONDS), true);
    });
    checks.check("features", "RSpinLock, RFencedLock, RMultiLock", () -> {
      int[] count = {0};
      RedissonLimiter.inThreads(6, () -> {
        RLock spin = a.getSpinLock(P + "spin");
        spin.lock();
        count[0]++;
        spin.unlock();
      });
      want(count[0], 6);
      RFencedLock fenced = a.getFencedLock(P + "fenced");
      long first = fenced.lockAndGetToken();
      want(elsewhere(() -> b.getFencedLock(P + "fenced").tryLockAndGetToken(500, TimeUnit.MILLISECONDS)).get(), null);
      fenced.unlock();
      want(elsewhere(() -> b.getFencedLock(P + "fenced").tryLockAndGetToken(5, TimeUnit.SECONDS)).get(), first + 1);
      RLock multi = a.getMultiLock(a.getLock(P + "m1"), a.getLock(P + "m2"), b.getLock(P + "m3"));
      want(multi.tryLock(1, 10, TimeUnit.SECONDS), true);
      want(elsewhere(() -> b.getLock(P + "m2").tryLock()).get(), false);
      multi.unlock();
      want(b.getLock(P + "m2").isLocked(), false);
    });
  }

  private void synchronizers() {
    checks.check("features", "RCountDownLatch: two wait for three", () -> {
      RCountDownLatch latch = a.getCountDownLatch(P + "latch");
      want(latch.trySetCount(3), true);
      want(latch.trySetCount(9), false);
      want(latch.await(50, TimeUnit.MILLISECONDS), false);
      var one = elsewhere(() -> a.getCountDownLatch(P + "latch").await(5, TimeUnit.SECONDS));
      var two = elsewhere(() -> b.getCountDownLatch(P + "latch").await(5, TimeUnit.SECONDS));
      for (int i = 0; i < 3; i++) {
        wantThrown(TimeoutException.class, () -> one.get(50, TimeUnit.MILLISECONDS));
        b.getCountDownLatch(P + "latch").countDown();
      }
      want(one.get(), true);
      want(two.get(), true);
      want(latch.getCount(), 0L);
    });
    checks.check("features", "RSemaphore: a waiter is woken, permits are added and drained", () -> {
      RSemaphore s = a.getSemaphore(P + "sem");
      want(s.trySetPermits(1), true);
      s.acquire();
      var waits = elsewhere(() -> b.getSemaphore(P + "sem").tryAcquire(2, java.time.Duration.ofSeconds(5)));
      Thread.sleep(100);
      wantTrue(!waits.isDone(), "there is no permit");
      s.addPermits(1);
      s.release();
      want(waits.get(5, TimeUnit.SECONDS), true);
      s.addPermits(4);
      want(s.drainPermits(), 4);
      want(s.availablePermits(), 0);
    });
    checks.check("features", "RPermitExpirableSemaphore: leases end, are made longer, are given back", () -> {
      RPermitExpirableSemaphore s = a.getPermitExpirableSemaphore(P + "pes");
      want(s.trySetPermits(2), true);
      String brief = s.acquire(200, TimeUnit.MILLISECONDS), kept = s.acquire(300, TimeUnit.MILLISECONDS);
      want(s.updateLeaseTime(kept, 20, TimeUnit.SECONDS), true);
      wantBetween(s.getLeaseTime(kept), 15_000, 20_000, "ms of the lease");
      want(s.availablePermits(), 0);
      String next = b.getPermitExpirableSemaphore(P + "pes").tryAcquire(3, 10, TimeUnit.SECONDS);
      wantTrue(next != null, "the permit whose lease is over");
      want(s.tryRelease(brief), false);
      want(s.tryRelease(kept), true);
      want(s.acquiredPermits(), 1);
      want(s.tryAcquire(2), List.of());
      b.getPermitExpirableSemaphore(P + "pes").release(next);
      eventually("two permits", () -> s.availablePermits() == 2);
      want(s.tryAcquire(2).size(), 2);
      s.setPermits(5);
      want(s.getPermits(), 5);
      want(s.availablePermits(), 3);
    });
  }
}
