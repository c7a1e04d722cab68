package tare.runtime;

import java.io.IOException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;

/** All trees: who has which, and how many contexts there may be. */
final class Trees {
    /** The first trees are kept apart when their threads have ended; virtual threads never are. */
    private static final int APART = 512;

    /** About what a context takes, with its share of tables. */
    private static final int BYTES = 72;

    private static final ThreadLocal<Tree> MINE = new ThreadLocal<>();
    private static final List<Tree> ALL = new ArrayList<>();
    private static final Tree ENDED = new Tree(null, "several threads that have ended", 0, false);
    private static final Tree VIRTUAL = new Tree(null, "virtual threads", 0, true);

    private static final int MOST = most();
    private static final AtomicInteger MADE = new AtomicInteger();

    private static final Method IS_VIRTUAL = method("isVirtual");
    private static final Method THREAD_ID = method("threadId");

    /** How many trees there may be before those of ended threads are looked for. */
    private static int bound = 2 * APART;

    static {
        Output.begin();
    }

    private Trees() {}

    /** The tree of this thread; null while it is being made, and when it cannot be. */
    static Tree current() {
        if (MINE == null) {
            return null; // Woven code runs while this class is initialised.
        }
        Tree tree = MINE.get();
        return tree != null ? tree : begin();
    }

    private static Tree begin() {
        try {
            Thread thread = Thread.currentThread();
            if (thread instanceof Output.Writer) {
                return null;
            }
            Tree tree = of(thread);
            MINE.set(tree);
            return tree;
        } catch (OutOfMemoryError | StackOverflowError e) {
            return null;
        }
    }

    private static synchronized Tree of(Thread thread) {
        boolean virtual = IS_VIRTUAL != null && Boolean.TRUE.equals(ask(IS_VIRTUAL, thread));
        if (!virtual) {
            // Some pools take their threads' locals away between tasks.
            for (Tree tree : ALL) {
                if (tree.isOf(thread)) {
                    return tree;
                }
            }
        }
        if (ALL.size() >= bound) {
            sweep();
            bound = Math.max(bound, ALL.size() * 2);
        }
        String name = virtual ? VIRTUAL.name : thread.getName();
        Tree tree = new Tree(thread, name, virtual ? 0 : id(thread), virtual);
        ALL.add(tree);
        return tree;
    }

    /** Sums up the trees of threads that have ended. */
    private static void sweep() {
        int apart = 0;
        List<Tree> rest = new ArrayList<>();
        for (Tree tree : ALL) {
            if (!tree.hasEnded() || !tree.virtual && apart++ < APART) {
                rest.add(tree);
            } else {
                MADE.addAndGet(-(tree.virtual ? VIRTUAL : ENDED).take(tree));
            }
        }
        ALL.clear();
        ALL.addAll(rest);
    }

    /** Every tree with something in it. They may grow meanwhile, but none comes or goes. */
    static synchronized void each(Recording recording) throws IOException {
        recording.add(VIRTUAL);
        recording.add(ENDED);
        for (Tree tree : ALL) {
            recording.add(tree);
        }
    }

    /** Room for one more context. */
    static boolean reserve() {
        if (MADE.get() >= MOST) {
            return false;
        }
        MADE.incrementAndGet();
        return true;
    }

    private static int most() {
        long eighth = Runtime.getRuntime().maxMemory() / 8 / BYTES;
        return Settings.number("tare.contexts", (int) Math.min(eighth, 4_000_000));
    }

    private static long id(Thread thread) {
        Object id = THREAD_ID == null ? null : ask(THREAD_ID, thread);
        // Before there was threadId() a program could replace getId(); what that did is its own affair.
        return id instanceof Long ? (Long) id : oldId(thread);
    }

    @SuppressWarnings("deprecation")
    private static long oldId(Thread thread) {
        try {
            return thread.getId();
        } catch (RuntimeException e) {
            return 0;
        }
    }

    private static Method method(String name) {
        try {
            return Thread.class.getMethod(name);
        } catch (NoSuchMethodException | SecurityException e) {
            return null;
        }
    }

    private static Object ask(Method method, Thread thread) {
        try {
            return method.invoke(thread);
        } catch (ReflectiveOperationException e) {
            return null;
        }
    }
}
