import java.util.concurrent.atomic.AtomicLong;

/**
 * Ends in the way that its argument names, in the middle of work: {@code exit}, {@code halt},
 * {@code term} (waits for the signal) or {@code last} (the last thread of the program ends). A hook
 * works on after the end has begun, where the JVM runs hooks. Whoever speaks last prints
 * {@code count CLASS.METHOD N}. A daemon thread is busy all the time, and nobody counts with it.
 */
public final class Exits {
    private static final AtomicLong CALLS = new AtomicLong();
    private static final AtomicLong DEEP = new AtomicLong();
    private static volatile long spins;

    private Exits() {
    }

    public static void main(String[] arguments) throws Exception {
        Thread daemon = new Thread(Exits::busy, "busy");
        daemon.setDaemon(true);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            work(100);
            print();
        }));
        System.out.println("ready");
        if (arguments.length > 1) {
            System.in.read();
        }
        daemon.start();
        Thread other = new Thread(() -> work(2000), "other");
        other.start();
        work(1000);
        if (arguments[0].equals("last")) {
            new Thread(() -> {
                join(other);
                deep(50, "last");
            }).start();
            return;
        }
        join(other);
        deep(50, arguments[0]);
    }

    private static void join(Thread thread) {
        try {
            thread.join();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Ends the program from inside calls that never return. */
    static void deep(int depth, String how) {
        DEEP.incrementAndGet();
        if (depth > 0) {
            deep(depth - 1, how);
            return;
        }
        switch (how) {
            case "exit":
                System.exit(3);
                break;
            case "halt":
                print();
                Runtime.getRuntime().halt(4);
                break;
            case "term":
                System.out.println("waiting");
                mark();
                join(Thread.currentThread());
                break;
            default:
                break;
        }
    }

    /** Tells somebody who does not read our output. */
    private static void mark() {
        try {
            if (System.getProperty("mark") != null) {
                new java.io.File(System.getProperty("mark")).createNewFile();
            }
        } catch (java.io.IOException e) {
            throw new IllegalStateException(e);
        }
    }

    static void work(int times) {
        for (int i = 0; i < times; i++) {
            call();
        }
    }

    static void call() {
        CALLS.incrementAndGet();
    }

    static void busy() {
        while (true) {
            spin();
        }
    }

    static void spin() {
        spins++;
    }

    static void print() {
        System.out.println("count Exits.call " + CALLS);
        System.out.println("count Exits.deep " + DEEP);
        System.out.flush();
    }
}
