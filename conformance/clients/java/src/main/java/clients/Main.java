// Runs the clients against servers of their own. The clients run side by side, with keys of their own, since most of a
// check is waiting; the exit status says whether the run came to its end, not what the checks found.
package clients;

import java.util.ArrayList;
import java.util.List;

public final class Main {
  private Main() {}

  public static void main(String[] arguments) throws Exception {
    if (System.getenv("LOAD") != null) {
      try {
        Loads.run(System.getenv("LOAD"));
      } catch (Throwable e) { // what the library still runs would keep the program
        e.printStackTrace();
        System.exit(1);
      }
      System.exit(0);
    }
    if (System.getenv("SENTINELS") != null) {
      Sentinels.run(System.getenv("SENTINELS"));
    }
    List<Throwable> broken = new ArrayList<>();
    String part = System.getenv().getOrDefault("PART", "");
    try (Servers servers = new Servers()) {
      if (!part.equals("large")) {
        sideBySide(servers, broken, JedisClient::run, RedissonLimiter::run, RedissonMixed::run, RedissonClients::run,
            RedissonLocks::run, RedissonQueues::run, RedissonMaps::run, LettuceClient::run, Clusters::run, SpringClient::run,
            SpringCaches::run);
      }
      if (!part.equals("usual")) {
        sideBySide(servers, broken, LargeArguments::run);
      }
    }
    for (Throwable e : broken) {
      e.printStackTrace();
    }
    System.exit(broken.isEmpty() ? 0 : 1);
  }

  private static void sideBySide(Servers servers, List<Throwable> broken, Client... clients) throws InterruptedException {
    List<Thread> threads = new ArrayList<>();
    for (Client c : clients) {
      Thread t = new Thread(() -> {
        try {
          c.run(servers);
        } catch (Throwable e) {
          synchronized (broken) {
            broken.add(e);
          }
        }
      });
      threads.add(t);
      t.start();
    }
    for (Thread t : threads) {
      t.join();
    }
  }

  private interface Client {
    void run(Servers servers) throws Exception;
  }
}
