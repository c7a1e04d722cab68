package bench;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.atomic.AtomicLong;

/** Short virtual threads, which give way a few times. Needs a JDK that has them. */
final class Virtual implements Workload {
    private final int threads;
    private final ThreadFactory factory;

    Virtual(String[] args) throws ReflectiveOperationException {
        threads = Integer.parseInt(args[0]);
        // Compiled for a JDK without them.
        Object builder = Thread.class.getMethod("ofVirtual").invoke(null);
        Class<?> type = Class.forName("java.lang.Thread$Builder");
        factory = (ThreadFactory) type.getMethod("factory").invoke(builder);
    }

    @Override
    public long iterate() throws InterruptedException {
        AtomicLong sum = new AtomicLong();
        for (int begun = 0; begun < threads; begun += 1000) {
            CountDownLatch done = new CountDownLatch(1000);
            for (int i = 0; i < 1000; i++) {
                int number = begun + i;
                factory.newThread(() -> {
                    sum.addAndGet(task(number));
                    done.countDown();
                }).start();
            }
            done.await();
        }
        return sum.get();
    }

    private static long task(int number) {
        long result = number;
        for (int i = 0; i < 4; i++) {
            result = step(result);
            Thread.yield();
        }
        return result;
    }

    private static long step(long value) {
        return value * 6364136223846793005L + 1442695040888963407L >>> 40;
    }
}
