// The workers, on platform and on virtual threads, and the orders they share.
package shop.load;

import java.util.ArrayList;
import java.util.List;
import shop.CountSheet;
import shop.Till;

public final class LoadGenerator {
    private final OrderSource source;
    private final List<Thread> workers = new ArrayList<>();

    public LoadGenerator(long orders, double perSecond) {
        source = new OrderSource(orders, perSecond);
    }

    public void start(int platform, int virtual, VirtualThreads virtualThreads, Till till, CountSheet sheet) {
        for (int i = 1; i <= platform; i++) {
            Thread thread = new Thread(new Worker(source, till, sheet.open()), "order-worker-" + i);
            thread.setDaemon(true);
            thread.start();
            workers.add(thread);
        }
        for (int i = 1; i <= virtual; i++) {
            workers.add(virtualThreads.start("order-virtual-" + i, new Worker(source, till, sheet.open())));
        }
    }

    public void stop() {
        source.close();
    }

    /** Waits for the workers, at most so long (0: for ever); false if some are still at work. */
    public boolean join(long millis) throws InterruptedException {
        long end = System.nanoTime() + millis * 1_000_000;
        for (Thread worker : workers) {
            long left = millis == 0 ? 0 : Math.max(1, (end - System.nanoTime()) / 1_000_000);
            worker.join(left);
            if (worker.isAlive()) {
                return false;
            }
        }
        return true;
    }
}
