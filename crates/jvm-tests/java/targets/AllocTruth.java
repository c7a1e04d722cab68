import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.function.IntFunction;

/**
 * Allocates objects of known size at known places, keeps some of them for a known number of
 * collections, and counts all of it itself. Counting allocates nothing.
 *
 * <p>Lines on its input: {@code churn MEGABYTES} allocates so much that dies at once, on two platform
 * threads and, from 21 on, on virtual ones. {@code round} is one round of lives, with a collection at its
 * end; there are at most {@link #ROUNDS}. {@code collect} is a collection alone. {@code truth} prints {@code truth SITE TYPE OBJECTS BYTES} of
 * all that was allocated and {@code alive SITE OBJECTS BYTES COLLECTIONS} of what is kept, with the number of this
 * program's own collections since. Each is answered by {@code LINE: done}.
 *
 * <p>Sizes hold for headers of 12 bytes, which all JVMs have here that are not told otherwise.
 */
public final class AllocTruth {
    static final int ROUNDS = 6;
    /** Bytes of each site of lives in a round. */
    static final int SHARE = 12 << 20;
    /** For how many collections objects of the two passing sites are kept. */
    static final int ONE = 1;
    static final int THREE = 3;

    static final String[] SITES = {
        "tiny AllocTruth$Tiny 16", "small byte[] 64", "medium int[] 1024", "large byte[] 16384",
        "huge long[] 131072", "vast byte[] 1048576", "passing byte[] 128", "lastsOne int[] 512",
        "lastsThree char[] 256", "stays1 byte[] 256", "stays2 byte[] 256", "stays3 byte[] 256",
        "stays4 byte[] 256", "stays5 byte[] 256", "stays6 byte[] 256",
    };
    static final int PASSING = 6;
    static final int LASTS_ONE = 7;
    static final int LASTS_THREE = 8;
    static final int STAYS = 9;
    /** Of a hundred bytes that are churned, so many are of each of the first six sites. */
    static final int[] PERCENT = {20, 20, 20, 15, 15, 10};

    static final class Tiny {
        int value;
    }

    static final long[] COUNTS = new long[SITES.length];
    /** What is kept: by site and round, made before anybody looks. */
    static final Object[][][] KEPT = new Object[SITES.length][ROUNDS + 1][];
    static int round;
    static int collections;
    static final int[] BORN = new int[ROUNDS + 1];
    /** Volatile, or the compiler would see that nobody reads what was stored before. */
    static volatile Object sink;

    static Object tiny() {
        return new Tiny();
    }

    static Object small() {
        return new byte[48];
    }

    static Object medium() {
        return new int[252];
    }

    static Object large() {
        return new byte[16368];
    }

    static Object huge() {
        return new long[16382];
    }

    static Object vast() {
        return new byte[1048560];
    }

    static Object passing() {
        return new byte[112];
    }

    static Object lastsOne() {
        return new int[124];
    }

    static Object lastsThree() {
        return new char[120];
    }

    static Object stays1() {
        return new byte[240];
    }

    static Object stays2() {
        return new byte[240];
    }

    static Object stays3() {
        return new byte[240];
    }

    static Object stays4() {
        return new byte[240];
    }

    static Object stays5() {
        return new byte[240];
    }

    static Object stays6() {
        return new byte[240];
    }

    static Object allocate(int site) {
        return switch (site) {
            case 0 -> tiny();
            case 1 -> small();
            case 2 -> medium();
            case 3 -> large();
            case 4 -> huge();
            case 5 -> vast();
            case PASSING -> passing();
            case LASTS_ONE -> lastsOne();
            case LASTS_THREE -> lastsThree();
            case STAYS -> stays1();
            case STAYS + 1 -> stays2();
            case STAYS + 2 -> stays3();
            case STAYS + 3 -> stays4();
            case STAYS + 4 -> stays5();
            default -> stays6();
        };
    }

    static int size(int site) {
        return Integer.parseInt(SITES[site].split(" ")[2]);
    }

