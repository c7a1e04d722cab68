import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.FutureTask;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.concurrent.locks.StampedLock;

/**
 * Threads that wait for what java.util.concurrent has, by a script, and measure their own waits.
 *
 * <p>Lines on its input, with {@code KIND} {@code platform} or {@code virtual}:
 * {@code wait KIND WHAT ROUNDS WAITERS MILLIS} has so many threads wait for something that is held, or does not
 * happen, until all of them wait and for so long again; each prints {@code WHAT ID OWNER NANOS LEAST}, where nobody
 * owns it with 0: it waited no longer than from its own clock before to that afterwards, and no shorter than from
 * when it was seen to wait to when that was ended. {@code barge ROUNDS} has a thread woken in vain.
 * {@code sleep KIND ROUNDS MILLIS} has threads sleep, {@code pinned ROUNDS MILLIS} virtual threads park that cannot
 * leave their carriers. {@code block KIND WAITERS} has a lock held and waited for until {@code release}.
 * {@code tasks KIND TIMES MILLIS} has a pool of one thread run tasks that come at once; each prints
 * {@code task ID NANOS}. Each is answered by {@code LINE: done}.
 */
public final class ParkTruth {
    /** Something to wait for. */
    interface What {
        /** Has it, or makes it ready. */
        default void take() throws Exception {}

        /** Waits for it, and gives it back. */
        void await() throws Exception;

        /** Gives it back, or has it happen, for so many. */
        void give(int waiters) throws Exception;

        /** Whether there is an owner. */
        default boolean isOwned() {
            return false;
        }
    }

    static final class Locked implements What {
        final ReentrantLock lock = new ReentrantLock();

        public void take() {
            lock.lock();
        }

        public void await() {
            lock.lock();
            lock.unlock();
        }

        public void give(int waiters) {
            lock.unlock();
        }

        public boolean isOwned() {
            return true;
        }
    }

    /** For a read lock, or a write lock, that a writer or a reader has. */
    static final class ReadWrite implements What {
        final ReentrantReadWriteLock lock = new ReentrantReadWriteLock();
        final boolean reads;
        final boolean written;

        ReadWrite(boolean reads, boolean written) {
            this.reads = reads;
            this.written = written;
        }

        public void take() {
            (written ? lock.writeLock() : lock.readLock()).lock();
        }

        public void await() {
            (reads ? lock.readLock() : lock.writeLock()).lock();
            (reads ? lock.readLock() : lock.writeLock()).unlock();
        }

        public void give(int waiters) {
            (written ? lock.writeLock() : lock.readLock()).unlock();
        }

        public boolean isOwned() {
            return written;
        }
    }

    static final class Permits implements What {
        final Semaphore permits = new Semaphore(1);

        public void take() throws Exception {
            permits.acquire();
        }

        public void await() throws Exception {
            permits.acquire();
            permits.release();
        }

        public void give(int waiters) {
            permits.release();
        }
    }

    static final class Stamped implements What {
        final StampedLock lock = new StampedLock();
        final boolean reads;
        long stamp;

        Stamped(boolean reads) {
            this.reads = reads;
        }

        public void take() {
            stamp = lock.writeLock();
        }

        public void await() {
            lock.unlock(reads ? lock.readLock() : lock.writeLock());
        }

        public void give(int waiters) {
            lock.unlock(stamp);
        }
    }

    static final class Latch implements What {
        final CountDownLatch latch = new CountDownLatch(1);

        public void await() throws Exception {
            latch.await();
        }

        public void give(int waiters) {
            latch.countDown();
        }
    }

    static final class Signalled implements What {
        final ReentrantLock lock = new ReentrantLock();
        final Condition condition = lock.newCondition();

        public void await() throws Exception {
            lock.lock();
            condition.await();
            lock.unlock();
        }

        public void give(int waiters) {
            lock.lock();
            condition.signalAll();
            lock.unlock();
        }
    }

