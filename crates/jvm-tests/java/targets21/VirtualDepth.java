// Virtual threads that leave their carriers deep inside a recursion of known depth, and then work: at its
// bottom, and half way back. The first argument says how they leave: yield, sleep or park. Ends with its
// input.

import java.io.IOException;
import java.util.concurrent.locks.LockSupport;

public final class VirtualDepth {
    /** How often {@code level} is on the stack at the bottom, without the first. */
    private static final int DEPTH = 200;
    private static final int HALF = DEPTH / 2;

    private static volatile long sink;
    private static volatile Object garbage;

    private VirtualDepth() {
    }

    public static void main(String[] args) throws IOException {
        String how = args[0];
        for (int i = 0; i < 4; i++) {
            Thread.ofVirtual().name("deep " + i).start(() -> run(how));
        }
        System.out.println("ready");
        while (System.in.read() >= 0) {
            // What is said is of no interest.
        }
        System.out.println("done " + (sink != 0));
        System.exit(0);
    }

    private static void run(String how) {
        while (true) {
            level(DEPTH, how);
        }
    }

    private static void level(int left, String how) {
        if (left > 0) {
            // Chunks of frames pile up on the way down, since the rest stays where it is.
            if (left % 40 == 0) {
                leave(how);
            }
            next(left, how);
            if (left == HALF) {
                burnHalfWay();
            }
            return;
        }
        leave(how);
        burnAtBottom();
    }

    /** A method of its own, so that the JVM can be told not to compile it. */
    private static void next(int left, String how) {
        level(left - 1, how);
    }

    private static void leave(String how) {
        switch (how) {
            case "yield" -> Thread.yield();
            case "park" -> LockSupport.parkNanos(100_000);
            default -> {
                try {
                    Thread.sleep(1);
                } catch (InterruptedException end) {
                    throw new IllegalStateException(end);
                }
            }
        }
    }

    private static void burnAtBottom() {
        sink += burn();
    }

    private static void burnHalfWay() {
        sink += burn();
    }

    private static long burn() {
        long sum = sink;
        for (int i = 0; i < 20_000; i++) {
            sum += i * 31L ^ sum >>> 3;
        }
        garbage = new byte[10_000];
        return sum;
    }
}
