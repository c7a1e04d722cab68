import java.io.BufferedReader;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Allocates while all goes wrong: short threads by the hundred, classes that are unloaded, memory that
 * is used up. What {@link #steady} allocates is counted.
 *
 * <p>Lines on its input: {@code chaos ROUNDS}, answered by the bytes of {@code steady}; {@code loaders} collects and tells how many of the
 * loaders that were dropped are still there; {@code dump FILE} writes a heap dump of what lives. Each is answered by
 * {@code LINE: ANSWER}.
 */
public final class AllocChaos {
    private static final int THREADS = 60;
    private static final int OBJECTS = 4000;
    private static final int SIZE = 256;
    private static final List<WeakReference<ClassLoader>> LOADERS = new ArrayList<>();
    private static final AtomicLong STEADY = new AtomicLong();
    private static volatile Object sink;

    /** Defined anew by each loader. */
    public static final class Guest implements Runnable {
        private final List<Object> own = new ArrayList<>();

        @Override
        public void run() {
            for (int i = 0; i < 200; i++) {
                own.add(new Guest());
                own.add(new Guest[100]);
            }
        }
    }

    private static final class OwnLoader extends ClassLoader {
        OwnLoader() {
            super(AllocChaos.class.getClassLoader());
        }

        Runnable guest() throws Exception {
            String name = Guest.class.getName();
            try (InputStream in = AllocChaos.class.getResourceAsStream(name + ".class")) {
                byte[] code = in.readAllBytes();
                Class<?> own = defineClass(name, code, 0, code.length);
                return (Runnable) own.getDeclaredConstructor().newInstance();
            }
        }
    }

    static Object steady() {
        return new byte[SIZE - 16];
    }

    static void allocate() {
        long bytes = 0;
        try {
            for (int i = 0; i < OBJECTS; i++) {
                sink = steady();
                bytes += SIZE;
            }
        } catch (OutOfMemoryError expected) {
            // Another thread has used it up; what was allocated counts.
        }
        STEADY.addAndGet(bytes);
    }

    static void unload() throws Exception {
        OwnLoader loader = new OwnLoader();
        Runnable guest = loader.guest();
        guest.run();
        LOADERS.add(new WeakReference<>(loader));
    }

    static void useUp() {
        List<Object> all = new ArrayList<>();
        try {
            while (true) {
                all.add(new long[4000]);
            }
        } catch (OutOfMemoryError expected) {
            all = null;
        }
        try {
            sink = new long[Integer.MAX_VALUE];
        } catch (OutOfMemoryError expected) {
            sink = null;
        }
    }

    static void chaos(int rounds) throws Exception {
        for (int round = 0; round < rounds; round++) {
            List<Thread> threads = new ArrayList<>();
            for (int i = 0; i < THREADS; i++) {
                Thread thread = new Thread(AllocChaos::allocate, "short-" + round + "-" + i);
                threads.add(thread);
                thread.start();
            }
            for (int i = 0; i < 5; i++) {
                unload();
            }
            for (Thread thread : threads) {
                thread.join();
            }
            Thread greedy = new Thread(AllocChaos::useUp, "greedy-" + round);
            greedy.start();
            greedy.join();
        }
        sink = null;
    }

    static long loadersLeft() {
        System.gc();
        return LOADERS.stream().filter(loader -> loader.get() != null).count();
    }

    public static void main(String[] arguments) throws Exception {
        // Made early: none of it is to come between two dumps.
        var diagnostics =
                ManagementFactory.getPlatformMXBean(com.sun.management.HotSpotDiagnosticMXBean.class);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            switch (words[0]) {
                case "chaos" -> {
                    chaos(Integer.parseInt(words[1]));
                    System.out.println(line + ": " + STEADY.getAndSet(0));
                }
                case "loaders" -> System.out.println("loaders: " + loadersLeft());
                case "dump" -> {
                    diagnostics.dumpHeap(words[1], true);
                    System.out.println(line + ": done");
                }
                default -> System.out.println(line + ": unknown");
            }
        }
    }
}
