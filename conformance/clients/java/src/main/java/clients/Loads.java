// Redisson at work on a server that runs already: LOAD names what is done, SERVER where, COUNT how much of it, WORKERS how
// many threads do it; every name has MARK in it. A line "begin PHASE" and a line "end PHASE OPERATIONS", their parts
// separated by tabs, stand around each phase.
package clients;

import static clients.Checks.want;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.redisson.Redisson;
import org.redisson.api.RBlockingQueue;
import org.redisson.api.RDelayedQueue;
import org.redisson.api.RLock;
import org.redisson.api.RMapCache;
import org.redisson.api.RSemaphore;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;
import org.redisson.config.Protocol;

final class Loads {
  private final int count, workers;
  private final String mark;
  private final RedissonClient r;

  private Loads(RedissonClient r) {
    this.r = r;
    count = Integer.parseInt(System.getenv("COUNT"));
    workers = Integer.parseInt(System.getenv("WORKERS"));
    mark = System.getenv("MARK");
  }

  static void run(String name) throws Exception {
    Config config = new Config().setProtocol(Protocol.RESP2);
    config.useSingleServer().setAddress("redis://" + System.getenv("SERVER")).setTimeout(30_000).setSubscriptionTimeout(30_000);
    RedissonClient r = Redisson.create(config);
    Loads l = new Loads(r);
    Map<String, Checks.Body> loads = Map.of(
        "redisson.lock", () -> l.lock(r.getLock(l.mark)),
        "redisson.fairlock", () -> l.lock(r.getFairLock(l.mark)),
        "redisson.mapcache", l::mapCache,
        "redisson.semaphore", l::semaphore,
        "redisson.delayedqueue", l::delayedQueue);
    loads.get(name).run();
    r.shutdown(0, 2, TimeUnit.SECONDS);
  }

  private void phase(String name, int operations, Checks.Body body) throws Exception {
    System.out.printf("begin\t%s\n", name);
    System.out.flush();
    body.run();
    System.out.printf("end\t%s\t%d\n", name, operations);
    System.out.flush();
  }

  /** The threads take the lock in turn; where there is one, another is refused meanwhile. */
  private void lock(RLock lock) throws Exception {
    phase("lock", count, () -> together(n -> {
      lock.lock();
      if (workers == 1) {
        want(CompletableFuture.supplyAsync(lock::tryLock).get(), false);
      }
      lock.unlock();
    }));
  }

  /** Entries that live for a minute are put, read, renewed, and half of them removed. */
  private void mapCache() throws Exception {
    RMapCache<String, String> map = r.getMapCache(mark);
    phase("entries", count, () -> together(n -> {
      String key = "key" + n;
      want(map.put(key, "a value", 1, TimeUnit.MINUTES), null);
      want(map.get(key), "a value");
      want(map.fastPut(key, "another", 1, TimeUnit.MINUTES), false);
      want(map.putIfAbsent(key, "more", 1, TimeUnit.MINUTES), "another");
      if (n % 2 == 0) {
        want(map.remove(key), "another");
      }
    }));
    map.destroy();
  }

  /** As many permits as threads are taken and given back; where there is one, another is refused meanwhile. */
  private void semaphore() throws Exception {
    RSemaphore s = r.getSemaphore(mark);
    want(s.trySetPermits(workers), true);
    phase("permits", count, () -> together(n -> {
      s.acquire();
      if (workers == 1) {
        want(s.tryAcquire(), false);
      }
      s.release();
    }));
  }

  /** What is offered with a delay is taken when it is due. */
  private void delayedQueue() throws Exception {
    RBlockingQueue<String> due = r.getBlockingQueue(mark);
    RDelayedQueue<String> delayed = r.getDelayedQueue(due);
    phase("offer", count, () -> together(n -> delayed.offer("message " + n, 50, TimeUnit.MILLISECONDS)));
    phase("take", count, () -> together(n -> want(due.poll(60, TimeUnit.SECONDS) != null, true)));
    delayed.destroy();
  }

  /** What is done with the number n. */
  private interface Work {
    void run(int n) throws Exception;
  }

  /** Does the work with every number below count, in all the threads at once. */
  private void together(Work work) throws Exception {
    AtomicInteger next = new AtomicInteger();
    List<FutureTask<Void>> tasks = new ArrayList<>();
    for (int i = 0; i < workers; i++) {
      FutureTask<Void> task = new FutureTask<>(() -> {
        for (int n = next.getAndIncrement(); n < count; n = next.getAndIncrement()) {
          work.run(n);
        }
        return null;
      });
      tasks.add(task);
      new Thread(task).start();
    }
    for (FutureTask<Void> task : tasks) {
      task.get();
    }
  }
}
