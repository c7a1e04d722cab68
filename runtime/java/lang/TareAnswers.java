package java.lang;

import static java.lang.TareLayout.*;
import static java.lang.TareThreads.*;
import static java.lang.TareTree.page;
import static java.lang.TareTree.parent;

import java.util.function.BiFunction;
import jdk.internal.misc.Unsafe;

/**
 * What an agent's contexts ask. An address that is none of its session's has no answer, nor has any
 * when the agent has ended: what it keeps for too long leads nowhere, and it sees nothing but
 * trees.
 */
final class TareAnswers implements BiFunction<Integer, Long, Object> {
    private static final Unsafe U = Unsafe.getUnsafe();

    private static final int NAME = 0;
    private static final int CALLS = 1;
    private static final int EXECUTED = 2;
    private static final int CALLER = 3;
    private static final int CALLEES = 4;
    private static final int THREAD = 5;
    private static final int ID = 6;

    private final long mark;

    TareAnswers(long mark) {
        this.mark = mark;
    }

    @Override
    public Object apply(Integer question, Long about) {
        long node = about;
        if (node >>> 32 != mark || TareAgents.answering != mark || (node & LOW) < TABLE) {
            return null;
        }
        int method = U.getInt(node + METHOD);
        switch (question) {
            case NAME: return method > 0 ? TareAgents.name(method) : null;
            case CALLS: return U.getLong(node + COUNT);
            case EXECUTED: return U.getLong(node + BYTECODES);
            case CALLER: return method == ROOT ? null : (Long) parent(node);
            case CALLEES: return callees(node);
            case THREAD: return thread(page(node));
            case ID: return U.getLong(page(node) + T_THREAD);
            default: return null;
        }
    }

    /** The thread itself may add to them meanwhile. */
    private static long[] callees(long node) {
        long base = node & ~LOW;
        int kids = U.getInt(node + KIDS);
        long[] found = new long[0];
        if ((kids & 1) == 0) {
            for (int at = kids; at != 0; at = U.getInt((base | at & LOW) + SIBLING)) {
                found = with(found, base | at & LOW);
            }
            return found;
        }
        long table = base | kids - 1 & LOW;
        int mask = U.getInt(table);
        for (int i = 0; i <= mask; i++) {
            int at = U.getInt(table + 8 + ((long) i << 2));
            if (at != 0) {
                found = with(found, base | at & LOW);
            }
        }
        return found;
    }

    private static long[] with(long[] found, long node) {
        if (U.getInt(node + METHOD) <= 0) {
            return found; // What had no room of its own.
        }
        long[] more = java.util.Arrays.copyOf(found, found.length + 1);
        more[found.length] = node;
        return more;
    }

    private static String thread(long tree) {
        int coded = U.getInt(tree + T_NAME);
        byte[] bytes = new byte[Math.min(coded & 0xffff, T_NAME_MAX)];
        for (int i = 0; i < bytes.length; i++) {
            bytes[i] = U.getByte(tree + T_NAME + 4 + i);
        }
        return new String(bytes, coded >>> 16 == 0 ? java.nio.charset.StandardCharsets.ISO_8859_1
            : java.nio.charset.StandardCharsets.UTF_16LE);
    }
}
