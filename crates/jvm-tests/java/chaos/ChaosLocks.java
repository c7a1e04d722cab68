import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.concurrent.locks.StampedLock;

/** Counters that only a lock keeps right, wanted by several threads at once. */
final class ChaosLocks implements Chaos.Work {
    private static final int THREADS = 5;
    private static final int TIMES = 300;

    private final ReentrantLock lock = new ReentrantLock();
    private final ReentrantReadWriteLock both = new ReentrantReadWriteLock(true);
    private final StampedLock stamped = new StampedLock();
    private final AtomicLong torn = new AtomicLong();
    private long guarded;
    private long locked;
    private long written;
    private long[] pair;

    private synchronized void guard() {
        guarded++;
        if (guarded % 64 == 0) {
            // Somebody holds it long enough for the others to wait for real.
            Thread.yield();
        }
    }

    private void work() {
        for (int i = 0; i < TIMES; i++) {
            guard();
            lock.lock();
            try {
                locked++;
            } finally {
                lock.unlock();
            }
            if (i % 8 == 0) {
                both.writeLock().lock();
                try {
                    written++;
                } finally {
                    both.writeLock().unlock();
                }
                long stamp = stamped.writeLock();
                try {
                    pair[0]++;
                    pair[1]++;
                } finally {
                    stamped.unlockWrite(stamp);
                }
            } else {
                both.readLock().lock();
                both.readLock().unlock();
                long stamp = stamped.readLock();
                try {
                    torn.addAndGet(pair[0] == pair[1] ? 0 : 1);
                } finally {
                    stamped.unlockRead(stamp);
                }
            }
        }
    }

    @Override
    public void round(long number) throws InterruptedException {
        guarded = 0;
        locked = 0;
        written = 0;
        pair = new long[2];
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < THREADS; i++) {
            Thread thread = new Thread(this::work, "locks " + i);
            threads.add(thread);
            thread.start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        int writes = THREADS * ((TIMES + 7) / 8);
        Chaos.expect("a guarded count", THREADS * TIMES, guarded);
        Chaos.expect("a locked count", THREADS * TIMES, locked);
        Chaos.expect("a written count", writes, written);
        Chaos.expect("a stamped count", writes, pair[0]);
        Chaos.expect("torn pairs", 0, torn.get());
        // A signal of ours must not look like an interrupt, nor cut a wait short for the program.
        long begun = System.nanoTime();
        Thread.sleep(2);
        Chaos.expect("a sleep's length", 1, System.nanoTime() - begun >= 1_900_000 ? 1 : 0);
        Chaos.expect("interrupts", 0, Thread.interrupted() ? 1 : 0);
    }
}
