// Virtual threads that wait for each other for ever, alone and with platform threads, or only nearly.
// Needs Java 21.

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;

public final class VirtualDeadlocks {
    private static final List<Thread> STARTED = new ArrayList<>();
    private static final AtomicLong ROUNDS = new AtomicLong();

    private VirtualDeadlocks() {
    }

    static Consumer<Runnable> monitor() {
        Object lock = new Object();
        return next -> {
            synchronized (lock) {
                next.run();
            }
        };
    }

    static Consumer<Runnable> lock() {
        ReentrantLock lock = new ReentrantLock();
        return next -> {
            lock.lock();
            next.run();
        };
    }

    static void start(String name, boolean virtual, Runnable body) {
        Thread.Builder builder = virtual ? Thread.ofVirtual() : Thread.ofPlatform().daemon();
        STARTED.add(builder.name(name).start(body));
    }

    /** Each has one lock and wants the next; every second thread is a platform one, if it is mixed. */
    @SafeVarargs
    static void circle(String name, boolean mixed, Consumer<Runnable>... locks) {
        CountDownLatch all = new CountDownLatch(locks.length);
        for (int at = 0; at < locks.length; at++) {
            Consumer<Runnable> own = locks[at];
            Consumer<Runnable> next = locks[(at + 1) % locks.length];
            start(name + "-" + at, !mixed || at % 2 == 0, () -> own.accept(() -> {
                all.countDown();
                try {
                    all.await();
                } catch (InterruptedException stop) {
                    throw new IllegalStateException(stop);
                }
                next.accept(() -> { });
            }));
        }
    }

    static void settle() throws InterruptedException {
        for (Thread thread : STARTED) {
            for (int calm = 0; calm < 3;) {
                Thread.State state = thread.getState();
                calm = state == Thread.State.BLOCKED || state == Thread.State.WAITING ? calm + 1 : 0;
                Thread.sleep(2);
            }
        }
    }

    /** Locks in either order: with a limit to patience, and with one lock above both. */
    static void nearly() {
        ReentrantLock one = new ReentrantLock();
        ReentrantLock other = new ReentrantLock();
        ReentrantLock gate = new ReentrantLock();
        ReentrantLock a = new ReentrantLock();
        ReentrantLock b = new ReentrantLock();
        for (int at = 0; at < 8; at++) {
            boolean even = at % 2 == 0;
            Thread.ofVirtual().name("timed-" + at).start(() -> {
                ReentrantLock first = even ? one : other;
                ReentrantLock second = even ? other : one;
                while (true) {
                    try {
                        if (first.tryLock(50, TimeUnit.MILLISECONDS)) {
                            Thread.sleep(1);
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
            Thread.ofVirtual().name("gated-" + at).start(() -> {
                ReentrantLock first = even ? a : b;
                ReentrantLock second = even ? b : a;
                while (true) {
                    gate.lock();
                    first.lock();
                    second.lock();
                    gate.unlock();
                    Thread.yield();
                    second.unlock();
                    first.unlock();
                    ROUNDS.incrementAndGet();
                }
            });
        }
    }

    public static void main(String[] args) throws Exception {
        switch (args[0]) {
            case "circles" -> {
                Consumer<Runnable> shared = lock();
                circle("locks", false, shared, lock(), lock());
                circle("monitors", false, monitor(), monitor());
                circle("mixed", true, monitor(), monitor());
                circle("both", true, lock(), monitor());
                settle();
                start("behind", true, () -> shared.accept(() -> { }));
                settle();
            }
            case "nearly" -> nearly();
            case "crowd" -> {
                for (int at = 0; at < Integer.parseInt(args[1]); at++) {
                    start("crowd-" + at, true, java.util.concurrent.locks.LockSupport::park);
                }
                for (Thread thread : STARTED) {
                    while (thread.getState() != Thread.State.WAITING) {
                        Thread.sleep(1);
                    }
                }
            }
            default -> throw new IllegalArgumentException(args[0]);
        }
        System.out.println("ready");
        for (int c = System.in.read(); c >= 0; c = System.in.read()) {
            if (c == '\n') {
                System.out.println("work: " + ROUNDS.get());
            }
        }
        System.exit(0);
    }
}
