// Threads with known work, for sampling: each argument starts one. Ends with its input.

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.locks.LockSupport;

public final class Sampled {
    private static volatile long sink;
    private static final Object MONITOR = new Object();

    private Sampled() {
    }

    public static void main(String[] args) throws IOException {
        for (String work : args) {
            Thread thread = new Thread(() -> run(work), "does " + work);
            thread.setDaemon(true);
            thread.start();
        }
        System.out.println("ready");
        while (System.in.read() >= 0) {
            // What is said is of no interest.
        }
        System.out.println("done " + (sink != 0));
    }

    private static void run(String work) {
        switch (work) {
            case "seventy-thirty" -> seventyThirty();
            case "strings" -> strings();
            case "deep" -> deep();
            case "copies" -> copies();
            case "exceptions" -> exceptions();
            case "churn" -> churn();
            case "loads" -> loads();
            case "processes" -> processes();
            case "sleeps" -> sleeps();
            case "parks" -> parks();
            case "waits" -> waits();
            case "blocks" -> blocks();
            case "collects" -> collects();
            case "crowd" -> crowd();
            default -> throw new IllegalArgumentException(work);
        }
    }

    private static void seventyThirty() {
        while (true) {
            sink += seven(700_000);
            sink += three(300_000);
        }
    }

    private static long seven(int rounds) {
        long sum = sink;
        for (int i = 0; i < rounds; i++) {
            sum += i * 31L ^ sum >>> 3;
        }
        return sum;
    }

    private static long three(int rounds) {
        long sum = sink;
        for (int i = 0; i < rounds; i++) {
            sum += i * 31L ^ sum >>> 3;
        }
        return sum;
    }

    private static void strings() {
        while (true) {
            List<String> list = new ArrayList<>();
            for (int i = 0; i < 1000; i++) {
                list.add("item " + i + " of " + sink);
            }
            Collections.sort(list);
            sink += list.hashCode();
        }
    }

    private static void deep() {
        while (true) {
            sink += descend(3000);
        }
    }

    private static long descend(int depth) {
        return depth == 0 ? seven(100_000) : descend(depth - 1) + 1;
    }

    private static void copies() {
        byte[] from = new byte[1 << 16];
        byte[] to = new byte[1 << 16];
        while (true) {
            for (int i = 0; i < 100; i++) {
                System.arraycopy(from, 0, to, 0, from.length - i);
            }
            sink += to[3];
        }
    }

    private static void exceptions() {
        while (true) {
            try {
                thrower(30);
            } catch (IllegalStateException expected) {
                sink += expected.getMessage().length();
            }
        }
    }

    private static void thrower(int depth) {
        if (depth == 0) {
            throw new IllegalStateException("as planned");
        }
        thrower(depth - 1);
    }

    /** Threads that come and go, a few at a time. */
    private static void churn() {
        try {
            while (true) {
                List<Thread> threads = new ArrayList<>();
                for (int i = 0; i < 8; i++) {
                    Thread thread = new Thread(() -> sink += seven(200_000), "churned");
                    thread.start();
                    threads.add(thread);
                }
                for (Thread thread : threads) {
                    thread.join();
                }
            }
        } catch (InterruptedException end) {
            Thread.currentThread().interrupt();
        }
    }

    public interface Work {
        long work(int rounds);
    }

    public static final class Loaded implements Work {
        @Override
        public long work(int rounds) {
            long sum = rounds;
            for (int i = 0; i < rounds; i++) {
                sum += i * 31L ^ sum >>> 3;
            }
            return sum;
        }
    }

    /** Loads a class again and again in loaders that are forgotten at once. */
    private static void loads() {
        try {
            byte[] bytes;
            try (var in = Sampled.class.getResourceAsStream("Sampled$Loaded.class")) {
                bytes = in.readAllBytes();
            }
            for (int round = 0; ; round++) {
                ClassLoader loader = new ClassLoader(Sampled.class.getClassLoader()) {
                    @Override
                    protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
                        return name.endsWith("Loaded") ? defineClass(name, bytes, 0, bytes.length) : super.loadClass(name, resolve);
                    }
                };
                Work work = (Work) loader.loadClass("Sampled$Loaded").getDeclaredConstructor().newInstance();
                for (int i = 0; i < 20; i++) {
                    sink += work.work(10_000);
                }
                if (round % 100 == 99) {
                    System.gc();
                }
            }
        } catch (ReflectiveOperationException | IOException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Starts processes, whose signals must not be ours. */
    private static void processes() {
        try {
            while (true) {
                Process process = new ProcessBuilder("true").start();
                if (process.waitFor() != 0) {
                    System.out.println("a child ended with " + process.exitValue());
                }
            }
        } catch (IOException | InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Many threads that do nothing. */
    private static void crowd() {
        for (int i = 0; i < 500; i++) {
            Thread thread = new Thread(Sampled::sleeps, "one of many");
            thread.setDaemon(true);
            thread.start();
        }
        sleeps();
    }

    private static void collects() {
        while (true) {
            byte[][] garbage = new byte[1000][];
            for (int i = 0; i < garbage.length; i++) {
                garbage[i] = new byte[10_000];
            }
            sink += garbage.length;
            System.gc();
        }
    }

    private static void sleeps() {
        try {
            while (true) {
                Thread.sleep(1_000_000);
            }
        } catch (InterruptedException end) {
            Thread.currentThread().interrupt();
        }
    }

    private static void parks() {
        while (true) {
            LockSupport.park(MONITOR);
        }
    }

    private static void waits() {
        Object mine = new Object();
        synchronized (mine) {
            try {
                while (true) {
                    mine.wait();
                }
            } catch (InterruptedException end) {
                Thread.currentThread().interrupt();
            }
        }
    }

    /** Two threads, of which one has the monitor for ever. */
    private static void blocks() {
        Thread holder = new Thread(() -> {
            synchronized (MONITOR) {
                sleeps();
            }
        }, "holds");
        holder.setDaemon(true);
        holder.start();
        while (!Thread.holdsLock(MONITOR) && holder.getState() != Thread.State.TIMED_WAITING) {
            Thread.onSpinWait();
        }
        synchronized (MONITOR) {
            sink++;
        }
    }
}
