package java.lang;

/**
 * The probe runtime of the tests: every call that woven code can make, counted per method.
 *
 * <p>It lives in java.lang, where the real one lives, so that woven JDK classes of every module can
 * link to it. It calls nothing and allocates nothing after its start: the whole JDK may be woven
 * around it. Counts are exact for one thread; with several, some are lost, which tests that run
 * whole programs accept.
 */
public final class TareProbe {
    /** Ids from here on share the last place. */
    private static final int LIMIT = 1 << 16;

    private static final long[] ENTERED = new long[LIMIT];
    private static final long[] RETURNED = new long[LIMIT];
    private static final long[] THROWN = new long[LIMIT];
    private static final long[] BYTECODES = new long[LIMIT];
    private static final long[] SITES = new long[LIMIT];
    private static long objectsOut;
    private static long objectsBack;
    private static long caught;
    private static long activations;
    private static long activationWeight;
    private static int stackDepth;
    private static long stackFaults;
    private static long callsBegun;
    private static long callsEnded;
    private static long regionsBegun;
    private static long regionsEnded;
    private static long passedNull;

    private TareProbe() {}

    private static int place(int id) {
        return id >= 0 && id < LIMIT ? id : LIMIT - 1;
    }

    // Entry and exit. The token says which method it belongs to; its upper half must come back.

    private static final long MARK = 0x7a7e_0000_0000_0000L;

    public static long enter(int id) {
        ENTERED[place(id)]++;
        return MARK | id;
    }

    private static int idOf(long token) {
        if ((token & 0xffff_0000_0000_0000L) != MARK) {
            stackFaults++;
        }
        return place((int) token);
    }

    public static void exit(long token) {
        RETURNED[idOf(token)]++;
    }

    public static void exit(long token, int count) {
        exit(token);
        BYTECODES[idOf(token)] += count;
    }

    public static void exitThrow(long token) {
        THROWN[idOf(token)]++;
    }

    public static void exitThrow(long token, int count) {
        exitThrow(token);
        BYTECODES[idOf(token)] += count;
    }

    public static void caught(long token) {
        idOf(token);
        caught++;
    }

    // The same with an object as token: the array itself, so that nothing is allocated.

    public static Object enterObject(int id) {
        objectsOut++;
        return ENTERED;
    }

    public static void exitObject(Object token) {
        if (token != ENTERED) {
            stackFaults++;
        }
        objectsBack++;
    }

    public static void exitThrowObject(Object token) {
        exitObject(token);
    }

    public static void caughtObject(Object token) {
        if (token != ENTERED) {
            stackFaults++;
        }
    }

    // Bytecodes.

    public static void flush(int id, int count) {
        BYTECODES[place(id)] += count;
    }

    public static void flush(long token, int count) {
        BYTECODES[idOf(token)] += count;
    }

    public static void check(int weight) {
        activations++;
        activationWeight += weight;
    }

    // The reified stack. The token is the depth before the push.

    public static int push(int id) {
        return stackDepth++;
    }

    public static void pop(int depth) {
        if (depth < 0) {
            stackFaults++;
        }
        stackDepth = depth;
    }

    public static void popThrow(Throwable thrown, int depth) {
        if (thrown == null) {
            passedNull++;
        }
        pop(depth);
    }

    public static void reset(int depth) {
        stackDepth = depth + 1;
    }

    // Allocations, call sites, regions.

    public static void newObject(int site) {
        SITES[place(site)]++;
    }

    public static void newArray(Object array, int site) {
        if (array == null) {
            passedNull++;
        }
        SITES[place(site)]++;
    }

    public static void cloned(Object clone, int site) {
        if (clone == null) {
            passedNull++;
        }
        SITES[place(site)]++;
    }

    public static long before(int site) {
        callsBegun++;
        return MARK | site;
    }

    public static void after(long token, int site) {
        idOf(token);
        callsEnded++;
    }

    public static void afterThrow(long token, int site) {
        idOf(token);
        callsEnded++;
    }

    public static long regionStart(long token, int region) {
        if (token != 0) {
            return token;
        }
        regionsBegun++;
        return MARK | region;
    }

    public static void regionStop(long token) {
        if (token != 0) {
            idOf(token);
            regionsEnded++;
        }
    }

    // What the tests read.

    /** Entered, returned, thrown and bytecodes of one method. */
    public static long[] method(int id) {
        int at = place(id);
        return new long[] {ENTERED[at], RETURNED[at], THROWN[at], BYTECODES[at]};
    }

    public static long site(int id) {
        return SITES[place(id)];
    }

    /** Everything that is not per method: name and value in turn. */
    public static Object[] totals() {
        return new Object[] {
            "objects-out", objectsOut,
            "objects-back", objectsBack,
            "caught", caught,
            "activations", activations,
            "activation-weight", activationWeight,
            "stack-depth", (long) stackDepth,
            "faults", stackFaults,
            "calls-begun", callsBegun,
            "calls-ended", callsEnded,
            "regions-begun", regionsBegun,
            "regions-ended", regionsEnded,
            "nulls", passedNull,
        };
    }

    /** All probe calls of the kinds that every mode has one of; zero means that nothing ran woven. */
    public static long activity() {
        long sum = objectsOut + activations + callsBegun + regionsBegun + stackDepth + caught;
        for (int i = 0; i < LIMIT; i++) {
            sum += ENTERED[i] + BYTECODES[i] + SITES[i];
        }
        return sum;
    }
}
