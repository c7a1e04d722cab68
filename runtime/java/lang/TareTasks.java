package java.lang;

import static java.lang.TareClock.held;
import static java.lang.TareClock.unpaused;
import static java.lang.TareLayout.*;
import static java.lang.TareProbe.begin;
import static java.lang.TareProbe.begun;
import static java.lang.TareProbe.exit;
import static java.lang.TareThreads.*;
import static java.lang.TareTree.*;

import jdk.internal.misc.Unsafe;

/**
 * Follows threads and tasks that come from inside the subgraph.
 *
 * <p>A thread that is started inside the subgraph is inside from its first moment on, below a node that
 * tells from which tree it was started. A task is noted when it is handed over, and is below such a node
 * for as long as it runs, whichever thread runs it. These nodes have no times. An exception that leaves a task
 * is noted like one: whoever handles it as uncaught is below the same node.
 */
public final class TareTasks {
    private static final Unsafe U = Unsafe.getUnsafe();

    /** Tasks on their way: identity hash, a set bit, number of a tree's first page. */
    private static long tasks;
    private static final int TASK_PLACES = 16;
    private static final long ON_ITS_WAY = 1L << 31;
    /** Begun by {@link #before}; whoever runs it ends it, or {@link #after} does. */
    private static final long TAKEN = 1L << 30;
    private static final int TREE_NUMBER = (1 << 20) - 1;

    private TareTasks() {}

    /** Called by the agent: begins or ends the following of threads and tasks. */
    static void following(long table, long entries) {
        tasks = entries == TASKS ? table : 0;
    }

    /** A thread is about to be started. */
    public static void starts(Object started) {
        long node = tasks == 0 ? 0 : here();
        if (node == 0) {
            return;
        }
        Thread thread = (Thread) started;
        long base = node & ~LOW;
        long tid = U.getLong(thread, TID);
        if (ALIVE == -1 || U.getLong(thread, ALIVE) != 0 || search(tid) != 0) {
            return; // Cannot be started, and may be running.
        }
        boolean timed = U.getInt(base + H_NODE) > START;
        long began = timed ? unpaused(base) : 0;
        long entry = claim(base, tid);
        long root = entry == 0 ? 0 : newTree(base, thread);
        long child = root == 0 ? 0 : find(root, FROM_THREAD - number(node));
        if (child != 0) {
            U.putLong(child + COUNT, U.getLong(child + COUNT) + 1);
            U.putLong(entry + 8, FIELD ? ~root : child);
            if (FIELD) {
                U.putLong(thread, CUR, child);
            }
        } else {
            if (entry != 0) {
                U.putLongRelease(null, entry, LEFT);
            }
            U.getAndAddLong(null, tasks, 1);
        }
        if (timed) {
            held(node, unpaused(base) - began);
        }
    }

    /** The number of the first page of a node's tree. */
    private static int number(long node) {
        return (int) (page(node) & LOW) >>> 12;
    }

    /** A thread of a pool begins to wait for tasks: it is inside the subgraph only while it runs one. */
    public static void serves() {
        if (tasks != 0) {
            Thread thread = Thread.currentThread();
            long entry = entry(thread);
            long node = get(thread, entry);
            if (node > 0 && node >>> 32 == session) {
                int method = U.getInt(node + METHOD);
                if (method <= FROM_THREAD && method > FROM_TASK) {
                    set(thread, entry, ~parent(node));
                }
            }
        }
    }

    /** A task is handed over. */
    public static void submits(Object task) {
        long table = tasks;
        if (table != 0 && task != null) {
            long node = here();
            if (node != 0) {
                note(table, task, number(node));
            }
        }
    }

    /** A task that is run now is to be run again later. */
    public static void resubmits(Object task) {
        long table = tasks;
        long node = table == 0 ? 0 : here();
        while (node != 0 && (node & LOW) != 0 && U.getInt(node + METHOD) != ROOT) {
            int method = U.getInt(node + METHOD);
            if (method <= FROM_TASK) {
                note(table, task, FROM_TASK - method);
                return;
            }
            node = parent(node);
        }
    }