    static final class Queued implements What {
        final LinkedBlockingQueue<Object> queue = new LinkedBlockingQueue<>();

        public void await() throws Exception {
            queue.take();
        }

        public void give(int waiters) {
            for (int i = 0; i < waiters; i++) {
                queue.add(this);
            }
        }
    }

    static final class Handed implements What {
        final SynchronousQueue<Object> queue = new SynchronousQueue<>();

        public void await() throws Exception {
            queue.take();
        }

        public void give(int waiters) throws Exception {
            for (int i = 0; i < waiters; i++) {
                queue.put(this);
            }
        }
    }

    static final class Completed implements What {
        final CompletableFuture<Object> future = new CompletableFuture<>();

        public void await() {
            future.join();
        }

        public void give(int waiters) {
            future.complete(this);
        }
    }

    static final class Computed implements What {
        final FutureTask<Object> task = new FutureTask<>(() -> this);

        public void await() throws Exception {
            task.get();
        }

        public void give(int waiters) {
            task.run();
        }
    }

    static What what(String name) {
        switch (name) {
            case "lock": return new Locked();
            case "read": return new ReadWrite(true, true);
            case "write": return new ReadWrite(false, true);
            case "write-after-read": return new ReadWrite(false, false);
            case "semaphore": return new Permits();
            case "stamped-read": return new Stamped(true);
            case "stamped-write": return new Stamped(false);
            case "latch": return new Latch();
            case "condition": return new Signalled();
            case "queue": return new Queued();
            case "synchronous": return new Handed();
            case "future": return new Completed();
            case "task": return new Computed();
            default: throw new IllegalArgumentException(name);
        }
    }

    /** When threads were seen to wait, by their ids, and when that was ended. */
    static final Map<Long, Long> SEEN = new ConcurrentHashMap<>();
    static volatile long ended;

    static final List<String> LINES = new ArrayList<>();
    static final List<Thread> BLOCKED = new ArrayList<>();
    static volatile boolean open;
    static volatile boolean held;
    static What blockedFor;

    static long id() {
        return Thread.currentThread().getId();
    }

    static void report(String line) {
        synchronized (LINES) {
            LINES.add(line);
        }
    }

