package java.lang;

import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.Future;
import java.util.concurrent.locks.AbstractOwnableSynchronizer;
import java.util.concurrent.locks.AbstractQueuedLongSynchronizer;
import java.util.concurrent.locks.AbstractQueuedSynchronizer;
import java.util.concurrent.locks.StampedLock;
import jdk.internal.misc.Unsafe;

/**
 * Tells the agent of threads that park or sleep: what for, who has that, and how many wait for it.
 *
 * <p>Called around {@code Unsafe.park} by the agent's code in its place, around what parks virtual
 * threads by woven code, and by the agent where the JVM tells of those. Queues belong to other
 * threads as well and change meanwhile: they are followed for so many steps, and what is not found
 * is not known.
 */
public final class TareParks {
    private static final Unsafe U = Unsafe.getUnsafe();
    private static final long TID = offset(Thread.class, "tid");
    private static final long HANDLE = offset(Thread.class, "eetop");
    private static final long BLOCKER = offset(Thread.class, "parkBlocker");
    private static final long OWNER = offset(AbstractOwnableSynchronizer.class, "exclusiveOwnerThread");

    // What is waited for, by the number that the agent has for it.

    private static final int LOCK = 1;
    private static final int SHARED_LOCK = 2;
    private static final int CONDITION = 4;
    private static final int QUEUE = 5;
    private static final int FUTURE = 6;
    private static final int SLEEP = 7;
    private static final int PARK = 8;

    /** How far a queue is followed. */
    private static final int FARTHEST = 256;

    private static final String CONCURRENT = "java.util.concurrent.";
    private static final String LOCKS = "java.util.concurrent.locks.";
    private static final String QUEUED = LOCKS + "AbstractQueuedSynchronizer";
    private static final String LONG_QUEUED = LOCKS + "AbstractQueuedLongSynchronizer";
    private static final String STAMPED = LOCKS + "StampedLock";

    private static final Class<?> VIRTUAL = type("java.lang.VirtualThread");
    private static final long CARRIER = offset(VIRTUAL, "carrierThread");
    private static final long PERMIT = offset(VIRTUAL, "parkPermit");

    // Three classes have queues of the same form.

    private static final long TAIL = offset(type(QUEUED), "tail");
    private static final long PREV = offset(type(QUEUED + "$Node"), "prev");
    private static final long WAITER = offset(type(QUEUED + "$Node"), "waiter");
    private static final Class<?> SHARED = type(QUEUED + "$SharedNode");
    private static final Class<?> OF_LOCK = type(QUEUED + "$ConditionObject");
    private static final long OUTER = offset(OF_LOCK, "this$0");

    private static final long LONG_TAIL = offset(type(LONG_QUEUED), "tail");
    private static final long LONG_PREV = offset(type(LONG_QUEUED + "$Node"), "prev");
    private static final long LONG_WAITER = offset(type(LONG_QUEUED + "$Node"), "waiter");
    private static final Class<?> LONG_SHARED = type(LONG_QUEUED + "$SharedNode");
    private static final Class<?> LONG_OF_LOCK = type(LONG_QUEUED + "$ConditionObject");
    private static final long LONG_OUTER = offset(LONG_OF_LOCK, "this$0");

    private static final long STAMPED_TAIL = offset(type(STAMPED), "tail");
    private static final long STAMPED_PREV = offset(type(STAMPED + "$Node"), "prev");
    private static final long STAMPED_WAITER = offset(type(STAMPED + "$Node"), "waiter");
    private static final Class<?> STAMPED_WRITER = type(STAMPED + "$WriterNode");

