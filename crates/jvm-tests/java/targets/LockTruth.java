import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Threads that hold and want monitors by a script, and measure their own waits.
 *
 * <p>Lines on its input, with {@code KIND} {@code platform} or {@code virtual}:
 * {@code enter KIND ROUNDS WAITERS MILLIS} has a thread hold a new lock until so many others wait for it, and then
 * for so long again; each waiter prints {@code entered ID OWNER NANOS}. {@code wait KIND ROUNDS MILLIS} has a
 * thread in {@code Object.wait} for so long; it prints {@code waited ID NANOS}. {@code hammer THREADS TIMES} has
 * threads fight for one lock, and prints {@code blocked COUNT}, by the JVM's own count of these threads.
 * {@code file PATH} waits until there is such a file. {@code block KIND WAITERS} has a lock held and waited for
 * until {@code release}. Each is answered by {@code LINE: done}.
 */
public final class LockTruth {
    /** What is waited for. */
    static final class Gate {
        volatile boolean open;
        volatile boolean held;
        long passes;
    }

    static final List<Thread> BLOCKED = new ArrayList<>();
    static Gate blockedAt;

    static Thread start(boolean virtual, String name, Runnable work) throws ReflectiveOperationException {
        if (virtual) {
            // By reflection, because this is compiled for 17.
            return (Thread) Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, work);
        }
        Thread thread = new Thread(work, name);
        thread.start();
        return thread;
    }

    /** Holds the lock, on a processor: a virtual thread stays mounted. */
    static void hold(Gate gate) {
        synchronized (gate) {
            gate.held = true;
            while (!gate.open) {
                Thread.onSpinWait();
            }
        }
    }

    static void enter(Gate gate, long owner) {
        long before = System.nanoTime();
        synchronized (gate) {
            long after = System.nanoTime();
            gate.passes++;
            report("entered " + id() + " " + owner + " " + (after - before));
        }
    }

    static long id() {
        return Thread.currentThread().getId();
    }

    static void report(String line) {
        synchronized (LINES) {
            LINES.add(line);
        }
    }

    static final List<String> LINES = new ArrayList<>();

    static void print() {
        synchronized (LINES) {
            LINES.forEach(System.out::println);
            LINES.clear();
        }
    }

    static void until(Thread thread, Thread.State state) throws InterruptedException {
        while (thread.getState() != state) {
            Thread.sleep(1);
        }
    }

    /** A lock that is held, and threads that wait for it, in this order. */
    static List<Thread> blocked(Gate gate, boolean virtual, int waiters) throws Exception {
        List<Thread> threads = new ArrayList<>();
        Thread holder = start(virtual, "holder", () -> hold(gate));
        threads.add(holder);
        while (!gate.held) {
            Thread.sleep(1);
        }
        for (int i = 0; i < waiters; i++) {
            Thread waiter = start(virtual, "waiter-" + i, () -> enter(gate, holder.getId()));
            threads.add(waiter);
            until(waiter, Thread.State.BLOCKED);
        }
        return threads;
    }

    static void join(List<Thread> threads) throws InterruptedException {
        for (Thread thread : threads) {
            thread.join();
        }
    }

    static void enterAll(boolean virtual, int rounds, int waiters, long millis) throws Exception {
        for (int round = 0; round < rounds; round++) {
            Gate gate = new Gate();
            List<Thread> threads = blocked(gate, virtual, waiters);
            Thread.sleep(millis);
            gate.open = true;
            join(threads);
        }
        print();
    }

    static void await(Gate gate) {
        synchronized (gate) {
            long before = System.nanoTime();
            try {
                while (!gate.open) {
                    gate.wait();
                }
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
            report("waited " + id() + " " + (System.nanoTime() - before));
        }
    }

    static void waitAll(boolean virtual, int rounds, long millis) throws Exception {
        for (int round = 0; round < rounds; round++) {
            Gate gate = new Gate();
            Thread waiter = start(virtual, "waiter", () -> await(gate));
            until(waiter, Thread.State.WAITING);
            Thread.sleep(millis);
            synchronized (gate) {
                gate.open = true;
                gate.notifyAll();
            }
            waiter.join();
        }
        print();
    }

    static void pass(Gate gate) {
        synchronized (gate) {
            // Long enough to be met by others now and then.
            for (int i = 0; i < 2_000; i++) {
                gate.passes += i;
            }
        }
    }

    static void hammer(int threads, int times) throws Exception {
        ThreadMXBean bean = ManagementFactory.getThreadMXBean();
        AtomicLong blocked = new AtomicLong();
        Gate gate = new Gate();
        List<Thread> all = new ArrayList<>();
        bean.getThreadInfo(id()).getBlockedCount();
        for (int i = 0; i < threads; i++) {
            all.add(start(false, "hammer-" + i, () -> {
                long before = bean.getThreadInfo(id()).getBlockedCount();
                for (int time = 0; time < times; time++) {
                    pass(gate);
                }
                blocked.addAndGet(bean.getThreadInfo(id()).getBlockedCount() - before);
            }));
        }
        join(all);
        System.out.println("blocked " + blocked);
    }

    static void run(String line) throws Exception {
        String[] words = line.split(" ");
        boolean virtual = words.length > 1 && words[1].equals("virtual");
        switch (words[0]) {
            case "enter" -> enterAll(
                    virtual, Integer.parseInt(words[2]), Integer.parseInt(words[3]), Long.parseLong(words[4]));
            case "wait" -> waitAll(virtual, Integer.parseInt(words[2]), Long.parseLong(words[3]));
            case "file" -> {
                while (!new java.io.File(words[1]).exists()) {
                    Thread.sleep(10);
                }
            }
            case "hammer" -> hammer(Integer.parseInt(words[1]), Integer.parseInt(words[2]));
            case "block" -> {
                blockedAt = new Gate();
                BLOCKED.addAll(blocked(blockedAt, virtual, Integer.parseInt(words[2])));
            }
            case "release" -> {
                blockedAt.open = true;
                join(BLOCKED);
                BLOCKED.clear();
                print();
            }
            default -> System.out.println("unknown: " + line);
        }
        System.out.println(line + ": done");
    }

    /** With arguments, they are the lines. */
    public static void main(String[] arguments) throws Exception {
        for (String line : arguments) {
            run(line);
        }
        if (arguments.length > 0) {
            return;
        }
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            run(line);
        }
    }
}
