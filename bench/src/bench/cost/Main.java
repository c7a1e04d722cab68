package bench.cost;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.IntBinaryOperator;

/**
 * Runs the cases as the lines on standard input ask for it. {@code truth SECONDS} measures what every method
 * costs while nobody profiles, each way to call one for about so long in each round, {@code work SECONDS SLICE} does them all for about so long each, in turns of
 * about a slice, and says what a round of each took, {@code quit} ends. Never profiled itself.
 */
public final class Main {
    /** Rounds of the truth, and before them so much longer for the JVM to compile it. */
    private static final int ROUNDS = 15;
    private static final double WARM_UP = 19;
    private static final int WARM_UPS = 20;

    /**
     * What a method costs by itself: what one way to call it takes, less what others do, for so many of its calls;
     * and how often it is called in one round of its case: never for a driver, which goes round and round.
     */
    private record Cost(String method, String whole, String parts, double calls, double of) {
        Cost(String method, String whole, String parts, double calls) {
            this(method, whole, parts, calls, 1);
        }
    }

    /** A case: what is profiled, and its methods. */
    private record Case(
        String name, IntBinaryOperator run, int nanos, boolean twice, List<Cost> costs) {}

    private record Run(String name, IntBinaryOperator run, int nanos) {}

    private static final List<Case> CASES = new ArrayList<>();
    /** Further ways to call a method, only for the truth. */
    private static final List<Run> PARTS = new ArrayList<>();

    /** What a round of a case takes, once that is known. */
    private static final Map<String, Double> KNOWN = new HashMap<>();

    private Main() {}

    private static void leaf(String name, IntBinaryOperator run, int nanos) {
        String driver = "Cases.run" + name.substring(0, 1).toUpperCase() + name.substring(1);
        CASES.add(new Case(name, run, nanos, false, List.of(
            new Cost("Cases." + name, name, "nothing", 1),
            new Cost(driver, "nothing", "", 0))));
    }

    private static void define() {
        PARTS.add(new Run("nothing", Cases::runNothing, 1));
        leaf("leaf5", Cases::runLeaf5, 5);
        leaf("leaf12", Cases::runLeaf12, 12);
        leaf("leaf50", Cases::runLeaf50, 50);
        leaf("leaf100", Cases::runLeaf100, 100);
        leaf("leaf400", Cases::runLeaf400, 400);
        leaf("leaf2us", Cases::runLeaf2us, 2_000);
        leaf("leaf20us", Cases::runLeaf20us, 20_000);
        leaf("sum12", Cases::runSum12, 12);
        leaf("sum100", Cases::runSum100, 100);
        leaf("sum400", Cases::runSum400, 400);
        CASES.add(new Case("chain", Cases::runChain100, 167, false, List.of(
            new Cost("Cases.chain100", "chain", "chain12", 1),
            new Cost("Cases.chain12", "chain12", "chain50", 1),
            new Cost("Cases.chain50", "chain50", "chain5", 1),
            new Cost("Cases.chain5", "chain5", "nothing", 1),
            new Cost("Cases.runChain100", "nothing", "", 0))));
        PARTS.add(new Run("chain12", Cases::runChain12, 67));
        PARTS.add(new Run("chain50", Cases::runChain50, 55));
        PARTS.add(new Run("chain5", Cases::runChain5, 5));
        CASES.add(new Case("fan", Cases::runFan400, 640, false, List.of(
            new Cost("Cases.fan400", "fan", "fanned12*20,nothing*-19", 1),
            new Cost("Cases.fanned12", "fanned12", "nothing", 20))));
        PARTS.add(new Run("fanned12", Cases::runFanned12, 12));
        CASES.add(new Case("mix", Cases::runMix, 36_400, false, List.of(
            new Cost("Cases.mixed20us", "mixed20us", "nothing", 1),
            new Cost("Cases.mixed400", "mixed400", "nothing", 16),
            new Cost("Cases.mixed5", "mixed5", "nothing", 2_000),
            new Cost("Cases.runMix", "nothing*2017", "", 0))));
        PARTS.add(new Run("mixed20us", Cases::runMixed20us, 20_000));
        PARTS.add(new Run("mixed400", Cases::runMixed400, 400));
        PARTS.add(new Run("mixed5", Cases::runMixed5, 5));
        CASES.add(new Case("poly", (n, x) -> Cases.runShapes(Cases.ALL, n, x), 162, false, List.of(
            new Cost("Cases$Shape12.area", "shape12", "nothing", 1),
            new Cost("Cases$Shape50.area", "shape50", "nothing", 1),
            new Cost("Cases$Shape100.area", "shape100", "nothing", 1),
            new Cost("Cases.runShapes", "nothing*3", "", 0))));
        PARTS.add(new Run("shape12", (n, x) -> Cases.runShapes(Cases.ONLY12, n / 3, x), 12));
        PARTS.add(new Run("shape50", (n, x) -> Cases.runShapes(Cases.ONLY50, n / 3, x), 50));
        PARTS.add(new Run("shape100", (n, x) -> Cases.runShapes(Cases.ONLY100, n / 3, x), 100));
        CASES.add(new Case("throw", Cases::runCatcher400, 500, false, List.of(
            new Cost("Cases.catcher400", "alone", "nothing", 1),
            new Cost("Cases.thrower100", "throw", "alone", 1),
            new Cost("Cases.runCatcher400", "nothing", "", 0))));
        PARTS.add(new Run("alone", Cases::runCatcherAlone, 400));
        CASES.add(new Case("threads", Cases::runPaired100, 100, true, List.of(
            new Cost("Cases.paired100", "threads", "nothing", 1),
            new Cost("Cases.runPaired100", "nothing", "", 0))));
    }

