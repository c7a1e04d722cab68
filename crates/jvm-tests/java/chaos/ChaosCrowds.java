import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;

/** Threads that come and go by the hundred, and now and then as many at once as there may be. */
final class ChaosCrowds implements Chaos.Work {
    private static final int CROWD = Integer.getInteger("chaos.crowd", 300);

    @Override
    public void round(long number) throws InterruptedException {
        boolean large = number % 40 == 20;
        int size = large ? CROWD : 30;
        long[] results = new long[size];
        // A large crowd is there as a whole before anybody leaves.
        CountDownLatch there = new CountDownLatch(large ? size : 1);
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < size; i++) {
            int mine = i;
            Thread thread = new Thread(null, () -> {
                long sum = 0;
                for (int n = 0; n < 5_000; n++) {
                    sum += n ^ mine;
                }
                there.countDown();
                try {
                    there.await();
                } catch (InterruptedException e) {
                    sum = -1;
                }
                results[mine] = sum;
            }, "crowd " + number + "-" + i, 128 << 10);
            thread.start();
            threads.add(thread);
        }
        for (Thread thread : threads) {
            thread.join();
        }
        for (int i = 0; i < size; i++) {
            long expected = 0;
            for (int n = 0; n < 5_000; n++) {
                expected += n ^ i;
            }
            Chaos.expect("a thread's result", expected, results[i]);
        }
    }
}
