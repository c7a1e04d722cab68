// Counts orders while they are done, roughly, and prints a line now and then.
package shop.load;

import java.util.Locale;
import java.util.concurrent.atomic.LongAdder;

public final class Progress {
    private final LongAdder orders = new LongAdder();
    private final LongAdder errors = new LongAdder();
    private final long start = System.nanoTime();

    public void orderDone(boolean accepted) {
        orders.increment();
        if (!accepted) {
            errors.increment();
        }
    }

    public void printEvery(double seconds) {
        Thread reporter = new Thread(() -> print(seconds), "reporter");
        reporter.setDaemon(true);
        reporter.start();
    }

    /** For a request "stats" and for the reporter. */
    public String line(double perSecond) {
        Runtime runtime = Runtime.getRuntime();
        return String.format(Locale.ROOT, "progress orders=%d rate=%.0f/s errors=%d heap=%dMB", orders.sum(),
                perSecond, errors.sum(), runtime.totalMemory() - runtime.freeMemory() >> 20);
    }

    public double averageRate() {
        return orders.sum() * 1e9 / Math.max(1, System.nanoTime() - start);
    }

    public long elapsedMillis() {
        return (System.nanoTime() - start) / 1_000_000;
    }

    private void print(double seconds) {
        long before = orders.sum();
        long then = System.nanoTime();
        while (true) {
            try {
                Thread.sleep((long) (seconds * 1000));
            } catch (InterruptedException stop) {
                return;
            }
            long now = System.nanoTime();
            long done = orders.sum();
            System.out.println(line((done - before) * 1e9 / (now - then)));
            before = done;
            then = now;
        }
    }
}
