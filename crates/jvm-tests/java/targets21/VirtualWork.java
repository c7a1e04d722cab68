// Virtual threads that sleep and work in turn, a few frames deep. Ends with its input.

import java.io.IOException;

public final class VirtualWork {
    private static volatile long sink;

    private VirtualWork() {
    }

    public static void main(String[] args) throws IOException {
        for (int i = 0; i < 20; i++) {
            boolean sleeps = i % 2 == 0;
            Thread.ofVirtual().name("virtual " + i).start(() -> run(sleeps));
        }
        System.out.println("ready");
        while (System.in.read() >= 0) {
            // What is said is of no interest.
        }
        System.out.println("done " + (sink != 0));
        System.exit(0);
    }

    private static void run(boolean sleeps) {
        try {
            while (true) {
                deeper(10, sleeps);
            }
        } catch (InterruptedException end) {
            Thread.currentThread().interrupt();
        }
    }

    private static void deeper(int depth, boolean sleeps) throws InterruptedException {
        if (depth > 0) {
            deeper(depth - 1, sleeps);
            return;
        }
        if (sleeps) {
            Thread.sleep(1);
        } else {
            Thread.yield();
        }
        sink += burn(300_000);
    }

    private static long burn(int rounds) {
        long sum = sink;
        for (int i = 0; i < rounds; i++) {
            sum += i * 31L ^ sum >>> 3;
        }
        return sum;
    }
}