    /** Classes that nobody knows by name, and those that they belong to. */
    private static final Class<?>[] INNER = {
        type(LOCKS + "ReentrantLock$NonfairSync"), type(LOCKS + "ReentrantLock"),
        type(LOCKS + "ReentrantLock$FairSync"), type(LOCKS + "ReentrantLock"),
        type(LOCKS + "ReentrantReadWriteLock$NonfairSync"), type(LOCKS + "ReentrantReadWriteLock"),
        type(LOCKS + "ReentrantReadWriteLock$FairSync"), type(LOCKS + "ReentrantReadWriteLock"),
        type(CONCURRENT + "Semaphore$NonfairSync"), type(CONCURRENT + "Semaphore"),
        type(CONCURRENT + "Semaphore$FairSync"), type(CONCURRENT + "Semaphore"),
        type(CONCURRENT + "CountDownLatch$Sync"), type(CONCURRENT + "CountDownLatch"),
        type(CONCURRENT + "ThreadPoolExecutor$Worker"), type(CONCURRENT + "ThreadPoolExecutor"),
        type(CONCURRENT + "Phaser$QNode"), type(CONCURRENT + "Phaser"),
    };
    private static final Class<?> LATCH = type(CONCURRENT + "CountDownLatch$Sync");
    private static final Class<?> SIGNALLER = type(CONCURRENT + "CompletableFuture$Signaller");
    private static final Class<?> COMPLETABLE = type(CONCURRENT + "CompletableFuture");
    private static final Class<?> AUX = type(CONCURRENT + "ForkJoinTask$Aux");
    private static final Class<?> JOINED = type(CONCURRENT + "ForkJoinTask");
    private static final Class<?> STACK = type(CONCURRENT + "SynchronousQueue$TransferStack");
    private static final Class<?> TRANSFER = type(CONCURRENT + "SynchronousQueue$TransferQueue");
    private static final Class<?> TRANSFERER = type(CONCURRENT + "SynchronousQueue$Transferer");
    private static final Class<?> SYNCHRONOUS = type(CONCURRENT + "SynchronousQueue");

    private static final java.lang.reflect.Field SCHEDULER = scheduler();
    private static final Object SCHEDULER_IN = SCHEDULER == null ? null : U.staticFieldBase(SCHEDULER);
    private static final long SCHEDULER_AT = SCHEDULER == null ? -1 : U.staticFieldOffset(SCHEDULER);
    private static final Class<?> FUTURE_TASK = type(CONCURRENT + "FutureTask");
    private static final long CALLABLE = offset(FUTURE_TASK, "callable");
    private static final Class<?> ADAPTER = type(CONCURRENT + "Executors$RunnableAdapter");
    private static final long ADAPTED = offset(ADAPTER, "task");

    private TareParks() {}

    private static Class<?> type(String name) {
        try {
            return Class.forName(name, false, null);
        } catch (ClassNotFoundException | LinkageError absent) {
            return null;
        }
    }

    /** Where a field is; -1 if there is none, in this version of the JDK. */
    private static long offset(Class<?> type, String name) {
        try {
            return type == null ? -1 : U.objectFieldOffset(type, name);
        } catch (InternalError absent) {
            return -1;
        }
    }

    /** Called by the agent: has its native code put in the place of the JDK's. */
    static void bind() {
        // From Java, so that the JVM sees that its own classes do it.
        replace();
    }

    private static native void replace();

    /** The running thread is about to park; called by the agent. Zero when nobody wants to know. */
    static long parks() {
        try {
            Thread thread = Thread.currentThread();
            Object blocker = U.getReference(thread, BLOCKER);
            // A carrier without a virtual thread to run is nothing that the program waits for.
            return blocker != null && isScheduler(blocker) ? 0 : begins(thread, blocker);
        } catch (Throwable noRoom) {
            return 0;
        }
    }

    /** The running thread is about to sleep; called by the agent, and by woven code. */
    public static long sleeps() {
        try {
            Thread thread = Thread.currentThread();
            return begin(U.getLong(thread, TID), SLEEP, Thread.class, 0, 0, 0, 0, 0);
        } catch (Throwable noRoom) {
            return 0;
        }
    }

    /** A virtual thread sleeps; platform threads have the agent see it. */
    public static long virtualSleeps() {
        return VIRTUAL != null && VIRTUAL.isInstance(Thread.currentThread()) ? sleeps() : 0;
    }

