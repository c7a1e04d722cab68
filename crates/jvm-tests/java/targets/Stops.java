import java.util.concurrent.atomic.AtomicLong;

/**
 * A thread in a loop of recursive calls, and another that makes exceptions appear in it wherever it
 * is: by Thread.stop where that still works, and otherwise, or when {@code natives} is given, by
 * JVMTI. Then the same thread does something that can be counted to the last call. Waits for a line
 * (unless {@code once} is given), prints {@code stops N} and {@code count CLASS.METHOD N} and {@code done}.
 * Arguments: how many stops, and the words above.
 */
public final class Stops {
    private static final AtomicLong RECURSIONS = new AtomicLong();
    private static final AtomicLong LOOPS = new AtomicLong();
    private static final AtomicLong CAUGHT = new AtomicLong();
    private static final AtomicLong DIED = new AtomicLong();
    private static volatile boolean calm;

    private Stops() {
    }

    public static void main(String[] arguments) throws Exception {
        int stops = Integer.parseInt(arguments[0]);
        boolean natives = arguments[1].equals("natives");
        System.out.println("ready");
        if (arguments.length < 3) {
            System.in.read();
        }
        Thread worker = start();
        for (int i = 0; i < stops; i++) {
            long caught = CAUGHT.get();
            stop(worker, natives);
            // One at a time. The JVM may also throw it just outside the try, which ends the thread.
            while (CAUGHT.get() == caught && worker.isAlive()) {
                Thread.sleep(1);
            }
            long loops = LOOPS.get();
            while (LOOPS.get() < loops + 2) {
                if (!worker.isAlive()) {
                    worker = start();
                }
                Thread.sleep(1);
            }
        }
        calm = true;
        worker.join();
        System.out.println("stops " + stops + ", of which " + DIED + " ended their thread");
        System.out.println("count Stops.recursion " + RECURSIONS);
        System.out.println("count Stops.loop " + LOOPS);
        System.out.println("done");
        if (arguments.length < 3) {
            while (System.in.read() >= 0) {
            }
        }
    }

    private static Thread start() {
        Thread thread = new Thread(Stops::worker, "worker");
        thread.setUncaughtExceptionHandler((which, exception) -> DIED.incrementAndGet());
        thread.start();
        return thread;
    }

    @SuppressWarnings("removal")
    private static void stop(Thread thread, boolean natives) throws Exception {
        if (natives) {
            if (!Natives.stop(thread, new ThreadDeath())) {
                throw new AssertionError("the thread cannot be stopped");
            }
        } else {
            Thread.class.getMethod("stop").invoke(thread);
        }
    }

    static void worker() {
        while (!calm) {
            try {
                attempt();
            } catch (ThreadDeath death) {
                CAUGHT.incrementAndGet();
            }
        }
        afterwards();
    }

    static void attempt() {
        while (!calm) {
            loop();
        }
    }

    static void loop() {
        LOOPS.incrementAndGet();
        recursion(20);
    }

    static int recursion(int depth) {
        RECURSIONS.incrementAndGet();
        return depth == 0 ? 0 : 1 + recursion(depth - 1);
    }

    /** Nobody is stopped any more. */
    static void afterwards() {
        for (int i = 0; i < 1000; i++) {
            quiet(i % 5);
        }
    }

    static int quiet(int depth) {
        return depth == 0 ? 0 : 1 + quiet(depth - 1);
    }
}
