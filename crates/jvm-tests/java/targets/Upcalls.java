import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Java called from native frames, with exceptions that pass through them or end in them. Waits for a
 * line, prints {@code count CLASS.METHOD N} and {@code done}; again for each further line.
 */
public final class Upcalls {
    private static final Map<String, AtomicLong> COUNTS = new ConcurrentHashMap<>();

    private Upcalls() {
    }

    static void count(String name) {
        COUNTS.computeIfAbsent("Upcalls$Work." + name, key -> new AtomicLong()).incrementAndGet();
    }

    public static void main(String[] arguments) throws Exception {
        System.out.println("ready");
        boolean once = arguments.length > 0;
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        while (once || in.readLine() != null) {
            Work.everything();
            new TreeMap<>(COUNTS).forEach((name, n) -> System.out.println("count " + name + " " + n));
            System.out.println("done");
            if (once) {
                return;
            }
        }
    }

    static final class Work {
        static void everything() {
            count("everything");
            for (int i = 0; i < 200; i++) {
                down(4, i % 5);
                after();
                caughtInNative(i);
                after();
                if (i % 20 == 0) {
                    elsewhere(i);
                    after();
                }
            }
        }

        /** Java, native, Java, native, …; what is thrown at the bottom is caught at one of the levels. */
        static void down(int depth, int catcher) {
            count("down");
            if (depth == 0) {
                throw new IllegalStateException("bottom");
            }
            try {
                Natives.call(() -> down(depth - 1, catcher));
            } catch (IllegalStateException e) {
                if (depth != catcher && depth != 4) {
                    throw e;
                }
                after();
            }
            after();
        }

        static void caughtInNative(int i) {
            count("caughtInNative");
            boolean thrown = Natives.callAndCatch(() -> fails(i, 3));
            if (thrown != (i % 2 == 0)) {
                throw new AssertionError(i);
            }
            after();
        }

        static void fails(int i, int depth) {
            count("fails");
            if (depth > 0) {
                fails(i, depth - 1);
                after();
            } else if (i % 2 == 0) {
                throw new IllegalStateException("even");
            }
        }

        /** On threads that the JVM did not start, half of which end by an exception. */
        static void elsewhere(int i) {
            count("elsewhere");
            Natives.callOnNewThread(() -> fails(i / 20, 2));
        }

        static void after() {
            count("after");
        }
    }
}
