// Redisson's queues: the sorted set that articles use as a delay queue, lists that block, streams, topics that are kept, and
// the executor and remote calls that are made of them. Two clients, so that one serves what the other waits for.
package clients;

import static clients.Checks.eventually;
import static clients.Checks.millis;
import static clients.Checks.want;
import static clients.Checks.wantBetween;
import static clients.Checks.wantThrown;
import static clients.Checks.wantTrue;

import java.io.Serializable;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import org.redisson.api.RBlockingDeque;
import org.redisson.api.RBlockingQueue;
import org.redisson.api.RBoundedBlockingQueue;
import org.redisson.api.RDelayedQueue;
import org.redisson.api.RPriorityBlockingQueue;
import org.redisson.api.RReliableTopic;
import org.redisson.api.RRingBuffer;
import org.redisson.api.RScheduledExecutorService;
import org.redisson.api.RScoredSortedSet;
import org.redisson.api.RStream;
import org.redisson.api.RTransferQueue;
import org.redisson.api.RedissonClient;
import org.redisson.api.stream.StreamMessageId;
import org.redisson.api.queue.QueueAddArgs;
import org.redisson.api.MessageArgs;
import org.redisson.api.stream.StreamAddArgs;
import org.redisson.api.stream.StreamCreateGroupArgs;
import org.redisson.api.stream.StreamReadArgs;
import org.redisson.api.stream.StreamReadGroupArgs;
import org.redisson.client.WriteRedisConnectionException;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Protocol;

final class RedissonQueues {
  private static final String P = "redisson:queues:";

  private final Checks checks;
  private final Servers servers;
  private final RedissonClient a, b;

  private RedissonQueues(Servers servers) throws Exception {
    this.servers = servers;
    checks = new Checks("Redisson", "org.redisson", "redisson");
    a = RedissonClients.open(servers, Protocol.RESP3);
    b = RedissonClients.open(servers, Protocol.RESP2);
  }

  static void run(Servers servers) throws Exception {
    RedissonQueues q = new RedissonQueues(servers);
    q.sortedSets();
    q.lists();
    q.streams();
    q.services();
    q.a.shutdown();
    q.b.shutdown();
  }

  /** Runs the body a moment later in another thread. */
  private static void soon(Checks.Body body) {
    Thread t = new Thread(() -> {
      try {
        Thread.sleep(100);
        body.run();
      } catch (Exception e) {
        throw new IllegalStateException(e);
      }
    });
    t.setDaemon(true);
    t.start();
  }

