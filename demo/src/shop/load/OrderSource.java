// Hands out the numbers of the orders to be done, each once, at the asked rate, until the limit is
// reached or the shop closes.
package shop.load;

import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

public final class OrderSource {
    /** What claim() answers when there is no more work. */
    static final long NONE = -1;
    private static final long LONGEST_NAP_NANOS = 50_000_000;

    private final AtomicLong next = new AtomicLong(1);
    private final long limit;
    private final double perSecond;
    private final long start = System.nanoTime();
    private volatile boolean closed;

    OrderSource(long limit, double perSecond) {
        this.limit = limit;
        this.perSecond = perSecond;
    }

    long claim() {
        if (closed) {
            return NONE;
        }
        long id = next.getAndIncrement();
        if (id > limit) {
            return NONE;
        }
        return perSecond == 0 || waitUntilDue(id) ? id : NONE;
    }

    void close() {
        closed = true;
    }

    private boolean waitUntilDue(long id) {
        long due = start + (long) ((id - 1) / perSecond * 1e9);
        for (long left = due - System.nanoTime(); left > 0; left = due - System.nanoTime()) {
            if (closed) {
                return false;
            }
            LockSupport.parkNanos(this, Math.min(left, LONGEST_NAP_NANOS));
        }
        return true;
    }
}
