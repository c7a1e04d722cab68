import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Semaphore;

/**
 * A pool runs errands, some hundred in a second, until something is said. Then one method calls itself,
 * and nothing is called some hundred times in a second.
 */
public final class Errands {
    private static volatile long sum;

    public static void main(String[] args) throws Exception {
        System.out.println("ready");
        Semaphore few = new Semaphore(4);
        ExecutorService pool = Executors.newFixedThreadPool(2);
        while (System.in.available() == 0) {
            few.acquire();
            pool.submit(() -> {
                try {
                    errand();
                } finally {
                    few.release();
                }
            });
            Thread.sleep(2);
        }
        System.in.read();
        pool.shutdown();
        System.out.println("alone");
        while (System.in.available() == 0) {
            sum += recursive(24);
        }
        System.out.println("done");
    }

    private static void errand() {
        for (int i = 0; i < 40; i++) {
            step(i);
        }
    }

    private static void step(int i) {
        // Each step waits for the one before, and no compiler makes fewer of them.
        long x = sum | 1;
        for (int j = 0; j < 20_000; j++) {
            x ^= x << 13;
            x ^= x >>> 7;
            x ^= x << 17;
        }
        sum = x;
    }

    private static int recursive(int n) {
        return n < 2 ? n : recursive(n - 1) + recursive(n - 2);
    }
}
