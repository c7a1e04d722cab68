package java.lang;

import static java.lang.TareLayout.*;
import static java.lang.TareProbe.outer;
import static java.lang.TareProbe.step;
import static java.lang.TareThreads.*;
import static java.lang.TareTree.*;

import jdk.internal.misc.Unsafe;
import jdk.internal.vm.annotation.DontInline;
import jdk.internal.vm.annotation.ForceInline;

/**
 * Takes a sample of the running thread's stack whenever it has executed so many bytecodes.
 *
 * <p>A method that is entered puts its id on a stack of ours, one of each tree, and tells its bytecodes
 * when it ends and from time to time in a loop, as in {@link TareBytecodes}. They are taken from
 * what is left until the next sample; the one whose bytecodes use it up is the one who is met. So a
 * context is met as often as its share of the bytecodes says, and always at the same moment.
 *
 * <p>A thread's current node is the next free place of its stack here, and a method's token is its own
 * place. A place holds the method's id and, once a sample came by, the distance to its node in the tree:
 * what was entered since the last sample is all that the next one has to look for. A probe of an earlier
 * session that takes a place for a node, and its distances for slots, so finds nodes and harms nothing.
 * In memory of an earlier session every place is zero, also the one below the first, which holds the
 * root otherwise.
 */
public final class TareSampling {
    private static final Unsafe U = Unsafe.getUnsafe();

    private TareSampling() {}

    // With fields in Thread, the probes below write them in one place, behind the branch that a slow path
    // may have taken. So the JIT knows what is in them, and keeps it in registers from one method to the next
    // that it compiles into the same code.

    @ForceInline
    public static long enter(int id) {
        Thread thread = Thread.currentThread();
        long entry = entry(thread);
        long top = get(thread, entry);
        long token;
        if (top > 0 && U.getLong(top - PLACE_BYTES) != 0 && (top + PLACE_BYTES & STACK - 1) != 0) {
            U.putLong(top, id);
            token = FIELD ? top : step(thread, entry, top, top + PLACE_BYTES);
            top += PLACE_BYTES;
        } else {
            token = begin(thread, id);
            top = FIELD ? U.getLong(thread, CUR) : 0;
        }
        if (FIELD) {
            U.putLong(thread, CUR, top);
        }
        return token;
    }

    /** Exit, normal or by exception, of a method that ran so many bytecodes since it last told. */
    @ForceInline
    public static void exit(long token, int bytecodes) {
        if (FIELD) {
            Thread thread = Thread.currentThread();
            long top = token;
            int left;
            if (token > 0) {
                left = U.getInt(thread, DUE) - bytecodes;
                if (left <= 0) {
                    left = sample(token, left, bytecodes);
                }
            } else {
                exitFar(token, bytecodes);
                top = U.getLong(thread, CUR);
                left = U.getInt(thread, DUE);
            }
            U.putLong(thread, CUR, top);
            U.putInt(thread, DUE, left);
        } else if (token > 0) {
            long place = token & ADDRESS;
            U.putLong((place & ~LOW) + TABLE + 8 + (token >>> PLACE << 4), place);
            spend(place, bytecodes);
        } else {
            exitFar(token, bytecodes);
        }
    }

    /** The method goes on, and counts from zero again. */
    @ForceInline
    public static void flush(long token, int bytecodes) {
        if (token != 0) {
            spend(outer(token), bytecodes);
        } else {
            exitFar(0, bytecodes);
        }
    }

    /** A handler of the method caught an exception: whatever it had called is over. */
    public static void caught(long token, int id) {
        long place = outer(token);
        if (token != 0 && place >>> 32 == session) {
            Thread thread = Thread.currentThread();
            set(thread, entry(thread), place + PLACE_BYTES);
        }
    }

    /**
     * A method that calls nothing and has no loop tells all at its end, and is on no stack before.
     *
     * <p>The field is zero while a thread is outside. What an earlier session left there may be used up
     * before the thread is known to this one, if it enters nothing but such methods.
     */
    @ForceInline
    public static void leaf(int id, int bytecodes) {
        Thread thread = Thread.currentThread();
        if (FIELD) {
            int left = U.getInt(thread, DUE) - bytecodes;
            if (left <= 0) {
                leafFar(id, bytecodes);
                left = U.getInt(thread, DUE);
            }
            U.putInt(thread, DUE, left);
            return;
        }
        long top = get(thread, entry(thread));
        if (top > 0) {
            long at = (top & -STACK) + S_LEFT;
            int left = U.getInt(at) - bytecodes;
            if (left > 0) {
                U.putInt(at, left);
                return;
            }
        }
        leafFar(id, bytecodes);
    }

    @ForceInline
    private static void spend(long place, int bytecodes) {
        Thread thread = Thread.currentThread();
        int left = left(thread, place) - bytecodes;
        if (left <= 0) {
            left = sample(place, left, bytecodes);
        }
        left(thread, place, left);
    }

    /** Bytecodes until the thread's next sample: in its field, if it has one, or else with its stack. */
    @ForceInline
    private static int left(Thread thread, long place) {
        return FIELD ? U.getInt(thread, DUE) : U.getInt((place & -STACK) + S_LEFT);
    }

    @ForceInline
    private static void left(Thread thread, long place, int left) {
        if (FIELD) {
            U.putInt(thread, DUE, left);
        } else {
            U.putInt((place & -STACK) + S_LEFT, left);
        }
    }

    @DontInline
    private static void leafFar(int id, int bytecodes) {
        exit(enter(id), bytecodes);
    }

