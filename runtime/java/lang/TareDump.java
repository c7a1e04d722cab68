package java.lang;

import java.lang.reflect.Method;
import java.util.Map;

/**
 * A dump of all threads, with what each waits for and who has that.
 *
 * <p>Platform threads are looked at by the JVM itself, all of them in one safepoint, the way
 * {@code ThreadMXBean.dumpAllThreads} does. That class is in another module, which need not be there and
 * which java.base does not read: hence reflection. Virtual threads are in {@link TareDumpVirtual}.
 *
 * <p>Called on the agent's control thread alone.
 */
final class TareDump {
    /** How a thread waits: for a monitor to enter it, for a notification, parked, or for its own load. */
    static final String ENTER = "enter";
    static final String WAIT = "wait";
    static final String PARK = "park";
    static final String CARRY = "carry";

    /** Bytes of a frame in the JVM's dump, and of all of them at least; frames of a stack at least. */
    private static final int FRAME = 64;
    private static final long SMALLEST_ROOM = 1 << 20;
    private static final int FEWEST = 8;

    private static Method dumpAll, id, name, state, daemon, priority, inNative, suspended, stack;
    private static Method lock, owner, monitors, blocked, waited, lockClass, lockHash, lockDepth;
    private static Object bean;

    private TareDump() {}

    /**
     * The dump as text ({@code crates/protocol/src/threads}), or null when there is no memory for it.
     *
     * @param virtuals how many virtual threads are looked at; none with 0
     * @param millis   for how long virtual threads are looked at
     */
    static byte[] dump(int depth, int virtuals, int millis) {
        try {
            TareDumpText.begin(free());
            platform(depth);
            TareDumpVirtual.write(depth, virtuals, millis);
            return TareDumpText.end();
        } catch (OutOfMemoryError noRoom) {
            return null;
        } finally {
            TareDumpText.forget();
            TareDumpVirtual.forget();
        }
    }

    /** Pairs: the id of a platform thread, and HotSpot's own thread behind it. */
    static long[] handles() {
        Thread[] threads = TareDumpVirtual.platformThreads();
        long[] handles = new long[2 * threads.length];
        for (int at = 0; at < threads.length; at++) {
            handles[2 * at] = TareDumpVirtual.id(threads[at]);
            handles[2 * at + 1] = TareDumpVirtual.handle(threads[at]);
        }
        return handles;
    }

    /** Where a thread has its id. */
    static long idOffset() {
        return TareDumpVirtual.TID;
    }

    /** Where a virtual thread has its continuation; -1 where there are none. */
    static long continuationOffset() {
        return TareDumpVirtual.CONTINUATION;
    }

    /** All virtual threads of the last dump, once; null if some were not looked at. */
    static Thread[] virtuals() {
        return TareDumpVirtual.takeAll();
    }

    /** Where the elements of an array of threads begin, and how far apart they are. */
    static long firstElement() {
        return TareDumpVirtual.FIRST_ELEMENT;
    }

    static long nextElement() {
        return TareDumpVirtual.NEXT_ELEMENT;
    }

    private static void platform(int depth) {
        Object[] infos;
        try {
            learn();
            // Both calls have HotSpot stop all threads once.
            int most = depth(depth);
            if (most < depth) {
                TareDumpText.note("shallow", Integer.toString(most));
            }
            infos = (Object[]) dumpAll.invoke(bean, true, false, most);
        } catch (ReflectiveOperationException | LinkageError absent) {
            TareDumpText.note("no-management", String.valueOf(absent));
            stacksOnly(depth);
            return;
        }
        long own = TareDumpVirtual.id(Thread.currentThread());
        long left = 0;
        try {
            for (Object info : infos) {
                // A thread that ended meanwhile has none.
                if (info == null || (long) id.invoke(info) == own) {
                    continue;
                }
                if (TareDumpText.isFull()) {
                    left++;
                } else {
                    thread(info, depth);
                }
            }
            if (left > 0) {
                TareDumpText.note("platform-left-out", Long.toString(left));
            }
        } catch (ReflectiveOperationException | LinkageError broken) {
            TareDumpText.note("incomplete", String.valueOf(broken));
        }
    }

    /** Bytes that can still be allocated, garbage not counted. */
    private static long free() {
        Runtime runtime = Runtime.getRuntime();
        return runtime.maxMemory() - runtime.totalMemory() + runtime.freeMemory();
    }

    /**
     * How many frames of each stack there is room for: a dump must not be what exhausts the heap, which
     * may end the program.
     */
    private static int depth(int wanted) {
        long room = Math.max(free() / 4, SMALLEST_ROOM);
        long threads = Math.max(1, TareDumpVirtual.platformThreads().length);
        return (int) Math.max(FEWEST, Math.min(wanted, room / threads / FRAME));
    }