    /** Cases that are drawn in place of those above. */
    private static void draw(long seed) {
        CasesDrawn.draw(seed);
        PARTS.add(new Run("nothing", Cases::runNothing, 1));
        for (int tree = 0; tree < CasesDrawn.TREES; tree++) {
            int first = CasesDrawn.METHODS * tree;
            for (int i = 0; i < CasesDrawn.METHODS; i++) {
                int idle = first + i;
                IntBinaryOperator all = CasesDrawn.RUNS.get(tree);
                PARTS.add(new Run("without " + idle, (n, x) -> CasesDrawn.without(idle, all, n, x),
                    (int) Math.round(CasesDrawn.nanos(first))));
            }
            int b = CasesDrawn.times(first + 1);
            int c = CasesDrawn.times(first + 2);
            int d = CasesDrawn.times(first + 3);
            int e = CasesDrawn.times(first + 4);
            int nanos = (int) Math.round(CasesDrawn.nanos(first));
            CASES.add(new Case("tree" + tree, CasesDrawn.RUNS.get(tree), nanos, false, List.of(
                cost(tree, 0, 1), cost(tree, 1, b), cost(tree, 2, c), cost(tree, 3, b * d), cost(tree, 4, c * e),
                new Cost("CasesDrawn.runA" + tree, "nothing", "", 0))));
        }
        for (int i = 0; i < CasesDrawn.TREES * CasesDrawn.METHODS; i++) {
            System.err.println("drawn " + "abcde".charAt(i % 5) + i / 5 + ": " + CasesDrawn.describe(i));
        }
    }

    /** What a tree takes less when a method of it does nothing itself: in the same code, with the same neighbours. */
    private static Cost cost(int tree, int method, int calls) {
        String name = "CasesDrawn." + "abcde".charAt(method) + tree;
        String without = "without " + (CasesDrawn.METHODS * tree + method);
        return new Cost(name, "tree" + tree, without, calls, calls);
    }

    /** Without an argument the cases that everybody knows, with a number those that it draws. */
    public static void main(String[] args) throws Exception {
        Work.measure();
        if (args.length > 0) {
            draw(Long.parseLong(args[0]));
        } else {
            define();
        }
        System.out.println("bench main");
        System.out.println("bench ready");
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            switch (words[0]) {
                case "truth" -> truth(Double.parseDouble(words[1]));
                case "work" -> work(Double.parseDouble(words[1]), Double.parseDouble(words[2]));
                default -> {
                    return;
                }
            }
            System.out.println("bench done");
        }
    }

    private static void work(double seconds, double slice) throws InterruptedException {
        Map<String, List<Double>> times = new LinkedHashMap<>();
        for (double done = 0; done < seconds; done += slice) {
            for (Case one : CASES) {
                long begin = System.nanoTime();
                double nanos = KNOWN.getOrDefault(one.name, (double) one.nanos);
                work(one.run, nanos, one.twice, slice);
                double took = (System.nanoTime() - begin) / (double) calls(nanos, slice);
                if (!one.twice) {
                    times.computeIfAbsent(one.name, name -> new ArrayList<>()).add(took);
                }
            }
        }
        times.forEach((name, all) -> {
            Collections.sort(all);
            System.out.println("bench case " + name + " " + all.get(all.size() / 2));
        });
    }

    /** A fixed number of calls, so that two runs of it do the same work. */
    private static void work(IntBinaryOperator run, double nanos, boolean twice, double seconds)
        throws InterruptedException {
        int calls = calls(nanos, seconds);
        Runnable all = () -> Work.sink = CasesTurn.turn(run, calls, Work.sink);
        Thread other = twice ? new Thread(all, "other") : null;
        if (other != null) {
            other.start();
        }
        all.run();
        if (other != null) {
            other.join();
        }
    }

    private static int calls(double nanos, double seconds) {
        return (int) Math.max(3, seconds * 1e9 / nanos) / 3 * 3;
    }

    private static void truth(double seconds) throws InterruptedException {
        List<Run> runs = new ArrayList<>(PARTS);
        CASES.forEach(one -> runs.add(new Run(one.name, one.run, one.nanos)));
        // Warm first, all of them, so that each meets the others' traces.
        for (Run run : runs) {
            for (int i = 0; i < WARM_UPS; i++) {
                work(run.run, run.nanos, false, WARM_UP * seconds / WARM_UPS);
            }
        }
        // In turns, and the quickest of each: others on the machine can only slow us down.
        Map<String, Double> times = new HashMap<>();
        for (int round = 0; round < ROUNDS; round++) {
            runs.forEach(run -> times.merge(run.name, once(run, seconds), Math::min));
        }
        KNOWN.putAll(times);
        for (Case one : CASES) {
            System.out.println("bench case " + one.name + " " + times.get(one.name));
            for (Cost cost : one.costs) {
                double time = (sum(times, cost.whole) - sum(times, cost.parts)) / cost.of;
                System.out.println("bench method " + cost.method + " " + time + " " + cost.calls);
            }
        }
    }

    /** {@code a,b*3} is a and three times b. */
    private static double sum(Map<String, Double> times, String text) {
        double sum = 0;
        for (String part : text.isEmpty() ? new String[0] : text.split(",")) {
            String[] words = part.split("\\*");
            sum += times.get(words[0]) * (words.length > 1 ? Integer.parseInt(words[1]) : 1);
        }
        return sum;
    }

    /** Nanoseconds per call. */
    private static double once(Run run, double seconds) {
        int calls = calls(run.nanos, seconds);
        long begin = System.nanoTime();
        Work.sink = run.run.applyAsInt(calls, Work.sink);
        return (System.nanoTime() - begin) / (double) calls;
    }
}