    /** Of a method that has no place, or whose end is where the thread leaves its tree. */
    @DontInline
    private static void exitFar(long token, int bytecodes) {
        if (token != 0) {
            long place = outer(token);
            spend(place, bytecodes);
            if (place >>> 32 == session) {
                Thread thread = Thread.currentThread();
                U.putInt((place & -STACK) + S_LEFT, left(thread, place));
                if (FIELD) {
                    U.putInt(thread, DUE, 0);
                }
                TareProbe.leaveTree(treeOf(place) + T_ROOT);
            }
            return;
        }
        // Too deep for the stack: it is part of the deepest that has a place.
        Thread thread = Thread.currentThread();
        long top = get(thread, entry(thread));
        if (top > 0 && top >>> 32 == session && U.getInt(top - PLACE_BYTES) > 0) {
            spend(top - PLACE_BYTES, bytecodes);
        }
    }

    /** A thread comes in, or its stack is full. */
    @DontInline
    private static long begin(Thread thread, int id) {
        long mark = session;
        if (mark == -1) {
            return 0;
        }
        long base = mark << 32;
        if (get(thread, entry(thread)) >>> 32 == mark) {
            U.getAndAddLong(null, base + H_REFUSED, 1);
            return 0;
        }
        long root = TareProbe.arrive(thread, mark);
        long stack = root == 0 ? 0 : stackOf(base, page(root));
        if (stack == 0) {
            if (root != 0) {
                lost(base);
            }
            return 0;
        }
        long place = stack + S_FIRST;
        left(thread, place, U.getInt(stack + S_LEFT));
        U.putLong(place, id);
        long token = step(thread, entry(thread), place, place + PLACE_BYTES);
        return (U.getInt(page(root) + T_FLAGS) & FLAG_LEAVES) != 0 ? ~token : token;
    }

    /** The stack of a tree, made if there is none. */
    private static long stackOf(long base, long tree) {
        int known = U.getInt(tree + T_STACK);
        if (known != 0) {
            return base | known & LOW;
        }
        long stack = aligned(base, STACK, tree);
        if (stack != 0) {
            long place = stack + S_FIRST - PLACE_BYTES;
            U.putLong(place, tree + T_ROOT - place << 32 | ROOT & LOW);
            U.putInt(stack + P_PAGES, STACK / PAGE);
            header(stack, KIND_STACK, tree);
            U.putLong(stack + S_RANDOM, seed(base, tree));
            int interval = next(base, stack);
            U.putInt(stack + S_INTERVAL, interval);
            U.putInt(stack + S_LEFT, interval);
            U.putInt(tree + T_STACK, (int) stack);
            TareAgents.offer(tree + T_ROOT, 0);
        }
        return stack;
    }

    /** The tree that a place belongs to. */
    static long treeOf(long place) {
        return place & ~LOW | U.getInt((place & -STACK) + P_TREE) & LOW;
    }

    /** From the session's seed and the thread's name: its number may differ from run to run. */
    private static long seed(long base, long tree) {
        long seed = U.getLong(base + H_SEED);
        int length = U.getInt(tree + T_NAME) & 0xffff;
        for (int i = 0; i < length; i++) {
            seed = seed * 31 + U.getByte(tree + T_NAME + 4 + i);
        }
        return seed;
    }

    /** Bytecodes from one sample to the next: as many as asked for, or by chance half more or less. */
    private static int next(long base, long stack) {
        int every = TareAgents.every(base, treeOf(stack));
        if (U.getInt(base + H_RANDOM) == 0) {
            return every;
        }
        long state = U.getLong(stack + S_RANDOM) + 0x9e37_79b9_7f4a_7c15L;
        U.putLong(stack + S_RANDOM, state);
        long mixed = (state ^ state >>> 30) * 0xbf58_476d_1ce4_e5b9L;
        mixed = (mixed ^ mixed >>> 27) * 0x94d0_49bb_1331_11ebL;
        return every - every / 2 + (int) (((mixed ^ mixed >>> 31) >>> 33) % every);
    }

    /**
     * A method's bytecodes have used up what was left: it is met, or more than once if it is long.
     * Returns what is left now. A frame that is older than this session has no part in it.
     */
    @DontInline
    private static int sample(long place, int left, int bytecodes) {
        long base = place & ~LOW;
        if (base >>> 32 != session) {
            return left + bytecodes;
        }
        long stack = place & -STACK;
        long weight = 0;
        int times = 0;
        while (left <= 0) {
            int interval = next(base, stack);
            if (interval <= 0) {
                return left; // The session has ended.
            }
            weight += U.getInt(stack + S_INTERVAL);
            times++;
            left += interval;
            U.putInt(stack + S_INTERVAL, interval);
        }
        long node = nodeOf(base, stack, place);
        if (node != 0) {
            U.putLong(node + COUNT, U.getLong(node + COUNT) + times);
            U.putLong(node + BYTECODES, U.getLong(node + BYTECODES) + weight);
            TareAgents.offer(node, times);
        }
        return left;
    }

    /** The context of a place, made if need be; a rest when there is no room. */
    private static long nodeOf(long base, long stack, long place) {
        long at = place;
        while (U.getInt(at + PLACE_NODE) == 0) {
            at -= PLACE_BYTES;
            if (at < stack + S_FIRST - PLACE_BYTES) {
                return 0; // The session has ended.
            }
        }
        long node = at + U.getInt(at + PLACE_NODE);
        while (at < place) {
            at += PLACE_BYTES;
            long child = find(node, U.getInt(at));
            if (child == 0) {
                return page(node) + T_ROOT + U.getInt(base + H_NODE);
            }
            if (U.getInt(child + METHOD) == REST) {
                return child;
            }
            U.putInt(at + PLACE_NODE, (int) (child - at));
            node = child;
        }
        return node;
    }
}
