import java.util.Map;
import java.util.TreeMap;

/**
 * Overflows its stack again and again, on stacks of many sizes, and counts for itself: how often each method
 * was begun, and how often what stands in its {@code finally} ran. Nothing that counts calls anything.
 */
public final class Overflows {
    private static long plain, plainEnds;
    private static long narrow, narrowEnds;
    private static long wide, wideEnds;
    private static long caught, caughtEnds;
    private static long leaf;
    private static long locked, lockedEnds;

    private Overflows() {}

    public static void main(String[] arguments) throws InterruptedException {
        int rounds = Integer.parseInt(arguments[0]);
        for (int i = 0; i < rounds; i++) {
            int number = i;
            // Where the stack ends within a frame, or within a probe, differs from size to size.
            long size = (256 << 10) + (i % 16) * 4096L;
            Thread thread = new Thread(null, () -> overflow(number), "overflows " + i % 4, size);
            thread.start();
            thread.join();
        }
        Map<String, Long> calls = new TreeMap<>();
        calls.put("plain", plain);
        calls.put("narrow", narrow);
        calls.put("wide", wide);
        calls.put("caught", caught);
        calls.put("leaf", leaf);
        calls.put("locked", locked);
        calls.forEach((name, n) -> System.out.println("count Overflows." + name + " " + n));
        Map<String, Long> skipped = new TreeMap<>();
        skipped.put("plain", plain - plainEnds);
        skipped.put("narrow", narrow - narrowEnds);
        skipped.put("wide", wide - wideEnds);
        skipped.put("caught", caught - caughtEnds);
        skipped.put("locked", locked - lockedEnds);
        skipped.forEach((name, n) -> System.out.println("skipped " + name + " " + n));
    }

    private static void overflow(int number) {
        for (int i = 0; i < 8; i++) {
            try {
                switch ((number + i) % 4) {
                    case 0 -> plain();
                    case 1 -> narrow(i);
                    case 2 -> caught(i, number);
                    default -> locked(new Object());
                }
                throw new AssertionError("the stack has no end");
            } catch (StackOverflowError expected) {
                // Again, from here.
            }
        }
    }

    private static void plain() {
        plain++;
        try {
            plain();
        } finally {
            plainEnds++;
        }
    }

    private static int narrow(int a) {
        narrow++;
        try {
            return leaf(a) + wide(a, a + 1, a + 2, a + 3L) + 1;
        } finally {
            narrowEnds++;
        }
    }

    private static int wide(int a, int b, int c, long d) {
        wide++;
        long e = a * d + b;
        long f = c ^ e;
        try {
            return narrow((int) (e + f)) + leaf((int) f);
        } finally {
            wideEnds += 1;
        }
    }

    /** What is caught is thrown again, by a handler with a call in it, which may overflow in turn. */
    private static int caught(int a, int b) {
        caught++;
        try {
            try {
                return caught(b, a) + 1;
            } catch (StackOverflowError error) {
                leaf(a);
                throw error;
            }
        } finally {
            caughtEnds++;
        }
    }

    private static int locked(Object lock) {
        locked++;
        try {
            synchronized (lock) {
                return locked(lock) + 1;
            }
        } finally {
            lockedEnds++;
        }
    }

    private static int leaf(int a) {
        leaf++;
        return a * 31;
    }
}