    private static void learn() throws ReflectiveOperationException {
        if (bean != null) {
            return;
        }
        Class<?> info = Class.forName("java.lang.management.ThreadInfo", true, null);
        Class<?> locks = Class.forName("java.lang.management.LockInfo", true, null);
        Class<?> held = Class.forName("java.lang.management.MonitorInfo", true, null);
        Class<?> beans = Class.forName("java.lang.management.ThreadMXBean", true, null);
        Class<?> factory = Class.forName("java.lang.management.ManagementFactory", true, null);
        dumpAll = beans.getMethod("dumpAllThreads", boolean.class, boolean.class, int.class);
        id = info.getMethod("getThreadId");
        name = info.getMethod("getThreadName");
        state = info.getMethod("getThreadState");
        daemon = info.getMethod("isDaemon");
        priority = info.getMethod("getPriority");
        inNative = info.getMethod("isInNative");
        suspended = info.getMethod("isSuspended");
        stack = info.getMethod("getStackTrace");
        lock = info.getMethod("getLockInfo");
        owner = info.getMethod("getLockOwnerId");
        monitors = info.getMethod("getLockedMonitors");
        blocked = info.getMethod("getBlockedCount");
        waited = info.getMethod("getWaitedCount");
        lockClass = locks.getMethod("getClassName");
        lockHash = locks.getMethod("getIdentityHashCode");
        lockDepth = held.getMethod("getLockedStackDepth");
        bean = factory.getMethod("getThreadMXBean").invoke(null);
    }

    private static void thread(Object info, int depth) throws ReflectiveOperationException {
        StackTraceElement[] trace = (StackTraceElement[]) stack.invoke(info);
        Thread.State now = (Thread.State) state.invoke(info);
        int written = TareDumpText.stack(trace, depth);
        TareDumpText.line("T");
        TareDumpText.number((long) id.invoke(info));
        TareDumpText.field((String) name.invoke(info));
        TareDumpText.field("platform");
        TareDumpText.field(now.name());
        StringBuilder flags = new StringBuilder();
        flags.append((boolean) daemon.invoke(info) ? "d" : "");
        flags.append((boolean) inNative.invoke(info) ? "n" : "");
        flags.append((boolean) suspended.invoke(info) ? "s" : "");
        TareDumpText.field(flags.toString());
        TareDumpText.number((int) priority.invoke(info));
        TareDumpText.number(written);
        TareDumpText.number(0);
        Object awaited = lock.invoke(info);
        if (awaited != null) {
            String type = (String) lockClass.invoke(awaited);
            lock(how(now, trace, type), type, (int) lockHash.invoke(awaited), (long) owner.invoke(info));
            // Both only grow, so what did not change is one and the same wait.
            StringBuilder counts = new StringBuilder().append((long) blocked.invoke(info));
            TareDumpText.field(counts.append('.').append((long) waited.invoke(info)).toString());
        }
        for (Object monitor : (Object[]) monitors.invoke(info)) {
            held((int) lockDepth.invoke(monitor), (int) lockHash.invoke(monitor),
                (String) lockClass.invoke(monitor));
        }
    }

    private static String how(Thread.State state, StackTraceElement[] trace, String type) {
        if (state == Thread.State.BLOCKED) {
            return ENTER;
        }
        boolean waits = trace.length > 0 && trace[0].getMethodName().startsWith("wait")
            && trace[0].getClassName().equals("java.lang.Object");
        // A carrier is told as one that waits for the thread that it carries.
        return waits ? WAIT : TareDumpVirtual.isVirtual(type) ? CARRY : PARK;
    }

    /** The fields of a thread's line that say what it waits for; who has it is 0 when nobody knows. */
    static void lock(String how, String type, int hash, long owner) {
        TareDumpText.field(how);
        TareDumpText.field(type);
        TareDumpText.hex(hash);
        TareDumpText.number(owner < 0 ? 0 : owner);
    }

    /** A monitor of the thread before it, entered by the frame of that number from the top. */
    static void held(int depth, int hash, String type) {
        TareDumpText.line("L");
        TareDumpText.number(depth);
        TareDumpText.hex(hash);
        TareDumpText.field(type);
    }

    /** Without the module that tells of locks: stacks of one safepoint, and states of a moment after. */
    private static void stacksOnly(int depth) {
        for (Map.Entry<Thread, StackTraceElement[]> entry : Thread.getAllStackTraces().entrySet()) {
            Thread thread = entry.getKey();
            if (thread == Thread.currentThread()) {
                continue;
            }
            int written = TareDumpText.stack(entry.getValue(), depth);
            TareDumpText.line("T");
            TareDumpText.number(TareDumpVirtual.id(thread));
            TareDumpText.field(thread.getName());
            TareDumpText.field("platform");
            Thread.State now = thread.getState();
            TareDumpText.field(now.name());
            TareDumpText.field(thread.isDaemon() ? "d" : "");
            TareDumpText.number(thread.getPriority());
            TareDumpText.number(written);
            TareDumpText.number(0);
            if (now == Thread.State.WAITING || now == Thread.State.TIMED_WAITING) {
                TareDumpVirtual.parked(thread);
            }
        }
    }
}
