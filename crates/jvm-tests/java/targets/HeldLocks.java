import java.io.BufferedReader;
import java.io.InputStream;
import java.io.InputStreamReader;

/**
 * One thread loads classes while it holds a lock that another one waits for. Says how long each of
 * them took, and whether the lock was the class loader's own.
 */
public final class HeldLocks {
    private static final int CLASSES = 400;
    private static final Object LOCK = new Object();
    private static volatile boolean locked;
    private static Thread waiter;

    private HeldLocks() {}

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        byte[] big;
        try (InputStream file = HeldLocks.class.getResourceAsStream("Everything.class")) {
            big = file.readAllBytes();
        }
        System.out.println("ready");
        for (String line; (line = in.readLine()) != null;) {
            locked = false;
            long[] took = new long[1];
            waiter = new Thread(() -> {
                while (!locked) {
                    Thread.onSpinWait();
                }
                long began = System.nanoTime();
                waits();
                took[0] = System.nanoTime() - began;
            }, "waiter");
            waiter.start();
            long began = System.nanoTime();
            holds(big);
            long held = System.nanoTime() - began;
            waiter.join();
            System.out.println("took holds " + held);
            System.out.println("took waits " + took[0]);
            System.out.println("done " + line);
        }
    }

    private static void waits() {
        synchronized (LOCK) {
            locked = false;
        }
    }

    private static void holds(byte[] big) {
        synchronized (LOCK) {
            locked = true;
            while (waiter.getState() != Thread.State.BLOCKED) {
                Thread.onSpinWait();
            }
            for (int i = 0; i < CLASSES; i++) {
                new Loader().define(big);
            }
        }
    }

    /** A new one each time, so that the class is a new one, too. */
    private static final class Loader extends ClassLoader {
        void define(byte[] bytes) {
            defineClass("Everything", bytes, 0, bytes.length);
        }
    }
}
