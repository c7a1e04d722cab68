import java.io.BufferedReader;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.lang.reflect.Array;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;

/**
 * Allocates what it is told on its input: objects that it keeps, objects that it drops, as many as it
 * says, all of one size.
 */
public final class Allocates {
    /** So large that a sampler with a small interval meets every one. */
    private static final int SIZE = 16_384;

    private static List<Object> kept = new ArrayList<>();
    private static Object last;
    private static volatile boolean busy;

    private Allocates() {}

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        for (String line; (line = in.readLine()) != null;) {
            String[] words = line.split(" ");
            int count = words.length > 1 ? Integer.parseInt(words[1]) : 0;
            String said = switch (words[0]) {
                case "keep" -> keep(count);
                case "drop" -> drop();
                case "huge" -> huge(count);
                case "waste" -> waste(count);
                case "gc" -> collect(count);
                case "virtual" -> virtual(count);
                case "threads" -> threads(count);
                case "exhaust" -> exhaust();
                case "unload" -> unload(count);
                case "churn" -> churn(count);
                default -> "unknown";
            };
            System.out.println(line + ": " + said);
        }
        busy = false;
    }

    private static String keep(int count) {
        for (int i = 0; i < count; i++) {
            kept.add(new byte[SIZE]);
        }
        return "done";
    }

    /** Arrays of references, each in regions of its own with G1; the first half is kept. */
    private static String huge(int count) {
        for (int i = 0; i < count; i++) {
            Object one = new Object[1 << 18];
            if (i < count / 2) {
                kept.add(one);
            }
        }
        return "done";
    }

    private static String drop() {
        kept = new ArrayList<>();
        return "done";
    }

    private static String waste(int count) {
        for (int i = 0; i < count; i++) {
            last = new long[SIZE / 8];
        }
        last = null;
        return "done";
    }

    private static String collect(int count) {
        for (int i = 0; i < count; i++) {
            System.gc();
        }
        return "done";
    }

    private static void keepOne() {
        Object one = new char[SIZE / 2];
        synchronized (Allocates.class) {
            kept.add(one);
        }
    }

    private static String virtual(int count) throws Exception {
        Method start;
        try {
            start = Thread.class.getMethod("startVirtualThread", Runnable.class);
        } catch (NoSuchMethodException e) {
            return "none";
        }
        CountDownLatch done = new CountDownLatch(count);
        for (int i = 0; i < count; i++) {
            start.invoke(null, (Runnable) () -> {
                keepOne();
                done.countDown();
            });
        }
        done.await();
        return "done";
    }

    private static String threads(int count) throws InterruptedException {
        Thread[] all = new Thread[count];
        for (int i = 0; i < count; i++) {
            all[i] = new Thread(Allocates::keepOne, "allocates-" + i);
            all[i].start();
        }
        for (Thread thread : all) {
            thread.join();
        }
        return "done";
    }

    /** Until there is no more memory, three times. */
    private static String exhaust() {
        int failures = 0;
        for (int i = 0; i < 3; i++) {
            List<Object> all = new ArrayList<>();
            try {
                while (true) {
                    all.add(new int[SIZE / 4]);
                }
            } catch (OutOfMemoryError e) {
                all = null;
                failures++;
            }
        }
        return "caught " + failures;
    }

    /** Objects of classes that nobody refers to afterwards. */
    private static String unload(int count) throws Exception {
        byte[] bytes;
        try (InputStream file = Allocates.class.getResourceAsStream("Allocates$Unloaded.class")) {
            bytes = file.readAllBytes();
        }
        for (int i = 0; i < count; i++) {
            Class<?> type = new Loader(bytes).loadClass("Allocates$Unloaded");
            last = type.getConstructor().newInstance();
            last = Array.newInstance(type, 1_024);
        }
        last = null;
        return "done";
    }

    /** Allocates on several threads until the program ends. */
    private static String churn(int threads) {
        busy = true;
        for (int i = 0; i < threads; i++) {
            Thread thread = new Thread(() -> {
                Object[] some = new Object[64];
                for (int at = 0; busy; at++) {
                    some[at % some.length] = new byte[64 + at % 4096];
                }
            }, "churn-" + i);
            thread.setDaemon(true);
            thread.start();
        }
        return "done";
    }

    /** Made anew by a loader of its own each time; large, for the sampler. */
    public static class Unloaded {
        long a0, a1, a2, a3, a4, a5, a6, a7, a8, a9;
        final byte[] payload = new byte[SIZE];
    }

    private static final class Loader extends ClassLoader {
        private final byte[] bytes;

        Loader(byte[] bytes) {
            super(Allocates.class.getClassLoader());
            this.bytes = bytes;
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            return name.equals("Allocates$Unloaded")
                    ? defineClass(name, bytes, 0, bytes.length)
                    : super.loadClass(name, resolve);
        }
    }
}
