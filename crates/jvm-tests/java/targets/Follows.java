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
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.RecursiveAction;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ThreadPoolExecutor;
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
    /** Its threads die, and others take their places. */
    static final ExecutorService FAILING = Executors.newFixedThreadPool(1);
    /** Does not tell the class that it extends what comes after a task. */
    static final ExecutorService OWN =
        new ThreadPoolExecutor(1, 1, 0, TimeUnit.SECONDS, new LinkedBlockingQueue<>()) {
            @Override
            protected void afterExecute(Runnable task, Throwable exception) {}
        };

    static void count(String name) {
        COUNTS.computeIfAbsent(name, key -> new AtomicLong()).incrementAndGet();
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        // Made outside the root, as most pools are.
        POOL.submit(() -> 1).get();
        FAILING.submit(() -> 1).get();
        OWN.submit(() -> 1).get();
        Thread.setDefaultUncaughtExceptionHandler((thread, failure) -> ((Failure) failure).handled());
        System.out.println("ready");
        int rounds = rounds(arguments);
        for (; rounds > 0 || rounds < 0 && in.readLine() != null; rounds--) {
            root();
            everything(false);
            new TreeMap<>(COUNTS).forEach((name, n) -> System.out.println("count " + name + " " + n));
            System.out.println("done");
        }
        POOL.shutdown();
        FAILING.shutdown();
        OWN.shutdown();
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
        fail(FAILING::execute, inside);
        fail(OWN::execute, inside);
        fail(task -> new Thread(task).start(), inside);
        if (VIRTUAL != null) {
            fail(task -> VIRTUAL.invoke(null, task), inside);
        }
        for (int i = 0; i < 2; i++) {
            OWN.submit(new Task(inside)).get();
        }
        if (!inside && FRESH.get() != null) {
            FRESH.get().submit(new Task(false)).get();
            FRESH.get().shutdown();
        }
    }

    interface Way {
        void run(Runnable task) throws Exception;
    }

    /** Has somebody run what fails, and waits until it is handled as a failure that nobody caught. */
    static void fail(Way way, boolean inside) throws Exception {
        Failure failure = new Failure(inside);
        way.run(failure::thrown);
        failure.handled.await();
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

    static final class Failure extends RuntimeException {
        final CountDownLatch handled = new CountDownLatch(1);
        private final boolean inside;

        Failure(boolean inside) {
            this.inside = inside;
        }

        void thrown() {
            if (inside) {
                count("Follows$Failure.thrown");
            }
            throw this;
        }

        void handled() {
            if (inside) {
                count("Follows$Failure.handled");
            }
            handled.countDown();
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
