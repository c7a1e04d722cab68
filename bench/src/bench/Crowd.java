package bench;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicLong;

/** Thousands of threads that wait for their turn, one after the other, and work a little when it comes. */
final class Crowd implements Workload {
    /** Of a turn. */
    private static final int STEPS = 20_000;

    private final int threads;
    private final Semaphore turn = new Semaphore(0, true);
    private final AtomicLong sum = new AtomicLong();
    private volatile CountDownLatch done;

    Crowd(String[] args) {
        threads = Integer.parseInt(args[0]);
        for (int i = 0; i < threads; i++) {
            Thread thread = new Thread(null, this::work, "crowd-" + i, 256 << 10);
            thread.setDaemon(true);
            thread.start();
        }
    }

    /** As many turns as there are threads; few at a time, so that few run at a time. */
    @Override
    public long iterate() throws InterruptedException {
        sum.set(0);
        for (int left = threads; left > 0; left -= 10) {
            done = new CountDownLatch(Math.min(left, 10));
            turn.release(Math.min(left, 10));
            done.await();
        }
        return sum.get();
    }

    private void work() {
        while (true) {
            turn.acquireUninterruptibly();
            sum.addAndGet(share());
            done.countDown();
        }
    }

    private static long share() {
        long sum = 0;
        for (int i = 0; i < STEPS; i++) {
            sum += i ^ sum >>> 3;
        }
        return sum;
    }
}
