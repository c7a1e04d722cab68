package java.lang;

import java.lang.reflect.Method;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.Iterator;
import java.util.concurrent.locks.AbstractOwnableSynchronizer;
import java.util.concurrent.locks.AbstractQueuedSynchronizer;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;
import jdk.internal.misc.Unsafe;

/**
 * The virtual threads of a dump, one after the other: unlike platform threads they are not looked at in
 * one moment. Which monitors they wait for the agent reads from HotSpot's own structures.
 *
 * <p>JDK 25 has a ThreadSnapshot that tells more, monitors among it. It is not used: HotSpot's side of
 * it faults when a virtual thread unmounts meanwhile (JDK-8364314, JDK-8364343).
 */
final class TareDumpVirtual {
    private static final Unsafe U = Unsafe.getUnsafe();
    static final long TID = U.objectFieldOffset(Thread.class, "tid");
    private static final long HANDLE = U.objectFieldOffset(Thread.class, "eetop");
    private static final long OWNER =
        U.objectFieldOffset(AbstractOwnableSynchronizer.class, "exclusiveOwnerThread");
    private static final long TAIL = U.objectFieldOffset(AbstractQueuedSynchronizer.class, "tail");

    /** How many waiting threads of one lock are looked through. */
    private static final int LONGEST_QUEUE = 100_000;

    private static final Class<?> VIRTUAL = type("java.lang.VirtualThread");
    private static final long CARRIER =
        VIRTUAL == null ? -1 : U.objectFieldOffset(VIRTUAL, "carrierThread");
    static final long FIRST_ELEMENT = firstElement();
    static final long NEXT_ELEMENT = U.arrayIndexScale(Thread[].class);
    static final long CONTINUATION = VIRTUAL == null ? -1 : U.objectFieldOffset(VIRTUAL, "cont");

    /** Of each lock that virtual threads wait for: who is in its queue, by the node there. */
    private static IdentityHashMap<Object, IdentityHashMap<Object, Object>> queues;
    private static ArrayList<Thread> threads;
    /** All of them, if none was left out: for the agent, which looks at the locks that they have. */
    private static Thread[] all;
    private static boolean isTracked;

    private TareDumpVirtual() {}

    private static Class<?> type(String name) {
        try {
            return Class.forName(name, false, null);
        } catch (ClassNotFoundException absent) {
            return null;
        }
    }

    /** By reflection, because what the method returns is an int or, since JDK 25, a long; -1 if unknown. */
    private static long firstElement() {
        try {
            Method base = Unsafe.class.getMethod("arrayBaseOffset", Class.class);
            return ((Number) base.invoke(U, Thread[].class)).longValue();
        } catch (ReflectiveOperationException absent) {
            return -1;
        }
    }

    static long id(Thread thread) {
        return U.getLong(thread, TID);
    }

    /** HotSpot's own thread; zero for one that is not alive, and for a virtual one. */
    static long handle(Thread thread) {
        return U.getLong(thread, HANDLE);
    }

    static boolean isVirtual(String type) {
        return VIRTUAL != null && VIRTUAL.getName().equals(type);
    }

    static Thread[] takeAll() {
        Thread[] taken = all;
        all = null;
        return taken;
    }

    static void forget() {
        queues = null;
        threads = null;
    }

    /** All platform threads; none where the JVM does not tell. */
    static Thread[] platformThreads() {
        try {
            Method all = Thread.class.getDeclaredMethod("getThreads");
            all.setAccessible(true);
            return (Thread[]) all.invoke(null);
        } catch (ReflectiveOperationException absent) {
            return new Thread[0];
        }
    }

    static void write(int depth, int most, int millis) {
        all = null;
        if (VIRTUAL == null || most == 0) {
            return;
        }
        long end = System.nanoTime() + millis * 1_000_000L;
        queues = new IdentityHashMap<>();
        threads = new ArrayList<>();
        try {
            long left = collect(most);
            int looked = 0;
            while (looked < threads.size() && System.nanoTime() < end && !TareDumpText.isFull()) {
                look(threads.get(looked++), depth);
            }
            left += threads.size() - looked;
            if (left > 0) {
                TareDumpText.note("virtual-left-out", Long.toString(left));
            } else if (isTracked) {
                all = threads.toArray(new Thread[0]);
            }
        } catch (ReflectiveOperationException | LinkageError broken) {
            TareDumpText.note("no-virtual", String.valueOf(broken));
        }
    }