    /** Woven: a virtual thread is about to park for what it was given, or for what it has said before. */
    public static long virtualParks(Object blocker) {
        try {
            Thread thread = Thread.currentThread();
            if (VIRTUAL == null || !VIRTUAL.isInstance(thread)
                || PERMIT != -1 && U.getBooleanVolatile(thread, PERMIT)) {
                return 0;
            }
            return begins(thread, blocker != null ? blocker : U.getReference(thread, BLOCKER));
        } catch (Throwable noRoom) {
            return 0;
        }
    }

    public static long virtualParks() {
        return virtualParks(null);
    }

    /** The running virtual thread is about to leave its carrier, to be parked; called by the agent. */
    static long leaves() {
        try {
            Thread thread = Thread.currentThread();
            return begins(thread, U.getReference(thread, BLOCKER));
        } catch (Throwable noRoom) {
            return 0;
        }
    }

    /** What was begun is over. */
    public static void ends(long token) {
        if (token != 0) {
            end(token);
        }
    }

    private static long begins(Thread thread, Object blocker) {
        long tid = U.getLong(thread, TID);
        if (blocker == null) {
            return begin(tid, PARK, null, 0, 0, 0, 0, 0);
        }
        if (blocker instanceof AbstractQueuedSynchronizer) {
            return acquires(thread, tid, blocker, TAIL, PREV, WAITER, SHARED);
        }
        if (blocker instanceof AbstractQueuedLongSynchronizer) {
            return acquires(thread, tid, blocker, LONG_TAIL, LONG_PREV, LONG_WAITER, LONG_SHARED);
        }
        if (blocker instanceof StampedLock) {
            return stamps(thread, tid, blocker);
        }
        Class<?> type = blocker.getClass();
        int kind = PARK;
        if (type == OF_LOCK || type == LONG_OF_LOCK) {
            long outer = type == OF_LOCK ? OUTER : LONG_OUTER;
            Object lock = outer == -1 ? null : U.getReference(blocker, outer);
            kind = CONDITION;
            if (lock != null) {
                blocker = lock;
                type = shown(lock.getClass());
            }
        } else if (type == SIGNALLER || type == AUX || blocker instanceof Future) {
            kind = FUTURE;
            type = type == SIGNALLER ? COMPLETABLE : type == AUX ? JOINED : type;
        } else if (type == STACK || type == TRANSFER || type == TRANSFERER) {
            kind = QUEUE;
            type = SYNCHRONOUS;
        } else if (blocker instanceof ForkJoinPool || blocker instanceof BlockingQueue) {
            kind = QUEUE;
        } else {
            type = shown(type);
        }
        return begin(tid, kind, type, System.identityHashCode(blocker), 0, 0, 0, 0);
    }

    /** It waits in the queue of a synchronizer. */
    private static long acquires(Thread thread, long tid, Object lock, long tail, long prev, long waiter,
                                 Class<?> shared) {
        Object node = node(lock, thread, tail, prev, waiter);
        Object owner = OWNER == -1 ? null : U.getReferenceVolatile(lock, OWNER);
        boolean isShared = node != null ? node.getClass() == shared : owner == null;
        // Nobody has a latch: who waits for one waits for something to happen.
        int kind = lock.getClass() == LATCH ? CONDITION : isShared ? SHARED_LOCK : LOCK;
        return begin(tid, kind, shown(lock.getClass()),
            System.identityHashCode(lock), node == null ? 0 : System.identityHashCode(node),
            length(lock, tail, prev, waiter), owner == null ? 0 : U.getLong(owner, TID), handle(owner));
    }

    /** Nobody knows who has a stamped lock; readers may stand beside the queue. */
    private static long stamps(Thread thread, long tid, Object lock) {
        Object node = node(lock, thread, STAMPED_TAIL, STAMPED_PREV, STAMPED_WAITER);
        boolean writes = node != null && node.getClass() == STAMPED_WRITER;
        return begin(tid, writes ? LOCK : SHARED_LOCK, lock.getClass(), System.identityHashCode(lock),
            node == null ? 0 : System.identityHashCode(node),
            length(lock, STAMPED_TAIL, STAMPED_PREV, STAMPED_WAITER), 0, 0);
    }