    static Thread start(boolean virtual, String name, Runnable work) throws ReflectiveOperationException {
        if (virtual) {
            // By reflection, because this is compiled for 17.
            return (Thread) Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, work);
        }
        Thread thread = new Thread(work, name);
        thread.start();
        return thread;
    }

    /** Has it, on a processor: a virtual thread stays mounted. */
    static void hold(What what, int waiters) {
        try {
            what.take();
            held = true;
            while (!open) {
                Thread.onSpinWait();
            }
            what.give(waiters);
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    static void await(What what, String name, long owner) {
        try {
            long before = System.nanoTime();
            what.await();
            report(name + " " + id() + " " + owner + " " + (System.nanoTime() - before));
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    /** Something that is not there, and threads that wait for it. */
    static List<Thread> blocked(What what, String name, boolean virtual, int waiters) throws Exception {
        open = false;
        held = false;
        List<Thread> threads = new ArrayList<>();
        Thread holder = start(virtual, "holder", () -> hold(what, waiters));
        threads.add(holder);
        while (!held) {
            Thread.sleep(1);
        }
        long owner = what.isOwned() ? holder.getId() : 0;
        for (int i = 0; i < waiters; i++) {
            Thread waiter = start(virtual, "waiter-" + i, () -> await(what, name, owner));
            threads.add(waiter);
            long soon = System.nanoTime() + 1_000_000;
            while (waiter.getState() != Thread.State.WAITING) {
                if (System.nanoTime() < soon) {
                    Thread.onSpinWait();
                } else {
                    Thread.sleep(1);
                }
            }
            SEEN.put(waiter.getId(), System.nanoTime());
        }
        return threads;
    }

    static void join(List<Thread> threads) throws InterruptedException {
        for (Thread thread : threads) {
            thread.join();
        }
    }

    static void open() {
        ended = System.nanoTime();
        open = true;
    }

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

    static void sleep(boolean virtual, int rounds, long millis) throws Exception {
        for (int round = 0; round < rounds; round++) {
            Thread sleeper = start(virtual, "sleeper", () -> {
                try {
                    long before = System.nanoTime();
                    Thread.sleep(millis);
                    report("sleep " + id() + " 0 " + (System.nanoTime() - before));
                } catch (InterruptedException e) {
                    throw new IllegalStateException(e);
                }
            });
            sleeper.join();
        }
        print();
    }

    /** Virtual threads that park and cannot leave their carriers. */
    static void pinned(int rounds, long millis) throws Exception {
        // By reflection, because it is exported by an option of the JVM.
        Class<?> continuation = Class.forName("jdk.internal.vm.Continuation");
        var pin = continuation.getMethod("pin");
        var unpin = continuation.getMethod("unpin");
        for (int round = 0; round < rounds; round++) {
            Thread parked = start(true, "", () -> {
                try {
                    pin.invoke(null);
                    long before = System.nanoTime();
                    java.util.concurrent.locks.LockSupport.parkNanos(millis * 1_000_000);
                    report("pinned " + id() + " 0 " + (System.nanoTime() - before));
                    unpin.invoke(null);
                } catch (ReflectiveOperationException e) {
                    throw new IllegalStateException(e);
                }
            });
            parked.join();
        }
        print();
    }

    /** Wakes a thread that waits for a lock, which it does not get: it goes on waiting. */
    static void barge(int rounds) throws Exception {
        for (int round = 0; round < rounds; round++) {
            List<Thread> threads = blocked(new Locked(), "lock", false, 1);
            for (int i = 0; i < 5; i++) {
                Thread.sleep(1);
                java.util.concurrent.locks.LockSupport.unpark(threads.get(1));
            }
            open();
            join(threads);
            print();
        }
    }

    /** Tasks that come at once, for one thread. */
    static void tasks(String kind, int times, long millis) throws Exception {
        ExecutorService pool =
            kind.equals("pool") ? Executors.newFixedThreadPool(1) : new ForkJoinPool(1);
        CountDownLatch all = new CountDownLatch(times);
        for (int i = 0; i < times; i++) {
            long submitted = System.nanoTime();
            pool.execute(() -> {
                long nanos = System.nanoTime() - submitted;
                report("task " + id() + " 0 " + nanos);
                long end = System.nanoTime() + millis * 1_000_000;
                while (System.nanoTime() < end) {
                    Thread.onSpinWait();
                }
                all.countDown();
            });
        }
        all.await();
        pool.shutdown();
        pool.awaitTermination(1, TimeUnit.MINUTES);
        print();
    }

    static void run(String line) throws Exception {
        String[] words = line.split(" ");
        boolean virtual = words.length > 1 && words[1].equals("virtual");
        switch (words[0]) {
            case "wait" -> {
                int waiters = Integer.parseInt(words[4]);
                for (int round = Integer.parseInt(words[3]); round > 0; round--) {
                    List<Thread> threads = blocked(what(words[2]), words[2], virtual, waiters);
                    Thread.sleep(Long.parseLong(words[5]));
                    open();
                    join(threads);
                    print();
                }
            }
            case "sleep" -> sleep(virtual, Integer.parseInt(words[2]), Long.parseLong(words[3]));
            case "pinned" -> pinned(Integer.parseInt(words[1]), Long.parseLong(words[2]));
            case "barge" -> barge(Integer.parseInt(words[1]));
            case "block" -> {
                blockedFor = new Locked();
                BLOCKED.addAll(blocked(blockedFor, "lock", virtual, Integer.parseInt(words[2])));
            }
            case "release" -> {
                open();
                join(BLOCKED);
                BLOCKED.clear();
                print();
            }
            case "tasks" -> tasks(words[1], Integer.parseInt(words[2]), Long.parseLong(words[3]));
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
