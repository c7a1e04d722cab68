import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;

/**
 * Many threads that sit in a method, and one that loads many classes in a static initialiser. Arguments:
 * the number of threads, of classes. Waits for a line before it loads them, and says how long that took.
 */
public final class Loads {
    private static final CountDownLatch SITTING = new CountDownLatch(1);
    static int classes;

    private Loads() {
    }

    public static void main(String[] arguments) throws Exception {
        int threads = Integer.parseInt(arguments[0]);
        classes = Integer.parseInt(arguments[1]);
        System.out.println("ready");
        System.in.read();
        CountDownLatch inside = new CountDownLatch(threads);
        for (int i = 0; i < threads; i++) {
            Thread thread = new Thread(null, () -> sit(inside), "sitter-" + i, 1 << 18);
            thread.setDaemon(true);
            thread.start();
        }
        inside.await();
        long began = System.nanoTime();
        int loaded = Initialised.LOADED;
        System.out.println("loaded " + loaded + " in " + (System.nanoTime() - began) + " ns");
        SITTING.countDown();
        while (System.in.read() >= 0) {
            Thread.onSpinWait();
        }
    }

    private static void sit(CountDownLatch inside) {
        inside.countDown();
        while (SITTING.getCount() > 0) {
            LockSupport.parkNanos(1_000_000_000L);
        }
    }

    /** Its initialiser loads classes. */
    static final class Initialised {
        static final int LOADED = load(classes);

        private static int load(int most) {
            byte[] bytes;
            try (InputStream in = Loads.class.getResourceAsStream("/Loads$Small.class")) {
                bytes = in.readAllBytes();
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
            int loaded = 0;
            for (int i = 0; i < most; i++) {
                loaded += new Loader().define(bytes).getName().isEmpty() ? 0 : 1;
            }
            return loaded;
        }
    }

    static final class Small {
        int one() {
            return 1;
        }
    }

    static final class Loader extends ClassLoader {
        Loader() {
            super(null);
        }

        Class<?> define(byte[] bytes) {
            return defineClass("Loads$Small", bytes, 0, bytes.length);
        }
    }
}
