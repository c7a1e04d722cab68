package bench;

import java.io.IOException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;

/**
 * So many threads with stacks so deep: half of them are parked, half wait for a monitor. It says so
 * and waits for the end of its input.
 */
public final class ManyThreads {
    private static final Object HELD = new Object();

    private ManyThreads() {
    }

    private static void down(int depth, boolean parks, Object held, CountDownLatch begun) {
        if (depth > 0) {
            down(depth - 1, parks, held, begun);
            return;
        }
        begun.countDown();
        if (parks) {
            while (true) {
                LockSupport.park(held);
            }
        }
        synchronized (held) {
            throw new IllegalStateException("nobody gives it back");
        }
    }

    /** Starts them; the caller has what half of them wait for. */
    static void start(int threads, int depth, Object held, CountDownLatch begun) {
        for (int i = 0; i < threads; i++) {
            boolean parks = i % 2 == 0;
            // Of different depths, so that no two stacks need be alike.
            int deep = depth - 2 + i % 5;
            Thread thread = new Thread(() -> down(deep, parks, held, begun), "many-" + i);
            thread.setDaemon(true);
            thread.start();
        }
    }

    public static void main(String[] arguments) throws IOException, InterruptedException {
        int threads = Integer.parseInt(arguments[0]);
        int depth = Integer.parseInt(arguments[1]);
        CountDownLatch begun = new CountDownLatch(threads);
        synchronized (HELD) {
            start(threads, depth, HELD, begun);
            begun.await();
            System.out.println("ready " + threads);
            while (System.in.read() >= 0) {
                Thread.onSpinWait();
            }
        }
    }
}
