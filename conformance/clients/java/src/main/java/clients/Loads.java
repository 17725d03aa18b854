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
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
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
    RedissonClient r = RedissonClients.open(RedissonClients.config(Protocol.RESP2), "redis://" + System.getenv("SERVER"));
    Loads l = new Loads(r);
    Map<String, Checks.Body> loads = Map.of(
        "redisson.lock", l::lock);
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

  /** The threads take the lock in turn; whoever does not have it is refused. */
  private void lock() throws Exception {
    RLock lock = r.getLock(mark);
    AtomicInteger left = new AtomicInteger(count);
    phase("lock", count, () -> together(() -> {
      while (left.getAndDecrement() > 0) {
        lock.lock();
        if (workers == 1) {
          want(CompletableFuture.supplyAsync(lock::tryLock).get(), false);
        }
        lock.unlock();
      }
    }));
  }

  /** Runs the body in all the threads at once, to the end of all. */
  private void together(Checks.Body body) throws Exception {
    List<FutureTask<Void>> tasks = new ArrayList<>();
    for (int i = 0; i < workers; i++) {
      FutureTask<Void> task = new FutureTask<>(() -> {
        body.run();
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
