// Virtual threads that hold objects on their stacks while no carrier runs them.

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;

public final class HeapVirtual {
    static final class Held {
        final int number;

        Held(int number) {
            this.number = number;
        }
    }

    private HeapVirtual() {
    }

    public static void main(String[] args) throws IOException, InterruptedException {
        int count = Integer.parseInt(args[0]);
        List<Thread> threads = new ArrayList<>();
        CountDownLatch begun = new CountDownLatch(count);
        for (int i = 0; i < count; i++) {
            int number = i;
            threads.add(Thread.ofVirtual().name("virtual-" + i).start(() -> hold(number, begun)));
        }
        begun.await();
        for (Thread thread : threads) {
            while (thread.getState() != Thread.State.WAITING) {
                Thread.sleep(1);
            }
        }
        System.out.println("ready");
        while (System.in.read() >= 0) {
            // Until the input ends.
        }
        threads.forEach(LockSupport::unpark);
    }

    private static void hold(int number, CountDownLatch begun) {
        Held held = new Held(number);
        begun.countDown();
        LockSupport.park();
        System.out.println(held.number);
    }
}
