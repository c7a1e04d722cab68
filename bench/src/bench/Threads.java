package bench;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicLong;

/** Many threads, which share the same amount of work however many they are. */
final class Threads implements Workload {
    private static final int CALLS = 4_000_000;

    private final int threads;
    private final Semaphore turn = new Semaphore(0);
    private final AtomicLong sum = new AtomicLong();
    private volatile CountDownLatch done;

    Threads(String[] args) {
        threads = Integer.parseInt(args[0]);
        for (int i = 0; i < threads; i++) {
            Thread thread = new Thread(null, this::work, "worker-" + i, 256 << 10);
            thread.setDaemon(true);
            thread.start();
        }
    }

    @Override
    public long iterate() throws InterruptedException {
        sum.set(0);
        done = new CountDownLatch(threads);
        turn.release(threads);
        done.await();
        return sum.get();
    }

    private void work() {
        while (true) {
            turn.acquireUninterruptibly();
            sum.addAndGet(share(CALLS / threads));
            CountDownLatch mine = done;
            mine.countDown();
            // Nobody takes the turn of another one, and nobody looks again and again: thousands who do keep all from
            // going on.
            try {
                mine.await();
            } catch (InterruptedException never) {
                throw new AssertionError(never);
            }
        }
    }

    private static long share(int calls) {
        long sum = 0;
        for (int i = 0; i < calls; i++) {
            sum += step(i);
        }
        // How the work is cut must not show in the result.
        return sum == 0 ? 0 : 1;
    }

    private static int step(int i) {
        return i ^ i >>> 3;
    }
}
