package java.lang;

/**
 * The runtime that tests weave into whole JDKs. It counts in plain static fields and calls
 * nothing, so that it works in the first class that a JVM initialises. Counts of several threads
 * race and are not exact; {@code depth} is only meaningful with one thread.
 */
public final class TareProbe {
    public static long enters, exits, throwExits, caughts, bytecodes, flushes;
    public static long ticks, pushes, pops, objects, arrays, clones, calls, callThrows, regions, wholes;
    /** Allocation probes that were given a null. */
    public static long nulls;

    private TareProbe() {}

    public static long enter(int id) { enters++; return id; }
    public static void exit(long token) { exits++; }
    public static void exitThrow(long token) { throwExits++; }
    public static void caught(long token) { caughts++; }

    public static Object enterObject(int id) { enters++; return null; }
    public static void exitObject(Object token) { exits++; }
    public static void throwObject(Throwable t, Object token) { throwExits++; }

    public static void exitCount(long token, int n) { exits++; bytecodes += n; }
    public static void throwCount(long token, int n) { throwExits++; bytecodes += n; }
    public static void flush(long token, int n) { flushes++; bytecodes += n; }
    public static void tick(int n) { ticks += n; }

    public static int push(int id) { return (int) pushes++; }
    public static void pop(int token) { pops++; }
    public static void reset(int token) { }

    public static void allocated(int site) { objects++; }
    public static void array(Object a, int site) { arrays++; if (a == null) nulls++; }
    public static void cloned(Object a, int site) { clones++; if (a == null) nulls++; }

    public static void of(Class<?> type, int site) { objects++; if (type == null) nulls++; }
    public static void made(Object o, int site) { arrays++; if (o == null) nulls++; }
    public static void copied(Object o, Class<?> type, int site) { clones++; if (type == null) nulls++; }
    public static void whole(Object o, int site) { wholes++; if (o == null) nulls++; }
    public static void arrays(Object o, int site, int levels) { arrays++; if (o == null) nulls++; }

    public static long before(int site) { calls++; return site; }
    public static void after(long token) { }
    public static void afterThrow(long token) { callThrows++; }

    public static long regionStart(long token, int id) {
        if (token != 0) return token;
        regions++;
        return id + 1L;
    }
    public static void regionStop(long token) { }
}