  private void sortedSets() {
    checks.check("features", "RScoredSortedSet as a delay queue: 60 messages, 3 consumers, each once and not early", () -> {
      RScoredSortedSet<String> queue = a.getScoredSortedSet(P + "due", StringCodec.INSTANCE);
      long start = System.currentTimeMillis();
      for (int i = 0; i < 60; i++) {
        queue.add(start + 10 * i, "m" + i);
      }
      ConcurrentLinkedQueue<String> got = new ConcurrentLinkedQueue<>();
      List<Long> late = java.util.Collections.synchronizedList(new ArrayList<>());
      RedissonLimiter.inThreads(3, () -> {
        RScoredSortedSet<String> mine = b.getScoredSortedSet(P + "due", StringCodec.INSTANCE);
        while (got.size() < 60) {
          long now = System.currentTimeMillis();
          for (String m : mine.valueRange(0, true, now, true, 0, 1)) {
            if (mine.remove(m)) { // of those who saw it, one takes it
              got.add(m);
              late.add(now - start - 10 * Long.parseLong(m.substring(1)));
            }
          }
        }
      });
      want(got.size(), 60);
      want(java.util.Set.copyOf(got).size(), 60);
      wantTrue(late.stream().allMatch(ms -> ms >= 0), "a message came early: " + late);
    });
    checks.check("blocking", "RScoredSortedSet: pollFirst waits, of several sets, several at once; takeLast; time-out", () -> {
      RScoredSortedSet<String> one = a.getScoredSortedSet(P + "z1"), two = b.getScoredSortedSet(P + "z2");
      soon(() -> b.<String>getScoredSortedSet(P + "z1").add(5, "x"));
      want(one.pollFirst(5, TimeUnit.SECONDS), "x");
      soon(() -> two.add(5, "y"));
      want(one.pollFirstFromAny(5, TimeUnit.SECONDS, P + "z2"), "y");
      soon(() -> b.<String>getScoredSortedSet(P + "z1").addAll(Map.of("p", 1.0, "q", 2.0, "r", 3.0)));
      want(one.pollFirst(Duration.ofSeconds(5), 2), List.of("p", "q"));
      want(one.takeLast(), "r");
      wantBetween(millis(() -> want(one.pollLast(Duration.ofSeconds(1)), null)), 950, 3000, "ms to time out");
    });
    checks.check("features", "RScoredSortedSet: conditions, ranks, ranges, union", () -> {
      RScoredSortedSet<String> z = a.getScoredSortedSet(P + "z");
      want(z.addAll(Map.of("a", 1.0, "b", 2.0, "c", 3.0)), 3);
      want(z.addIfAbsent(9, "a"), false);
      want(z.addIfGreater(1, "b"), false);
      want(z.addIfLess(1.5, "b"), true);
      want(z.addAndGetRank(10, "d"), 3);
      want(z.addScore("a", 0.25), 1.25);
      want(new ArrayList<>(z.valueRange(1, true, 3, false)), List.of("a", "b"));
      want(z.entryRange(0, 0).iterator().next().getScore(), 1.25);
      want(z.revRank("d"), 0);
      want(z.rankEntry("b").getRank(), 1);
      want(z.count(0, true, 100, true), 4);
      want(z.pollLastEntry().getValue(), "d");
      RScoredSortedSet<String> other = a.getScoredSortedSet(P + "zo"), sum = a.getScoredSortedSet(P + "zu");
      other.add(1, "e");
      want(sum.union(P + "z", P + "zo"), 4);
      want(sum.removeRangeByScore(0, true, 1.3, true), 2);
      want(sum.readAll().size(), 2);
    });
  }