    /** HotSpot's thread that runs another one, if one does. */
    private static long handle(Object owner) {
        if (owner != null && VIRTUAL != null && VIRTUAL.isInstance(owner)) {
            owner = CARRIER == -1 ? null : U.getReferenceVolatile(owner, CARRIER);
        }
        return owner == null ? 0 : U.getLong(owner, HANDLE);
    }

    private static Class<?> shown(Class<?> type) {
        for (int at = 0; at < INNER.length; at += 2) {
            if (INNER[at] == type) {
                return INNER[at + 1];
            }
        }
        return type;
    }

    /** The node that a thread has in a queue: one for each acquisition, however often it parks. */
    private static Object node(Object lock, Thread thread, long tail, long prev, long waiter) {
        if (tail == -1 || prev == -1 || waiter == -1) {
            return null;
        }
        Object node = U.getReferenceVolatile(lock, tail);
        for (int at = 0; node != null && at < FARTHEST; at++) {
            if (U.getReferenceVolatile(node, waiter) == thread) {
                return node;
            }
            node = U.getReferenceVolatile(node, prev);
        }
        return null;
    }

    /** How many threads are in a queue; zero if nobody knows. */
    private static int length(Object lock, long tail, long prev, long waiter) {
        if (tail == -1 || prev == -1 || waiter == -1) {
            return 0;
        }
        int length = 0;
        Object node = U.getReferenceVolatile(lock, tail);
        for (int at = 0; node != null; at++) {
            if (at == FARTHEST) {
                return 0;
            }
            if (U.getReferenceVolatile(node, waiter) != null) {
                length++;
            }
            node = U.getReferenceVolatile(node, prev);
        }
        return length;
    }

    // Tasks on their way through the queue of an executor.

    /** Woven: an executor takes a task over. */
    public static void submits(Object executor, Object task) {
        if (task != null && executor != null && !isScheduler(executor)) {
            submitted(executor.getClass(), System.identityHashCode(task));
        }
    }

    /** Woven: a thread is about to run a task. */
    public static long runs(Object task) {
        if (task != null && waitsForThread(System.identityHashCode(task))) {
            started(inner(task).getClass(), System.identityHashCode(task));
        }
        return 0;
    }

    /** Woven: the task is over. */
    public static void ran(long nothing) {}

    /**
     * What virtual threads run on: their continuations are no tasks to anybody. It is not there before the
     * program has made the first of them.
     */
    private static boolean isScheduler(Object pool) {
        return SCHEDULER_AT != -1 && pool == U.getReference(SCHEDULER_IN, SCHEDULER_AT);
    }

    private static java.lang.reflect.Field scheduler() {
        try {
            return VIRTUAL == null ? null : VIRTUAL.getDeclaredField("DEFAULT_SCHEDULER");
        } catch (ReflectiveOperationException | RuntimeException absent) {
            return null;
        }
    }

    /** What the program has handed over, as far as it is wrapped in the usual way. */
    private static Object inner(Object task) {
        Object inside = task;
        if (task.getClass() == FUTURE_TASK && CALLABLE != -1) {
            inside = U.getReference(task, CALLABLE);
            if (inside != null && inside.getClass() == ADAPTER && ADAPTED != -1) {
                inside = U.getReference(inside, ADAPTED);
            }
        }
        return inside == null ? task : inside;
    }

    private static native void submitted(Class<?> executor, int task);

    private static native boolean waitsForThread(int task);

    private static native void started(Class<?> type, int task);

    /** What an agent gets to know: see {@code crates/agent/src/locks/parks}. */
    private static native long begin(long thread, int kind, Class<?> type, int instance, int node,
                                     int queue, long owner, long handle);

    private static native void end(long token);
}