    private static void note(long table, Object task, int from) {
        int hash = System.identityHashCode(task);
        long noted = (long) hash << 32 | ON_ITS_WAY | from & TREE_NUMBER;
        for (int i = 0; i < TASK_PLACES; i++) {
            int at = hash + i & TASKS - 1;
            long place = table + ((long) at << 3);
            long there = U.getLong(place);
            // One that is taken may never be ended; a task that comes again has its place.
            boolean free = there == 0 || there >>> 32 == hash && (there & TAKEN) != 0;
            if (at != 0 && free && U.compareAndSetLong(null, place, there, noted)) {
                return;
            }
        }
        U.getAndAddLong(null, table, 1);
    }

    /** A task is about to be run by this thread. */
    public static long begins(Object task) {
        return begins(task, false);
    }

    /** With {@code take}, it stays noted for who runs it. */
    private static long begins(Object task, boolean take) {
        long table = tasks;
        if (table == 0 || task == null) {
            return 0;
        }
        int hash = System.identityHashCode(task);
        long node = here();
        for (int i = 0; i < TASK_PLACES; i++) {
            long place = table + ((long) (hash + i & TASKS - 1) << 3);
            long noted = U.getLong(place);
            if (noted >>> 32 != hash || (noted & ON_ITS_WAY) == 0) {
                continue;
            }
            int id = FROM_TASK - ((int) noted & TREE_NUMBER);
            boolean taken = (noted & TAKEN) != 0;
            if (taken && (take || node == 0 || U.getInt(node + METHOD) != id)) {
                continue; // By another thread.
            }
            long left = take && node == 0 ? noted | TAKEN : 0;
            if (U.compareAndSetLong(null, place, noted, left)) {
                if (taken) {
                    return begun(Thread.currentThread(), parent(node));
                }
                // Who runs it inside the subgraph anyway has it where it was called.
                return node != 0 ? 0 : begin(Thread.currentThread(), id);
            }
        }
        return 0;
    }

    public static void ends(long token) {
        exit(token);
    }

    /** A task ends by an exception, which nobody catches but the thread's handler. */
    public static void fails(Throwable exception, long token) {
        if (token != 0) {
            resubmits(exception);
            exit(token);
        }
    }

    /** An exception that nobody caught is about to be handled, at the end of this thread. */
    public static long handles(Object exception) {
        long token = begins(exception);
        if (token != 0) {
            // The task has been counted.
            long node = here();
            if (node != 0 && U.getInt(node + METHOD) <= FROM_TASK) {
                U.putLong(node + COUNT, U.getLong(node + COUNT) - 1);
            }
        }
        return token;
    }

    // A thread that waited for a task when we came runs the old code around it; what the pool calls
    // before and after each task is entered anew. New code meets both, too: what was begun before
    // is then ended by who runs the task, because a pool may well override what comes after.

    public static void before(Object task) {
        leave();
        begins(task, true);
    }

    public static void after(Object task, Object exception) {
        long node = tasks == 0 ? 0 : here();
        if (node != 0) {
            if (exception != null) {
                resubmits(exception);
            }
            leave();
            forget(task);
        }
    }

    /** Ends the task that this thread runs, if it is one that nobody else ends. */
    private static void leave() {
        long node = tasks == 0 ? 0 : here();
        while (node != 0 && (node & LOW) != 0 && U.getInt(node + METHOD) != ROOT) {
            long outer = parent(node);
            if (U.getInt(node + METHOD) <= FROM_TASK && U.getInt(outer + METHOD) == ROOT) {
                Thread thread = Thread.currentThread();
                set(thread, entry(thread), ~outer);
                return;
            }
            node = outer;
        }
    }

    private static void forget(Object task) {
        long table = tasks;
        int hash = table == 0 || task == null ? 0 : System.identityHashCode(task);
        for (int i = 0; hash != 0 && i < TASK_PLACES; i++) {
            long place = table + ((long) (hash + i & TASKS - 1) << 3);
            long noted = U.getLong(place);
            if (noted >>> 32 == hash && (noted & TAKEN) != 0
                && U.compareAndSetLong(null, place, noted, 0)) {
                return;
            }
        }
    }
}
