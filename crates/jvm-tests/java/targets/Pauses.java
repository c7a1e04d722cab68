import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.util.concurrent.ThreadLocalRandom;

/**
 * Pauses of a known reason. `collect N [MS]`: allocates so many megabytes in Hog.fill, of which a
 * part lives for a while, and sleeps after each. `spin N`: another thread runs a loop without a
 * safepoint while this one asks for collections, until N of them took long, or two minutes are over.
 * `asked N`: thread "asked" answers N questions, and has the heap collected for every tenth.
 */
public class Pauses {
    static final byte[][] KEPT = new byte[400][];
    static volatile long sink;
    static volatile boolean ended;

    static class Hog {
        static void fill(int kilobytes) {
            for (int at = 0; at < kilobytes; at += 10) {
                byte[] made = new byte[10_000];
                made[at % made.length] = 1;
                KEPT[ThreadLocalRandom.current().nextInt(KEPT.length)] = made;
            }
        }
    }

    static class Spin {
        static long loop(int times) {
            long sum = 0;
            for (int at = 0; at < times; at++) {
                sum += (long) at * at ^ sum >>> 3;
            }
            return sum;
        }
    }

    static class Asked {
        static void answer(int question) {
            if (question % 10 == 9) {
                System.gc();
            }
        }
    }

    /** Enough that a collection takes its time. */
    static Object[] many() {
        Object[] all = new Object[1_000_000];
        for (int at = 0; at < all.length; at++) {
            all[at] = new Object();
        }
        return all;
    }

    /** Agents have work to do in a JVM, too, and wait for each loop. */
    static void pause() {
        try {
            Thread.sleep(10);
        } catch (InterruptedException ended) {
            throw new IllegalStateException(ended);
        }
    }

    /** Until the agent looks at pauses, by a thread of its own: a short program would end before. */
    static void awaitAgent() throws Exception {
        long limit = System.nanoTime() + 120_000_000_000L;
        while (System.nanoTime() < limit) {
            for (File task : new File("/proc/self/task").listFiles()) {
                try {
                    if (Files.readString(task.toPath().resolve("comm")).startsWith("tare-pauses")) {
                        return;
                    }
                } catch (IOException ended) {
                    continue;
                }
            }
            Thread.sleep(20);
        }
    }

    public static void main(String[] args) throws Exception {
        System.out.println("ready");
        awaitAgent();
        int wanted = Integer.parseInt(args[1]);
        if (args[0].equals("collect")) {
            for (int megabyte = 0; megabyte < wanted; megabyte++) {
                Hog.fill(1000);
                if (args.length > 2) {
                    Thread.sleep(Integer.parseInt(args[2]));
                }
            }
            System.gc();
            return;
        }
        if (args[0].equals("asked")) {
            Object[] all = many();
            Thread asked = new Thread(() -> {
                for (int question = 0; question < wanted; question++) {
                    Asked.answer(question);
                }
            }, "asked");
            asked.start();
            asked.join();
            sink += all.length;
            return;
        }
        Thread spinner = new Thread(() -> {
            while (!ended) {
                sink += Spin.loop(80_000_000);
                pause();
            }
        }, "spinner");
        spinner.setDaemon(true);
        spinner.start();
        long limit = System.nanoTime() + 120_000_000_000L;
        int slow = 0;
        while (slow < wanted && System.nanoTime() < limit) {
            Thread.sleep(20);
            long before = System.nanoTime();
            System.gc();
            if (System.nanoTime() - before > 30_000_000L) {
                slow++;
            }
        }
        ended = true;
    }
}
