// Hands every eighth order to somebody else for packing, and waits: to a thread of a small pool, or with
// --virtual to a virtual thread that is started for this one order. The waiting thread does not touch
// the order's tally meanwhile.
package shop.fulfilment;

import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import shop.load.VirtualThreads;
import shop.orders.Order;

public final class Packing {
    private static final int PACK_EVERY = 8;
    private static final int PACKERS = 2;

    /** Null without --virtual. */
    private final VirtualThreads virtual;
    private final ExecutorService pool;

    public Packing(VirtualThreads virtual) {
        this.virtual = virtual;
        AtomicInteger number = new AtomicInteger();
        pool = virtual != null ? null : Executors.newFixedThreadPool(PACKERS, task -> {
            Thread thread = new Thread(task, "packer-" + number.incrementAndGet());
            thread.setDaemon(true);
            return thread;
        });
    }

    public void pack(Order order) {
        order.tally.packingPack++;
        if (order.id % PACK_EVERY != 0) {
            return;
        }
        PackingTask task = new PackingTask(order);
        try {
            if (virtual != null) {
                Thread thread = virtual.start("packing-" + order.id, task);
                thread.join();
                order.tally.virtualTasks++;
            } else {
                pool.submit(task).get();
                order.tally.poolTasks++;
            }
        } catch (InterruptedException | ExecutionException broken) {
            throw new IllegalStateException("packing failed", broken);
        }
    }

    public void close() {
        if (pool != null) {
            pool.shutdown();
        }
    }
}
