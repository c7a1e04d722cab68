import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;

/**
 * The antagonist of {@code cargo xtask chaos}: does at once whatever profilers have it hard with, and
 * checks its own results all the time. A wrong one ends it with {@code WRONG} and a reason. Each work
 * is a class of its own and runs on a thread of its own, round after round.
 *
 * <p>Lines on its input: {@code rest} waits until all works stand between two rounds, {@code go} lets
 * them go on, {@code measure} tells nanoseconds of processor time for a fixed amount of work,
 * {@code collect} collects, {@code totals} tells the rounds of each work. It ends with its input.
 *
 * <p>Properties: {@code chaos.frugal} leaves out what a JVM without collections cannot stand,
 * {@code chaos.natives} and {@code chaos.meddler} say that these agents are there, {@code chaos.crowd}
 * is the largest number of threads at once. {@code chaos.without} names works to leave out, for whoever
 * looks for the cause of a failure.
 */
public final class Chaos {
    /** One thing that is done again and again. */
    interface Work {
        void round(long number) throws Throwable;
    }

    private static final Object GATE = new Object();
    private static boolean resting;
    private static boolean ending;
    private static int standing;

    private Chaos() {
    }

    public static void main(String[] args) throws IOException, InterruptedException {
        Map<String, AtomicLong> rounds = new LinkedHashMap<>();
        List<Thread> threads = new ArrayList<>();
        works().forEach((name, work) -> {
            AtomicLong count = new AtomicLong();
            rounds.put(name, count);
            Thread thread = new Thread(() -> forEver(name, work, count), name);
            thread.setDaemon(true);
            threads.add(thread);
        });
        ChaosUnit.warmUp();
        threads.forEach(Thread::start);
        System.out.println("ready");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            switch (line) {
                case "rest" -> rest(threads.size());
                case "go" -> go();
                case "collect" -> System.gc();
                default -> { }
            }
            String answer = switch (line) {
                case "measure" -> Long.toString(ChaosUnit.measure());
                case "totals" -> totals(rounds);
                case "rest", "go", "collect" -> "done";
                default -> "unknown";
            };
            System.out.println(line + ": " + answer);
        }
        synchronized (GATE) {
            ending = true;
            GATE.notifyAll();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        System.out.println("the end: " + totals(rounds));
    }

    private static Map<String, Work> works() {
        Map<String, Work> works = new LinkedHashMap<>();
        boolean frugal = Boolean.getBoolean("chaos.frugal");
        works.put("computes", new ChaosComputes());
        works.put("crowds", new ChaosCrowds());
        works.put("throws", new ChaosThrows());
        works.put("recurses", new ChaosRecurses());
        works.put("loads", new ChaosLoads());
        works.put("spins", new ChaosSpins());
        works.put("reflects", new ChaosReflects());
        works.put("locks", new ChaosLocks());
        works.put("hands over", new ChaosHandsOver());
        works.put("starts", new ChaosStarts());
        if (!frugal) {
            works.put("collects", new ChaosCollects());
        }
        if (ChaosVirtuals.isPossible()) {
            works.put("virtuals", new ChaosVirtuals());
        }
        if (Boolean.getBoolean("chaos.natives")) {
            works.put("natives", new ChaosNatives());
        }
        if (Boolean.getBoolean("chaos.meddler")) {
            works.put("redefines", new ChaosRedefines());
        }
        works.keySet().removeAll(List.of(System.getProperty("chaos.without", "").split(",")));
        return works;
    }

    private static void forEver(String name, Work work, AtomicLong count) {
        try {
            for (long number = 0; passes(); number++) {
                try {
                    work.round(number);
                    count.incrementAndGet();
                } catch (OutOfMemoryError another) {
                    // Whoever uses up the memory on purpose may leave none for this round.
                    Thread.sleep(20);
                }
                // Others are to have a share of the processors, too.
                Thread.sleep(2 + number % 5);
            }
        } catch (Throwable e) {
            e.printStackTrace(System.out);
            wrong(name + ": " + e);
        }
    }

    /** Waits while works rest; false if they are to end. */
    private static boolean passes() throws InterruptedException {
        synchronized (GATE) {
            standing++;
            GATE.notifyAll();
            while (!ending && (resting || isNearlyFull())) {
                GATE.wait(100);
            }
            standing--;
            return !ending;
        }
    }

    /** Where nothing is collected, the works end when the memory does. */
    private static boolean isNearlyFull() {
        if (!Boolean.getBoolean("chaos.frugal")) {
            return false;
        }
        Runtime runtime = Runtime.getRuntime();
        return runtime.totalMemory() - runtime.freeMemory() > runtime.maxMemory() / 4 * 3;
    }

    private static void rest(int works) throws InterruptedException {
        synchronized (GATE) {
            resting = true;
            while (standing < works) {
                GATE.wait(100);
            }
        }
    }

    private static void go() {
        synchronized (GATE) {
            resting = false;
            GATE.notifyAll();
        }
    }

    private static String totals(Map<String, AtomicLong> rounds) {
        long classes = ManagementFactory.getClassLoadingMXBean().getTotalLoadedClassCount();
        return "classes=" + classes + " rounds=" + rounds;
    }

    static void wrong(String what) {
        System.out.println("WRONG " + what);
        System.out.flush();
        Runtime.getRuntime().halt(3);
    }

    static void expect(String what, long expected, long found) {
        if (expected != found) {
            wrong(what + ": " + found + " instead of " + expected);
        }
    }
}