    /** One unit is a hundred megabytes; sites take turns, so that each meets every state of the heap. */
    static void churn(int units, long[] counts) {
        for (int unit = 0; unit < units; unit++) {
            for (int step = 0; step < 10; step++) {
                for (int site = 0; site < PERCENT.length; site++) {
                    int objects = PERCENT[site] * (1 << 20) / 10 / size(site);
                    for (int i = 0; i < objects; i++) {
                        sink = allocate(site);
                    }
                    counts[site] += objects;
                }
            }
        }
    }

    static void churn(int megabytes) throws Exception {
        List<Thread> threads = new ArrayList<>();
        List<long[]> counts = new ArrayList<>();
        boolean virtual = Runtime.version().feature() >= 21;
        int workers = virtual ? 4 : 2;
        for (int i = 0; i < workers; i++) {
            long[] own = new long[SITES.length];
            counts.add(own);
            Runnable work = () -> churn(Math.max(1, megabytes / 100 / workers), own);
            threads.add(i < 2 ? platform(work, "churn-" + i) : virtual(work));
        }
        for (Thread thread : threads) {
            thread.join();
        }
        for (long[] own : counts) {
            for (int site = 0; site < own.length; site++) {
                COUNTS[site] += own[site];
            }
        }
    }

    static Thread platform(Runnable work, String name) {
        Thread thread = new Thread(work, name);
        thread.start();
        return thread;
    }

    /** By reflection, because this is compiled for 17. */
    static Thread virtual(Runnable work) throws ReflectiveOperationException {
        return (Thread) Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, work);
    }

    static void fill(int site, int round) {
        Object[] place = KEPT[site][round];
        for (int i = 0; i < place.length; i++) {
            place[i] = allocate(site);
        }
        COUNTS[site] += place.length;
    }

    static void forget(int site, int round) {
        if (round > 0) {
            java.util.Arrays.fill(KEPT[site][round], null);
        }
    }

    static void live(int round) {
        forget(LASTS_ONE, round - ONE);
        forget(LASTS_THREE, round - THREE);
        fill(STAYS + round - 1, round);
        fill(LASTS_ONE, round);
        fill(LASTS_THREE, round);
        int objects = SHARE / size(PASSING);
        for (int i = 0; i < objects; i++) {
            sink = allocate(PASSING);
        }
        COUNTS[PASSING] += objects;
        sink = null;
    }

    static void round() throws Exception {
        round++;
        BORN[round] = collections;
        int now = round;
        boolean virtual = Runtime.version().feature() >= 21 && now % 2 == 0;
        Thread thread = virtual ? virtual(() -> live(now)) : platform(() -> live(now), "live");
        thread.join();
        collect();
    }

    static void collect() {
        System.gc();
        collections++;
    }

    static void truth() {
        for (int site = 0; site < SITES.length; site++) {
            String[] words = SITES[site].split(" ");
            long size = Long.parseLong(words[2]);
            System.out.println("truth " + words[0] + " " + words[1] + " " + COUNTS[site] + " " + COUNTS[site] * size);
            for (int born = 1; born <= ROUNDS; born++) {
                Object[] place = KEPT[site][born];
                if (place != null && place[0] != null) {
                    int age = collections - BORN[born];
                    System.out.println("alive " + words[0] + " " + place.length + " " + place.length * size + " " + age);
                }
            }
        }
    }

    public static void main(String[] arguments) throws Exception {
        IntFunction<Object[]> room = site -> new Object[SHARE / size(site)];
        for (int born = 1; born <= ROUNDS; born++) {
            KEPT[LASTS_ONE][born] = room.apply(LASTS_ONE);
            KEPT[LASTS_THREE][born] = room.apply(LASTS_THREE);
            KEPT[STAYS + born - 1][born] = room.apply(STAYS);
        }
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            switch (words[0]) {
                case "churn" -> churn(Integer.parseInt(words[1]));
                case "round" -> round();
                case "collect" -> collect();
                case "truth" -> truth();
                default -> System.out.println("unknown: " + line);
            }
            System.out.println(line + ": done");
        }
    }
}
