import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Does known amounts of all that can be recorded, at once: waits for locks, classes, references of native code,
 * objects, and work; then one collection. Arguments: a file, for which it waits first.
 */
public final class AllAtOnce {
    static volatile boolean ended;
    static volatile long sink;
    static volatile byte[] made;

    private AllAtOnce() {
    }

    interface Part {
        void run() throws Exception;
    }

    static final class Held {
    }

    static Thread start(String name, Part part) {
        Thread thread = new Thread(() -> {
            try {
                part.run();
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        }, name);
        thread.start();
        return thread;
    }

    static void burn() {
        while (!ended) {
            for (int at = 0; at < 100_000; at++) {
                sink += at ^ sink >>> 3;
            }
        }
    }

    static void make() {
        for (int at = 0; at < 2000; at++) {
            made = new byte[100_000];
        }
    }

    public static void main(String[] args) throws Exception {
        while (!Files.exists(Path.of(args[0]))) {
            Thread.sleep(5);
        }
        Thread work = start("work", AllAtOnce::burn);
        Thread[] parts = {
            start("locks", () -> LockTruth.main(new String[] {"enter platform 20 2 3"})),
            start("classes", () -> ClassTruth.main(new String[] {"keep 50"})),
            start("references", () -> {
                Natives.leakReferences(new Held(), 1000, false);
                Natives.tidyReferences(new Held(), 500);
            }),
            start("objects", AllAtOnce::make),
        };
        for (Thread part : parts) {
            part.join();
        }
        // Whoever samples by the clock needs a while.
        Thread.sleep(500);
        ended = true;
        work.join();
        System.gc();
    }
}
