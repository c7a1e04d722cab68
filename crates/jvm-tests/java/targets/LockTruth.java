import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Threads that hold and want monitors by a script, and measure their own waits.
 *
 * <p>Lines on its input, with {@code KIND} {@code platform} or {@code virtual}:
 * {@code enter KIND ROUNDS WAITERS MILLIS} has a thread hold a new lock until so many others wait for it, and then
 * for so long again; each waiter prints {@code entered ID OWNER NANOS LEAST}: it waited no longer than from its
 * own clock before to that afterwards, and no shorter than from when it was seen to wait to when that was ended.
 * {@code wait KIND ROUNDS MILLIS} has a thread in {@code Object.wait} for so long; it prints {@code waited ID 0 NANOS
 * LEAST}. {@code hammer THREADS TIMES} has threads fight for one lock, and prints {@code blocked COUNT}, by the
 * JVM's own count of these threads.
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

    /** When threads were seen to wait, and their numbers in the kernel, by their ids. */
    static final Map<Long, Long> SEEN = new ConcurrentHashMap<>();
    static final Map<Long, Path> KERNEL = new ConcurrentHashMap<>();
    /** When the last wait was ended. */
    static volatile long ended;

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
        noteKernel();
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

    /** With how long each has waited at least, of those that were seen to. */
    static void print() {
        synchronized (LINES) {
            for (String line : LINES) {
                Long seen = SEEN.get(Long.valueOf(line.split(" ")[1]));
                System.out.println(line + " " + (seen == null ? 0 : Math.max(0, ended - seen)));
            }
            LINES.clear();
            SEEN.clear();
        }
    }

    /** The running thread, if it is one of the kernel's. */
    static void noteKernel() {
        try {
            if (!Thread.currentThread().toString().startsWith("VirtualThread")) {
                KERNEL.put(id(), Path.of("/proc").resolve(Files.readSymbolicLink(Path.of("/proc/thread-self"))));
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Whether the kernel says that a thread sleeps: it may have a state of the JVM's and still be on its way. */
    static boolean isAsleep(Path task) throws IOException {
        String stat = Files.readString(task.resolve("stat"));
        return stat.startsWith(" S ", stat.lastIndexOf(')') + 1);
    }

    static void until(Thread thread, Thread.State state) throws InterruptedException {
        long soon = System.nanoTime() + 1_000_000;
        while (thread.getState() != state) {
            if (System.nanoTime() < soon) {
                Thread.onSpinWait();
            } else {
                Thread.sleep(1);
            }
        }
    }

    /** Until it is sure that a thread has begun to wait, and notes when that was. */
    static void untilAsleep(Thread thread) throws IOException, InterruptedException {
        Path task = KERNEL.get(thread.getId());
        // Of a virtual thread nobody knows it, as long as it keeps its carrier.
        if (task == null) {
            return;
        }
        for (int times = 0; times < 2; times++) {
            Thread.sleep(1);
            while (!isAsleep(task)) {
                Thread.sleep(1);
            }
        }
        SEEN.put(thread.getId(), System.nanoTime());
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
            for (Thread waiter : threads.subList(1, threads.size())) {
                untilAsleep(waiter);
            }
            Thread.sleep(millis);
            ended = System.nanoTime();
            gate.open = true;
            join(threads);
            print();
        }
    }

    static void await(Gate gate) {
        noteKernel();
        synchronized (gate) {
            long before = System.nanoTime();
            try {
                while (!gate.open) {
                    gate.wait();
                }
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
            report("waited " + id() + " 0 " + (System.nanoTime() - before));
        }
    }

    static void waitAll(boolean virtual, int rounds, long millis) throws Exception {
        for (int round = 0; round < rounds; round++) {
            Gate gate = new Gate();
            Thread waiter = start(virtual, "waiter", () -> await(gate));
            until(waiter, Thread.State.WAITING);
            untilAsleep(waiter);
            Thread.sleep(millis);
            ended = System.nanoTime();
            synchronized (gate) {
                gate.open = true;
                gate.notifyAll();
            }
            waiter.join();
            print();
        }
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
                ended = System.nanoTime();
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
