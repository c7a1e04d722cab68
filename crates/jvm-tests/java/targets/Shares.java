import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Spends processor time in known shares, and measures it itself by each thread's processor clock, so
 * that a busy machine changes nothing. Waits for a line, works, prints {@code cpu GROUP.PART NANOS} for
 * each part, {@code process NANOS} for the whole process while it worked, and {@code done}.
 *
 * <p>Arguments: milliseconds of processor time for each group.
 */
public final class Shares {
    static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    static final Map<String, AtomicLong> TIMES = new ConcurrentSkipListMap<>();
    static final int THREAD_COUNT = 16;
    static final int DEPTH = 3000;
    static volatile long sink;
    static volatile Object kept;

    interface Work {
        void run(long nanos);
    }

    public static void main(String[] arguments) throws Exception {
        long budget = Long.parseLong(arguments[0]) * 1_000_000;
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        while (in.readLine() != null) {
            TIMES.clear();
            long before = process();
            // Long stretches: a timer that ticks every 4 ms must not miss a part by chance.
            alternate("two", budget, 35, new String[] {"seventy", "thirty"}, Shares::seventy, Shares::thirty);
            alternate("jdk", budget * 2, 25, new String[] {"copying", "joining", "allocating", "throwing"},
                    Shares::copying, Shares::joining, Shares::allocating, Shares::throwing);
            deep(budget / 2);
            threads(budget);
            bursts(budget / 4);
            long used = process() - before;
            TIMES.forEach((name, nanos) -> System.out.println("cpu " + name + " " + nanos));
            System.out.println("process " + used);
            System.out.println("done");
        }
    }

    static long process() {
        return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean())
                .getProcessCpuTime();
    }

    /** Runs parts one after the other, each for some milliseconds, and notes what each truly took. */
    static void alternate(String group, long budget, long millis, String[] names, Work... parts) {
        long start = THREADS.getCurrentThreadCpuTime();
        while (THREADS.getCurrentThreadCpuTime() - start < budget) {
            for (int i = 0; i < parts.length; i++) {
                long before = THREADS.getCurrentThreadCpuTime();
                // The second of two parts gets three sevenths of the first.
                long nanos = (parts.length == 2 && i == 1 ? millis * 3 / 7 : millis) * 1_000_000;
                parts[i].run(nanos);
                note(group + "." + names[i], THREADS.getCurrentThreadCpuTime() - before);
            }
        }
    }

    static void note(String name, long nanos) {
        TIMES.computeIfAbsent(name, key -> new AtomicLong()).addAndGet(nanos);
    }

    static void seventy(long nanos) {
        long until = THREADS.getCurrentThreadCpuTime() + nanos;
        while (THREADS.getCurrentThreadCpuTime() < until) {
            sink += churn(20_000);
        }
    }

    static void thirty(long nanos) {
        long until = THREADS.getCurrentThreadCpuTime() + nanos;
        while (THREADS.getCurrentThreadCpuTime() < until) {
            sink += churn(20_000);
        }
    }

    /** Small enough to be inlined into both of its callers. */
    static long churn(int rounds) {
        long x = sink;
        for (int i = 0; i < rounds; i++) {
            x = x * 6364136223846793005L + 1442695040888963407L;
            x ^= x >>> 17;
        }
        return x;
    }

    static void copying(long nanos) {
        byte[] from = new byte[100_000];
        byte[] to = new byte[100_000];
        long until = THREADS.getCurrentThreadCpuTime() + nanos;
        while (THREADS.getCurrentThreadCpuTime() < until) {
            for (int i = 0; i < 20; i++) {
                System.arraycopy(from, i, to, 100 - i, 90_000);
            }
            sink += to[5];
        }
    }

    static void joining(long nanos) {
        long until = THREADS.getCurrentThreadCpuTime() + nanos;
        while (THREADS.getCurrentThreadCpuTime() < until) {
            for (int i = 0; i < 200; i++) {
                String text = "order " + i + " of " + sink + ", " + (i * 0.5) + " each";
                sink += text.length();
            }
        }
    }

    /** Arrays that are too large for a thread's own allocation buffer take the slow path each time. */
    static void allocating(long nanos) {
        long until = THREADS.getCurrentThreadCpuTime() + nanos;
        while (THREADS.getCurrentThreadCpuTime() < until) {
            for (int i = 0; i < 10; i++) {
                kept = new long[20_000 + i];
            }
        }
    }

    static void throwing(long nanos) {
        long until = THREADS.getCurrentThreadCpuTime() + nanos;
        while (THREADS.getCurrentThreadCpuTime() < until) {
            for (int i = 0; i < 50; i++) {
                try {
                    fail(i % 20);
                } catch (IllegalStateException e) {
                    sink += e.getStackTrace().length;
                }
            }
        }
    }

    static void fail(int depth) {
        if (depth == 0) {
            throw new IllegalStateException("as planned");
        }
        fail(depth - 1);
    }

    static void deep(long budget) throws InterruptedException {
        Thread thread = new Thread(null, () -> {
            long before = THREADS.getCurrentThreadCpuTime();
            sink += descend(DEPTH, budget);
            note("deep.descend", THREADS.getCurrentThreadCpuTime() - before);
        }, "deep", 64 << 20);
        thread.start();
        thread.join();
    }

    static long descend(int depth, long budget) {
        if (depth > 1) {
            return descend(depth - 1, budget) + 1;
        }
        return bottom(budget);
    }

    static long bottom(long budget) {
        long until = THREADS.getCurrentThreadCpuTime() + budget;
        long sum = 0;
        while (THREADS.getCurrentThreadCpuTime() < until) {
            sum += churn(20_000);
        }
        return sum;
    }

    /** Threads of different loads: the second works twice as long as the first, and so on. */
    static void threads(long budget) throws InterruptedException {
        long unit = budget * 2 / (THREAD_COUNT * (THREAD_COUNT + 1));
        List<Thread> all = new ArrayList<>();
        for (int i = 1; i <= THREAD_COUNT; i++) {
            long load = unit * i;
            String name = "load-" + i;
            Thread thread = new Thread(() -> {
                bottom(load);
                note("thread." + name, THREADS.getCurrentThreadCpuTime());
            }, name);
            all.add(thread);
            thread.start();
        }
        for (Thread thread : all) {
            thread.join();
        }
    }

    /** Ten milliseconds of work in every hundred, beside a thread that works all the time. */
    static void bursts(long budget) throws InterruptedException {
        Thread bursty = new Thread(() -> {
            while (THREADS.getCurrentThreadCpuTime() < budget) {
                bottom(10_000_000);
                try {
                    Thread.sleep(90);
                } catch (InterruptedException e) {
                    return;
                }
            }
            note("burst.bursty", THREADS.getCurrentThreadCpuTime());
        }, "bursty");
        Thread steady = new Thread(() -> {
            bottom(budget * 2);
            note("burst.steady", THREADS.getCurrentThreadCpuTime());
        }, "steady");
        bursty.start();
        steady.start();
        bursty.join();
        steady.join();
    }
}
