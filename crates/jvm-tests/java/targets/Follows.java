import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Method;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.RecursiveAction;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/**
 * A root that has others do its work: threads, pools of several kinds, timers. The same pools do the same
 * for people outside the root. What belongs to the root counts itself. Waits for a line, works, prints
 * {@code count CLASS.METHOD N} for all and {@code done}; again for each further line. Given a number, it
 * works so many times and ends.
 */
public final class Follows {
    static final Map<String, AtomicLong> COUNTS = new ConcurrentHashMap<>();
    static final ExecutorService POOL = Executors.newFixedThreadPool(2);
    static final ForkJoinPool FORKS = new ForkJoinPool(2);
    static final ScheduledExecutorService LATER = Executors.newScheduledThreadPool(1);
    static final Method VIRTUAL = virtual();

    static void count(String name) {
        COUNTS.computeIfAbsent(name, key -> new AtomicLong()).incrementAndGet();
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        // Made outside the root, as most pools are.
        POOL.submit(() -> 1).get();
        System.out.println("ready");
        int rounds = rounds(arguments);
        for (; rounds > 0 || rounds < 0 && in.readLine() != null; rounds--) {
            root();
            everything(false);
            new TreeMap<>(COUNTS).forEach((name, n) -> System.out.println("count " + name + " " + n));
            System.out.println("done");
        }
        POOL.shutdown();
        FORKS.shutdown();
        LATER.shutdown();
    }

    /** As many as are asked for, or one for each line. */
    static int rounds(String[] arguments) {
        return arguments.length == 0 ? -1 : Integer.parseInt(arguments[0]);
    }

    static void root() throws Exception {
        count("Follows.root");
        everything(true);
        // A pool that is made in the root and used by others afterwards belongs to nobody.
        ExecutorService fresh = Executors.newSingleThreadExecutor();
        fresh.submit(new Task(true)).get();
        FRESH.set(fresh);
    }

    static final ThreadLocal<ExecutorService> FRESH = new ThreadLocal<>();

    /** Everything is over when it returns. */
    static void everything(boolean inside) throws Exception {
        Thread child = new Thread(new Task(inside), "child");
        child.start();
        child.join();
        for (int i = 0; i < 3; i++) {
            POOL.submit(new Task(inside)).get();
        }
        CountDownLatch executed = new CountDownLatch(1);
        POOL.execute(() -> {
            new Task(inside).run();
            executed.countDown();
        });
        executed.await();
        FORKS.submit(new Task(inside)).get();
        FORKS.invoke(new Halves(inside, 4));
        CompletableFuture.supplyAsync(() -> new Task(inside).work()).get();
        periodically(inside);
        if (VIRTUAL != null) {
            ((Thread) VIRTUAL.invoke(null, new Task(inside))).join();
        }
        if (!inside && FRESH.get() != null) {
            FRESH.get().submit(new Task(false)).get();
            FRESH.get().shutdown();
        }
    }

    /** Runs three times, each by itself; more than that counts for nobody. */
    static void periodically(boolean inside) throws Exception {
        CountDownLatch runs = new CountDownLatch(3);
        AtomicInteger rest = new AtomicInteger(3);
        ScheduledFuture<?> task = LATER.scheduleAtFixedRate(() -> {
            if (rest.getAndDecrement() > 0) {
                new Task(inside).run();
                runs.countDown();
            }
        }, 0, 1, TimeUnit.MILLISECONDS);
        runs.await();
        task.cancel(false);
    }

    private static Method virtual() {
        try {
            return Thread.class.getMethod("startVirtualThread", Runnable.class);
        } catch (ReflectiveOperationException before21) {
            return null;
        }
    }

    static final class Task implements Runnable {
        private final boolean inside;

        Task(boolean inside) {
            this.inside = inside;
        }

        @Override
        public void run() {
            if (inside) {
                count("Follows$Task.run");
            }
            work();
        }

        int work() {
            if (inside) {
                count("Follows$Task.work");
            }
            return 1;
        }
    }

    static final class Halves extends RecursiveAction {
        private final boolean inside;
        private final int size;

        Halves(boolean inside, int size) {
            this.inside = inside;
            this.size = size;
        }

        @Override
        protected void compute() {
            if (inside) {
                count("Follows$Halves.compute");
            }
            if (size > 1) {
                Halves left = new Halves(inside, size / 2);
                left.fork();
                new Halves(inside, size - size / 2).compute();
                left.join();
            }
        }
    }
}
