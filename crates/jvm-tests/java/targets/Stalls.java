import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.locks.LockSupport;

/**
 * A JVM that reaches no safepoint for a while: a thread is in a loop that counts an int, which is compiled without a
 * place to stop at, if the JVM is told so. Others wait in several ways.
 *
 * <p>{@code stall SECONDS} on its input begins that; when it is over it says {@code stalled}.
 */
public final class Stalls {
    static final Object NEVER = new Object();
    static volatile boolean begun;
    static volatile long result;

    /** Divisions take long, and each needs the one before. */
    static long spin(int rounds) {
        long sum = Long.MAX_VALUE;
        for (int i = 0; i < rounds; i++) {
            sum = Long.MAX_VALUE - sum / (i | 1);
            sum = Long.MAX_VALUE - sum / (i | 3);
        }
        return sum;
    }

    static void await() {
        synchronized (NEVER) {
            try {
                NEVER.wait();
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        }
    }

    static void park() {
        while (true) {
            LockSupport.park(NEVER);
        }
    }

    static Thread start(String name, Runnable work) {
        Thread thread = new Thread(work, name);
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    /** How many rounds take so long, once they are compiled. */
    static int rounds(int seconds) {
        final int some = 1_000_000;
        long best = Long.MAX_VALUE;
        for (int i = 0; i < 20; i++) {
            long before = System.nanoTime();
            result = spin(some);
            best = Math.min(best, System.nanoTime() - before);
        }
        return (int) Math.min(Integer.MAX_VALUE, seconds * 1e9 / best * some);
    }

    static void stall(int seconds) throws InterruptedException {
        int rounds = rounds(seconds);
        begun = false;
        Thread spinner = start("spinner", () -> {
            begun = true;
            result = spin(rounds);
        });
        while (!begun) {
            Thread.onSpinWait();
        }
        System.out.println("stalls");
        start("collector", System::gc);
        spinner.join();
        System.out.println("stalled");
    }

    public static void main(String[] arguments) throws Exception {
        start("waiter", Stalls::await);
        start("parked", Stalls::park);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            if (words[0].equals("stall")) {
                stall(Integer.parseInt(words[1]));
            } else {
                System.out.println(line + ": done");
            }
        }
    }
}
