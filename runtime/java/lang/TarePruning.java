package java.lang;

import static java.lang.TareLayout.*;
import static java.lang.TareTree.parent;
import static java.lang.TareTree.put;
import static java.lang.TareTree.room;

import jdk.internal.misc.Unsafe;

/**
 * Gives up contexts when there is no more memory, so that new ones find room.
 */
final class TarePruning {
    private static final Unsafe U = Unsafe.getUnsafe();

    // While a tree is pruned: what stays, and what goes but was looked at.
    private static final int MARK = SLOT + 4; // Slots are emptied afterwards.
    private static final int STAYS = 1;
    private static final int GOES = 2;
    private static final int KNOWN = 4; // Its rest is in the first slot.
    private static final int SIEVE_MAX = 1 << 20;

    private TarePruning() {}

    /**
     * Gives up the contexts of a tree that matter least, when there is no more memory: what was
     * called no more than a few times, and did not take long. Their calls and times go to the rest
     * of the nearest context that stays. Whether anything was gained.
     *
     * <p>The sieve follows what is needed: it is widened until enough goes, and begins narrower the
     * next time if plenty went. Where a round gave little for its price, in a small tree among many
     * others, it is wider each time, so that such a tree is pruned a few times and no more.
     */
    static boolean prune(long base, long tree, long node) {
        int sieve = U.getInt(tree + T_SIEVE);
        if (U.getInt(base + H_FULL) == 0 || U.getInt(base + H_FOLD) != 0
            || U.getInt(base + H_KEEPS) != 0 || sieve > SIEVE_MAX) {
            return false;
        }
        room(64);
        U.getAndAddInt(null, base + H_PRUNING, 1);
        sieve = sieve == 0 ? 1 : sieve;
        int next = prune(base, tree, node, sieve);
        while (next == 0 && sieve < SIEVE_MAX) {
            sieve *= 2;
            next = prune(base, tree, node, sieve);
        }
        U.putInt(tree + T_SIEVE, next == 0 ? sieve * 2 : next);
        U.getAndAddInt(null, base + H_PRUNED, 1);
        return next != 0;
    }

    /** One round: the sieve to begin with next time, or zero if not even a quarter went. */
    private static int prune(long base, long tree, long node, int sieve) {
        int size = U.getInt(base + H_NODE);
        int holds = U.getInt(base + H_HOLDS);
        boolean some = holds == HOLDS_SOME_TIMES;
        boolean timed = holds == HOLDS_TIMES || some;
        boolean counted = holds >= HOLDS_BYTECODES && !some;
        int weight = holds == HOLDS_SITES ? 0 : 6; // Objects are as many as calls are.
        for (long at = first(tree); at != 0; at = next(base, tree, at, size)) {
            U.putInt(at + MARK, 0);
        }
        // What stays, and whatever leads to it.
        stay(node);
        long all = 0;
        for (long at = first(tree); at != 0; at = next(base, tree, at, size)) {
            int method = U.getInt(at + METHOD);
            if (method == FREED) {
                continue;
            }
            all++;
            if (method < 0 && method != REST || U.getLong(at + COUNT) > sieve
                || timed && (some ? estimate(at) : U.getLong(at + TOTAL)) > (long) sieve << 12
                || counted && U.getLong(at + BYTECODES) > (long) sieve << weight) {
                stay(at);
            }
        }
        stay(tree + T_ROOT + size);
        // Of what goes, the uppermost: it is added to its parent's rest, or becomes it.
        for (long at = first(tree); at != 0; at = next(base, tree, at, size)) {
            if (U.getInt(at + METHOD) == FREED || U.getInt(at + MARK) != 0) {
                continue;
            }
            long parent = parent(at);
            int mark = U.getInt(parent + MARK);
            if ((mark & STAYS) != 0) {
                boolean known = (mark & KNOWN) != 0;
                long rest = known ? parent + U.getInt(parent + SLOT) : rest(base, parent);
                if (rest == 0) {
                    U.putInt(at + METHOD, REST);
                    rest = at;
                }
                U.putInt(parent + SLOT, (int) (rest - parent));
                U.putInt(parent + MARK, STAYS | KNOWN);
                if (rest != at) {
                    U.putLong(rest + COUNT, U.getLong(rest + COUNT) + U.getLong(at + COUNT));
                    if (some) {
                        U.putLong(rest + FIRST_TOTAL, estimate(rest) + estimate(at));
                        U.putLong(rest + TOTAL, 0);
                        U.putInt(rest + TIMED_CALLS, 0);
                    } else if (timed) {
                        U.putLong(rest + TOTAL, U.getLong(rest + TOTAL) + U.getLong(at + TOTAL));
                    } else {
                        hand(at, rest, size);
                    }
                }
                U.putInt(at + KIDS, (int) rest);
                U.putInt(at + MARK, GOES);
            }
        }
        // The calls of what was below it. Its time is in there already.
        for (long at = first(tree); at != 0; at = next(base, tree, at, size)) {
            if (U.getInt(at + METHOD) == FREED || U.getInt(at + MARK) != 0) {
                continue;
            }
            long known = parent(at);
            while (U.getInt(known + MARK) == 0) {
                if ((known & LOW) == 0) {
                    return 0; // The session has ended.
                }
                known = parent(known);
            }
            int kids = U.getInt(known + KIDS);
            long rest = base | kids & LOW;
            for (long way = at; U.getInt(way + MARK) == 0; way = parent(way)) {
                U.putLong(rest + COUNT, U.getLong(rest + COUNT) + U.getLong(way + COUNT));
                if (!timed) {
                    hand(way, rest, size);
                }
                U.putInt(way + KIDS, kids);
                U.putInt(way + MARK, GOES);
            }
        }
        // The ways down are laid anew; then what went can be used again.
        for (long at = first(tree); at != 0; at = next(base, tree, at, size)) {
            if (U.getInt(at + METHOD) != FREED && (U.getInt(at + MARK) & STAYS) != 0) {
                relink(base, at);
            }
        }
        long freed = 0;
        for (long at = first(tree); at != 0; at = next(base, tree, at, size)) {
            int mark = U.getInt(at + MARK);
            U.putInt(at + MARK, 0);
            if ((mark & STAYS) != 0) {
                TareTree.noChild(at);
            } else if (mark == GOES && U.getInt(at + METHOD) != FREED) {
                if (U.getInt(at + METHOD) == REST && (base | U.getInt(at + KIDS) & LOW) == at) {
                    U.putInt(at + KIDS, 0); // Has become its parent's rest.
                    TareTree.noChild(at);
                } else {
                    U.putInt(at + METHOD, FREED);
                    U.putInt(at + SIBLING, U.getInt(tree + T_FREED));
                    U.putInt(tree + T_FREED, (int) at);
                    freed++;
                }
            }
        }
        U.getAndAddLong(null, base + H_DROPPED, freed);
        if (freed < all / 4 || freed == 0) {
            return 0;
        }
        long pages = U.getLong(base + H_BUMP) / PAGE;
        if (freed < pages / 4) {
            return sieve * 2;
        }
        return freed > all / 2 && sieve > 1 ? sieve / 2 : sieve;
    }