  private void lists() {
    checks.check("features", "RDelayedQueue: in the order of their times, to a client of its own, taken back", () -> {
      RBlockingQueue<String> queue = a.getBlockingQueue(P + "dest");
      RDelayedQueue<String> delayed = a.getDelayedQueue(queue);
      long start = System.nanoTime();
      delayed.offer("third", 600, TimeUnit.MILLISECONDS);
      delayed.offer("first", 200, TimeUnit.MILLISECONDS);
      delayed.offer("second", 400, TimeUnit.MILLISECONDS);
      delayed.offer("never", 700, TimeUnit.MILLISECONDS);
      want(delayed.size(), 4);
      want(delayed.readAll().size(), 4);
      want(delayed.remove("never"), true);
      RBlockingQueue<String> other = b.getBlockingQueue(P + "dest");
      for (String wanted : List.of("first", "second", "third")) {
        want(other.poll(5, TimeUnit.SECONDS), wanted);
      }
      wantBetween(TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - start), 600, 5000, "ms for three");
      want(other.poll(300, TimeUnit.MILLISECONDS), null);
      delayed.destroy();
    });
    checks.check("blocking", "RBlockingQueue and RBlockingDeque: take, of any, from one to the other, several, drainTo", () -> {
      RBlockingQueue<String> q = a.getBlockingQueue(P + "q");
      soon(() -> b.<String>getBlockingQueue(P + "q").put("x"));
      want(q.take(), "x");
      soon(() -> b.<String>getBlockingQueue(P + "q2").put("y"));
      want(q.pollFromAnyWithName(Duration.ofSeconds(5), P + "q2").getKey(), P + "q2");
      soon(() -> b.<String>getBlockingQueue(P + "q").put("z"));
      want(q.pollLastAndOfferFirstTo(P + "q3", 5, TimeUnit.SECONDS), "z");
      want(a.getQueue(P + "q3").readAll(), List.of("z"));
      soon(() -> b.<String>getBlockingQueue(P + "q").addAll(List.of("1", "2", "3")));
      want(q.pollFirstFromAny(Duration.ofSeconds(5), 2, P + "q4"), Map.of(P + "q", List.of("1", "2")));
      q.add("4");
      List<String> drained = new ArrayList<>();
      want(q.drainTo(drained), 2);
      want(drained, List.of("3", "4"));
      RBlockingDeque<String> d = a.getBlockingDeque(P + "d");
      d.addAll(List.of("l", "m", "r"));
      want(d.takeLast(), "r");
      want(d.takeFirst(), "l");
      want(d.pollLastFromAny(1, TimeUnit.SECONDS, P + "d2"), "m");
      want(a.<String>getQueue(P + "l").addAll(List.of("1", "2")), true);
      want(a.<String>getList(P + "l").addAfter("1", "1b") >= 0, true);
      want(a.<String>getList(P + "l").readAll(), List.of("1", "1b", "2"));
    });
    checks.check("blocking", "subscribeOnFirstElements of a deque and of a scored set", () -> {
      // A client of its own, since one that stops such a wait may write its next command where it still waits.
      RedissonClient r = RedissonClients.open(servers, Protocol.RESP3);
      ConcurrentLinkedQueue<String> got = new ConcurrentLinkedQueue<>();
      r.<String>getBlockingDeque(P + "sd").subscribeOnFirstElements(got::add);
      r.<String>getScoredSortedSet(P + "sz").subscribeOnFirstElements(got::add);
      for (int i = 0; i < 5; i++) {
        a.<String>getBlockingDeque(P + "sd").add("d" + i);
        a.<String>getScoredSortedSet(P + "sz").add(1, "z" + i);
      }
      eventually("ten elements", () -> got.size() == 10);
      r.shutdown(0, 1, TimeUnit.SECONDS);
    });
    checks.check("features", "RBoundedBlockingQueue, RPriorityBlockingQueue, RRingBuffer, RTransferQueue", () -> {
      RBoundedBlockingQueue<String> bounded = a.getBoundedBlockingQueue(P + "bounded");
      want(bounded.trySetCapacity(1), true);
      want(bounded.offer("one"), true);
      want(bounded.offer("two", 100, TimeUnit.MILLISECONDS), false);
      soon(() -> b.<String>getBoundedBlockingQueue(P + "bounded").poll());
      want(bounded.offer("two", 5, TimeUnit.SECONDS), true);
      RPriorityBlockingQueue<Integer> priority = a.getPriorityBlockingQueue(P + "priority");
      priority.addAll(List.of(5, 1, 3));
      want(List.of(priority.poll(), priority.poll(1, TimeUnit.SECONDS), priority.take()), List.of(1, 3, 5));
      RRingBuffer<Integer> ring = a.getRingBuffer(P + "ring");
      want(ring.trySetCapacity(3), true);
      ring.addAll(List.of(1, 2, 3, 4, 5));
      want(ring.readAll(), List.of(3, 4, 5));
      RTransferQueue<String> transfer = a.getTransferQueue(P + "transfer");
      want(transfer.tryTransfer("none"), false);
      soon(() -> b.<String>getTransferQueue(P + "transfer").take());
      want(transfer.tryTransfer("given", 5, TimeUnit.SECONDS), true);
    });
    checks.check("features", "RReliableQueue is Redisson's to open, not the server's", () -> wantThrown(UnsupportedOperationException.class,
        () -> a.<String>getReliableQueue(P + "reliable").add(QueueAddArgs.messages(MessageArgs.payload("m")))));
  }

  private void streams() {
    checks.check("features", "RStream: groups, pending, claims, trimmed, information", () -> {
      RStream<String, String> x = a.getStream(P + "x");
      x.createGroup(StreamCreateGroupArgs.name("g").makeStream());
      StreamMessageId one = x.add(StreamAddArgs.entry("n", "1"));
      x.add(StreamAddArgs.<String, String>entry("n", "2").trim().maxLen(100).noLimit());
      want(x.read(StreamReadArgs.greaterThan(StreamMessageId.ALL).count(10)).size(), 2);
      want(x.readGroup("g", "c1", StreamReadGroupArgs.neverDelivered().count(1)).get(one), Map.of("n", "1"));
      want(x.getPendingInfo("g").getConsumerNames(), Map.of("c1", 1L));
      want(x.listPending("g", StreamMessageId.MIN, StreamMessageId.MAX, 10).get(0).getDeliveryCount(), 1L);
      want(x.autoClaim("g", "c2", 0, TimeUnit.MILLISECONDS, StreamMessageId.MIN, 10).getMessages().keySet(), java.util.Set.of(one));
      want(x.ack("g", one), 1L);
      want(x.listGroups().get(0).getName(), "g");
      want(x.listConsumers("g").size(), 2);
      want(x.getInfo().getLength(), 2);
      want(x.range(StreamMessageId.MIN, StreamMessageId.MAX).size(), 2);
      want(x.remove(one), 1L);
      soon(() -> b.<String, String>getStream(P + "x").add(StreamAddArgs.entry("n", "3")));
      x.readGroup("g", "c1", StreamReadGroupArgs.neverDelivered());
      want(x.readGroup("g", "c1", StreamReadGroupArgs.neverDelivered().timeout(Duration.ofSeconds(5))).values().iterator().next(), Map.of("n", "3"));
    });
    checks.check("pubsub", "RReliableTopic: each listener hears all, also what was said while it was away", () -> {
      RReliableTopic one = a.getReliableTopic(P + "topic"), two = b.getReliableTopic(P + "topic");
      ConcurrentLinkedQueue<String> got = new ConcurrentLinkedQueue<>();
      one.addListener(String.class, (channel, m) -> got.add("one " + m));
      two.addListener(String.class, (channel, m) -> got.add("two " + m));
      want(one.publish("hello"), 2L);
      eventually("both", () -> got.contains("one hello") && got.contains("two hello"));
      for (RReliableTopic topic : List.of(one, two)) {
        try {
          topic.removeAllListeners();
        } catch (WriteRedisConnectionException e) {
          // Redisson ends its waiting XREADGROUP by closing the connection, and may choose the same one for what it says next.
        }
      }
    });
  }

  /** A task that is run by whoever takes it. */
  public static final class Twice implements Callable<Integer>, Serializable {
    private final int n;

    public Twice(int n) {
      this.n = n;
    }

    @Override
    public Integer call() {
      return 2 * n;
    }
  }

  /** A service that is called over the server. */
  public interface Adds {
    int add(int x, int y);
  }

  private void services() {
    checks.check("features", "RScheduledExecutorService: at once, later, cancelled", () -> {
      RScheduledExecutorService there = b.getExecutorService(P + "executor"), here = a.getExecutorService(P + "executor");
      there.registerWorkers(2);
      want(here.submit(new Twice(21)).get(10, TimeUnit.SECONDS), 42);
      wantBetween(millis(() -> want(here.schedule(new Twice(4), 500, TimeUnit.MILLISECONDS).get(10, TimeUnit.SECONDS), 8)), 450, 5000, "ms to a task in 500");
      var never = here.schedule(new Twice(1), 1, TimeUnit.HOURS);
      want(here.cancelTask(never.getTaskId()), true);
      want(here.getTaskCount(), 0);
      here.delete();
      there.shutdown();
    });
    checks.check("features", "RRemoteService", () -> {
      b.getRemoteService(P + "remote").register(Adds.class, Integer::sum, 2);
      want(a.getRemoteService(P + "remote").get(Adds.class, 10, TimeUnit.SECONDS).add(20, 22), 42);
      b.getRemoteService(P + "remote").deregister(Adds.class);
    });
  }
}
