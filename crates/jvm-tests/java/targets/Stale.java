import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Method;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Threads that stay inside methods for as long as they are told to, so that recordings begin and end
 * around them. Commands: {@code park} starts a platform thread, and where there are virtual threads
 * one of those, that wait deep inside {@link #outer}; {@code free} lets them all return;
 * {@code work} calls {@link #inner} a thousand times and prints the sum so far.
 */
public final class Stale {
    static final AtomicLong CALLS = new AtomicLong();
    static volatile CountDownLatch gate = new CountDownLatch(1);
    static final AtomicLong RETURNED = new AtomicLong();
    static final AtomicLong STARTED = new AtomicLong();

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        for (String line; (line = in.readLine()) != null; ) {
            switch (line) {
                case "park":
                    long before = STARTED.get();
                    int parked = park();
                    while (STARTED.get() < before + parked) {
                        Thread.sleep(1);
                    }
                    System.out.println("parked " + STARTED.get());
                    break;
                case "free":
                    long waiting = STARTED.get();
                    gate.countDown();
                    while (RETURNED.get() < waiting) {
                        Thread.sleep(1);
                    }
                    gate = new CountDownLatch(1);
                    System.out.println("freed " + RETURNED.get());
                    break;
                default:
                    for (int i = 0; i < 1000; i++) {
                        inner(i);
                    }
                    System.out.println("worked " + CALLS.get());
                    break;
            }
        }
    }

    static int park() throws Exception {
        Runnable task = () -> {
            outer(5);
            RETURNED.incrementAndGet();
        };
        new Thread(task, "parked").start();
        try {
            Method start = Thread.class.getMethod("startVirtualThread", Runnable.class);
            start.invoke(null, task);
            return 2;
        } catch (NoSuchMethodException before21) {
            return 1;
        }
    }

    static void outer(int depth) {
        if (depth > 0) {
            outer(depth - 1);
            inner(depth);
            return;
        }
        CountDownLatch mine = gate;
        STARTED.incrementAndGet();
        try {
            mine.await();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    static void inner(int i) {
        CALLS.addAndGet(1 + (i & 0));
    }
}