    /** The virtual threads that there are, up to a number; how many more there were. */
    private static long collect(int most) throws ReflectiveOperationException {
        Class<?> containers = Class.forName("jdk.internal.vm.ThreadContainers", true, null);
        Class<?> container = Class.forName("jdk.internal.vm.ThreadContainer", true, null);
        Method content = container.getMethod("threads");
        Method children = container.getMethod("children");
        isTracked = (boolean) containers.getMethod("trackAllThreads").invoke(null);
        if (!isTracked) {
            TareDumpText.note("virtual-untracked", "");
        }
        long left = 0;
        ArrayDeque<Object> open = new ArrayDeque<>();
        open.add(containers.getMethod("root").invoke(null));
        while (!open.isEmpty()) {
            Object next = open.poll();
            Iterator<?> inside = ((Stream<?>) content.invoke(next)).iterator();
            while (inside.hasNext()) {
                Object thread = inside.next();
                if (!VIRTUAL.isInstance(thread)) {
                    continue;
                }
                if (threads.size() < most) {
                    threads.add((Thread) thread);
                } else {
                    left++;
                }
            }
            Iterator<?> below = ((Stream<?>) children.invoke(next)).iterator();
            while (below.hasNext()) {
                open.add(below.next());
            }
        }
        return left;
    }

    private static void look(Thread thread, int depth) {
        Thread.State state = thread.getState();
        StackTraceElement[] trace = thread.getStackTrace();
        Thread carrier = (Thread) U.getReferenceVolatile(thread, CARRIER);
        if (state == Thread.State.TERMINATED || state == Thread.State.NEW) {
            return;
        }
        int stack = TareDumpText.stack(trace, depth);
        TareDumpText.line("T");
        TareDumpText.number(id(thread));
        TareDumpText.field(thread.getName());
        TareDumpText.field("virtual");
        TareDumpText.field(state.name());
        TareDumpText.field("d");
        TareDumpText.number(thread.getPriority());
        TareDumpText.number(stack);
        TareDumpText.number(carrier == null ? 0 : id(carrier));
        if (state == Thread.State.WAITING || state == Thread.State.TIMED_WAITING) {
            parked(thread);
        }
    }

    /** What a thread is parked for, who has it, and what tells this wait from another. */
    static void parked(Thread thread) {
        Object blocker = LockSupport.getBlocker(thread);
        if (blocker == null) {
            return;
        }
        Object owner = blocker instanceof AbstractOwnableSynchronizer
            ? U.getReferenceVolatile(blocker, OWNER) : null;
        TareDump.lock(TareDump.PARK, blocker.getClass().getName(), System.identityHashCode(blocker),
            owner == null ? 0 : id((Thread) owner));
        // Each acquisition has a node of its own in the queue.
        Object node = blocker instanceof AbstractQueuedSynchronizer && queues != null
            ? node(blocker, thread) : null;
        TareDumpText.field(node == null ? "" : Integer.toHexString(System.identityHashCode(node)));
    }

    private static Object node(Object lock, Thread thread) {
        IdentityHashMap<Object, Object> queue = queues.get(lock);
        if (queue == null) {
            queue = new IdentityHashMap<>();
            queues.put(lock, queue);
            Object node = U.getReferenceVolatile(lock, TAIL);
            try {
                for (int at = 0; node != null && at < LONGEST_QUEUE; at++) {
                    Class<?> type = node.getClass();
                    Object waiter = U.getReferenceVolatile(node, inNode(type, "waiter"));
                    if (waiter != null) {
                        queue.put(waiter, node);
                    }
                    node = U.getReferenceVolatile(node, inNode(type, "prev"));
                }
            } catch (InternalError otherFields) {
                return null;
            }
        }
        return queue.get(thread);
    }

    /** Where a field is that the parent of all kinds of nodes declares. */
    private static long inNode(Class<?> type, String name) {
        while (type.getSuperclass() != Object.class) {
            type = type.getSuperclass();
        }
        return U.objectFieldOffset(type, name);
    }
}
