// Threads that wait for each other for ever, or only nearly. What they do is named by the argument; it
// says "ready" when all of them wait where they should.

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;

public final class Deadlocks {
    private static final List<Thread> STARTED = new ArrayList<>();
    private static final AtomicLong ROUNDS = new AtomicLong();

    private Deadlocks() {
    }

    private static final CountDownLatch INITIALISING = new CountDownLatch(2);

    /** Goes on when both classes are being initialised. */
    static void meet() {
        INITIALISING.countDown();
        await(INITIALISING);
    }

    static final class First {
        static {
            meet();
            Second.touch();
        }

        static void touch() {
        }
    }

    static final class Second {
        static {
            meet();
            First.touch();
        }

        static void touch() {
        }
    }

    /** A lock of either kind, that is taken for ever. */
    interface Taken {
        void then(Runnable next);
    }

    static Taken monitor() {
        Object lock = new Object();
        return next -> {
            synchronized (lock) {
                next.run();
            }
        };
    }

    static Taken lock() {
        ReentrantLock lock = new ReentrantLock();
        return next -> {
            lock.lock();
            next.run();
        };
    }

    static Taken writeLock() {
        ReentrantReadWriteLock lock = new ReentrantReadWriteLock();
        return next -> {
            lock.writeLock().lock();
            next.run();
        };
    }

    /** Each thread has one of the locks and wants the next, the last one the first. */
    static void circle(String name, Taken... locks) {
        CountDownLatch all = new CountDownLatch(locks.length);
        for (int at = 0; at < locks.length; at++) {
            Taken own = locks[at];
            Taken next = locks[(at + 1) % locks.length];
            start(name + "-" + at, () -> own.then(() -> {
                all.countDown();
                await(all);
                next.then(() -> { });
            }));
        }
    }

    static void start(String name, Runnable body) {
        Thread thread = new Thread(body, name);
        thread.setDaemon(true);
        STARTED.add(thread);
        thread.start();
    }

    static void await(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException stop) {
            throw new IllegalStateException(stop);
        }
    }

    static void sleep(long millis) {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException wanted) {
            Thread.currentThread().interrupt();
        }
    }

    /** One has it, and the next wait behind each other: each has what the one after it wants. */
    static void chain(String name, Runnable end, Taken... locks) {
        CountDownLatch all = new CountDownLatch(locks.length);
        for (int at = 0; at < locks.length; at++) {
            Taken own = locks[at];
            Taken next = at == 0 ? null : locks[at - 1];
            start(name + "-" + at, () -> own.then(() -> {
                all.countDown();
                await(all);
                if (next == null) {
                    end.run();
                } else {
                    next.then(() -> { });
                }
            }));
        }
    }

    /** Locks in either order, with a limit to patience; or with one above both; or broken up. */
    static void nearly() {
        ReentrantLock one = new ReentrantLock();
        ReentrantLock other = new ReentrantLock();
        for (int at = 0; at < 4; at++) {
            ReentrantLock first = at % 2 == 0 ? one : other;
            ReentrantLock second = first == one ? other : one;
            start("timed-" + at, () -> {
                while (true) {
                    try {
                        if (first.tryLock(50, TimeUnit.MILLISECONDS)) {
                            sleep(1);
                            if (second.tryLock(20, TimeUnit.MILLISECONDS)) {
                                second.unlock();
                            }
                            first.unlock();
                        }
                    } catch (InterruptedException stop) {
                        return;
                    }
                    ROUNDS.incrementAndGet();
                }
            });
        }
        Object gate = new Object();
        Object a = new Object();
        Object b = new Object();
        for (int at = 0; at < 4; at++) {
            Object first = at % 2 == 0 ? a : b;
            Object second = first == a ? b : a;
            start("gated-" + at, () -> {
                while (true) {
                    synchronized (gate) {
                        synchronized (first) {
                            synchronized (second) {
                                ROUNDS.incrementAndGet();
                            }
                        }
                    }
                }
            });
        }
        broken();
    }

    /** A circle that is one for some milliseconds, until somebody interrupts. */
    static void broken() {
        ReentrantLock one = new ReentrantLock();
        ReentrantLock other = new ReentrantLock();
        Thread[] pair = new Thread[2];
        for (int at = 0; at < 2; at++) {
            ReentrantLock first = at == 0 ? one : other;
            ReentrantLock second = at == 0 ? other : one;
            pair[at] = new Thread(() -> {
                while (true) {
                    first.lock();
                    try {
                        sleep(1);
                        second.lockInterruptibly();
                        second.unlock();
                    } catch (InterruptedException broken) {
                        Thread.interrupted();
                    } finally {
                        first.unlock();
                    }
                    ROUNDS.incrementAndGet();
                }
            }, "broken-" + at);
            pair[at].setDaemon(true);
            pair[at].start();
        }
        Thread watchdog = new Thread(() -> {
            while (true) {
                sleep(15);
                pair[0].interrupt();
            }
        }, "watchdog");
        watchdog.setDaemon(true);
        watchdog.start();
    }

    private static void settle() {
        for (Thread thread : STARTED) {
            for (int calm = 0; calm < 3;) {
                Thread.State state = thread.getState();
                boolean waits = state == Thread.State.BLOCKED || state == Thread.State.WAITING
                    || state == Thread.State.TIMED_WAITING;
                calm = waits ? calm + 1 : 0;
                sleep(2);
            }
        }
    }

    public static void main(String[] args) throws Exception {
        switch (args[0]) {
            case "circles" -> {
                circle("monitor", monitor(), monitor());
                circle("lock", lock(), lock());
                circle("mixed", monitor(), lock());
                circle("three", lock(), monitor(), writeLock());
                Taken shared = monitor();
                circle("victims", shared, lock());
                settle();
                // Two wait for a member of the last circle, and one for the first of those.
                Taken behind = lock();
                start("behind-1", () -> behind.then(() -> shared.then(() -> { })));
                settle();
                start("behind-2", () -> shared.then(() -> { }));
                start("behind-3", () -> behind.then(() -> { }));
                settle();
            }
            case "chain" -> {
                chain("link", () -> sleep(3_600_000), lock(), monitor(), lock(), monitor());
                Semaphore none = new Semaphore(0);
                start("semaphore", none::acquireUninterruptibly);
                settle();
            }
            case "nearly" -> nearly();
            case "initialisers" -> {
                start("first", () -> First.touch());
                start("second", () -> Second.touch());
                await(INITIALISING);
                start("third", () -> First.touch());
            }
            case "crowd" -> {
                int count = Integer.parseInt(args[1]);
                Semaphore none = new Semaphore(0);
                for (int at = 0; at < count; at++) {
                    start("crowd-" + at, none::acquireUninterruptibly);
                }
                circle("lock", lock(), lock());
                settle();
            }
            default -> throw new IllegalArgumentException(args[0]);
        }
        System.out.println("ready");
        for (int c = System.in.read(); c >= 0; c = System.in.read()) {
            if (c == '\n') {
                System.out.println("work: " + ROUNDS.get());
            }
        }
    }
}