    /** Adds what a node holds beside its invocations to another: bytecodes, allocations. */
    private static void hand(long from, long to, int size) {
        for (int at = BYTECODES; at < size; at += 8) {
            U.putLong(to + at, U.getLong(to + at) + U.getLong(from + at));
        }
    }

    /** The time of all calls of a node of which some are timed. */
    private static long estimate(long node) {
        long first = U.getLong(node + FIRST_TOTAL);
        long others = U.getLong(node + COUNT) - FIRST_CALLS;
        int timed = U.getInt(node + TIMED_CALLS);
        if (others <= 0 || U.getInt(node + METHOD) == REST) {
            return first;
        }
        double mean = timed > 0
            ? (double) U.getLong(node + TOTAL) / timed : (double) first / FIRST_CALLS;
        return first + (long) (mean * others);
    }

    private static void stay(long node) {
        while ((U.getInt(node + MARK) & STAYS) == 0) {
            U.putInt(node + MARK, STAYS);
            if (U.getInt(node + METHOD) == ROOT) {
                return;
            }
            node = parent(node);
            if ((node & LOW) == 0) {
                return;
            }
        }
    }

    /** The rest among the children of a node, or zero. */
    private static long rest(long base, long node) {
        int kids = U.getInt(node + KIDS);
        if ((kids & 1) == 0) {
            for (int at = kids; at != 0; at = U.getInt((base | at & LOW) + SIBLING)) {
                if (U.getInt((base | at & LOW) + METHOD) == REST) {
                    return base | at & LOW;
                }
            }
            return 0;
        }
        long table = base | kids - 1 & LOW;
        int mask = U.getInt(table);
        for (int i = 0; i <= mask; i++) {
            int at = U.getInt(table + 8 + ((long) i << 2));
            if (at != 0 && U.getInt((base | at & LOW) + METHOD) == REST) {
                return base | at & LOW;
            }
        }
        return 0;
    }

    /** Leaves those out that go, but for one that has become the rest. */
    private static void relink(long base, long node) {
        int kids = U.getInt(node + KIDS);
        if ((kids & 1) == 0) {
            int list = 0;
            for (int at = kids; at != 0;) {
                long child = base | at & LOW;
                int next = U.getInt(child + SIBLING);
                if (remains(base, child)) {
                    U.putInt(child + SIBLING, list);
                    list = at;
                }
                at = next;
            }
            U.putInt(node + KIDS, list);
            return;
        }
        long table = base | kids - 1 & LOW;
        int mask = U.getInt(table);
        // A list of those who stay, then the table again from that.
        int list = 0;
        for (int i = 0; i <= mask; i++) {
            int at = U.getInt(table + 8 + ((long) i << 2));
            U.putInt(table + 8 + ((long) i << 2), 0);
            if (at != 0 && remains(base, base | at & LOW)) {
                U.putInt((base | at & LOW) + SIBLING, list);
                list = at;
            }
        }
        U.putInt(table + 4, 0);
        for (int at = list; at != 0; at = U.getInt((base | at & LOW) + SIBLING)) {
            put(table, base | at & LOW);
        }
    }

    private static boolean remains(long base, long child) {
        return (U.getInt(child + MARK) & STAYS) != 0
            || U.getInt(child + METHOD) == REST && (base | U.getInt(child + KIDS) & LOW) == child;
    }

    /** The nodes of a tree, one after the other, in all pages that are its own; zero at the end. */
    private static long first(long tree) {
        return tree + T_ROOT;
    }

    private static long next(long base, long tree, long at, int size) {
        long page = at & -PAGE;
        // One without a method was never made: its thread was stopped on the way.
        for (at += size; at + size <= page + PAGE; at += size) {
            if (U.getInt(at + METHOD) != 0) {
                return at;
            }
        }
        long end = U.getLong(base + H_BUMP);
        for (page += PAGE; (page & LOW) < end;) {
            int kind = U.getInt(page + P_KIND);
            if (kind == KIND_NODES && (U.getInt(page + P_TREE) & LOW) == (tree & LOW)
                && U.getInt(page + P_HEAD + METHOD) != 0) {
                return page + P_HEAD;
            }
            int pages = kind >= KIND_TABLE ? U.getInt(page + P_PAGES) : 1;
            page += (long) (pages < 1 ? 1 : pages) * PAGE;
        }
        return 0;
    }
}
