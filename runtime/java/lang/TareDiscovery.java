package java.lang;

import static java.lang.TareClock.held;
import static java.lang.TareClock.unpaused;
import static java.lang.TareLayout.*;
import static java.lang.TareThreads.here;
import static java.lang.TareThreads.offset;
import static java.lang.TareTree.depth;

import jdk.internal.misc.Unsafe;
import jdk.internal.vm.annotation.DontInline;
import jdk.internal.vm.annotation.ForceInline;

/**
 * Tells the agent which methods run for the first time, and which ones reflection and method handles
 * reveal, so that it can weave what they call before it is called.
 */
public final class TareDiscovery {
    private static final Unsafe U = Unsafe.getUnsafe();

    /** Found in the agent: a method may run for the first time; returns when its callees are woven. */
    private static native void first(int id);

    /** One bit for each method that {@link #first} need not be told of; zero when it needs none. */
    private static long known;
    private static long knownMax;

    private TareDiscovery() {}

    /** Called by the agent: begins or ends the search for what the methods that run call. */
    static void discovery(long bits, long methods) {
        if (bits != 0) {
            knownMax = methods;
        }
        known = bits;
    }

    /** Whether anybody looks for what the methods that run call. */
    @ForceInline
    static boolean searches() {
        return known != 0;
    }

    /** Whether a method may run for the first time. */
    static boolean isNew(int id) {
        long bits = known;
        return bits != 0 && id > 0 && id < knownMax
            && (U.getInt(bits + ((long) (id >>> 5) << 2)) >>> id & 1) == 0;
    }

    /** A method is entered in a new context: if it never ran before, the agent looks at it. */
    @DontInline
    static void discover(long node, int id) {
        if (!isNew(id)) {
            return;
        }
        long base = node & ~LOW;
        int deepest = U.getInt(base + H_DEPTH);
        if (deepest != 0 && depth(node) + 1 >= deepest) {
            return; // What it calls gets no node.
        }
        first(id); // The tree's clock stands still: this is part of making a node.
    }

    /**
     * Found in the agent: a method is about to be called, or can be from now on, in a way that no
     * code tells. A Method, a Constructor or the JDK's own MemberName. True when all is done.
     */
    private static native boolean reveal(Object member, boolean wait);

    /** Methods that were revealed, by class and place in it; zero when nobody looks for callees. */
    private static long revealed;
    private static final long METHOD_CLASS = offset(java.lang.reflect.Method.class, "clazz");
    private static final long METHOD_SLOT = offset(java.lang.reflect.Method.class, "slot");
    private static final long CONSTRUCTOR_CLASS =
        offset(java.lang.reflect.Constructor.class, "clazz");
    private static final long CONSTRUCTOR_SLOT =
        offset(java.lang.reflect.Constructor.class, "slot");

    /** Of the JDK's own handles to a method, and of the members that they have. */
    private static final long HANDLE_MEMBER = invokeOffset("DirectMethodHandle", "member");
    private static final long MEMBER_CLASS = invokeOffset("MemberName", "clazz");
    private static final long MEMBER_METHOD = invokeOffset("MemberName", "method");

    private static long invokeOffset(String type, String field) {
        try {
            return offset(Class.forName("java.lang.invoke." + type, false, null), field);
        } catch (ClassNotFoundException absent) {
            return -1;
        }
    }

    /** Called by the agent, as {@link #discovery}. */
    static void revelation(long table, long entries) {
        boolean found = METHOD_CLASS != -1 && METHOD_SLOT != -1
            && CONSTRUCTOR_CLASS != -1 && CONSTRUCTOR_SLOT != -1;
        revealed = found && entries == REVEALED_ENTRIES ? table : 0;
    }

    /** A Method or a Constructor is about to be called. */
    public static void reflects(Object executable) {
        long table = revealed;
        if (table == 0) {
            return;
        }
        long node = here();
        if (node == 0) {
            return;
        }
        boolean method = executable instanceof java.lang.reflect.Method;
        Object type = U.getReference(executable, method ? METHOD_CLASS : CONSTRUCTOR_CLASS);
        int slot = U.getInt(executable, method ? METHOD_SLOT : CONSTRUCTOR_SLOT);
        revealOnce(table, node, executable, (long) System.identityHashCode(type) << 32 | slot & LOW);
    }

    private static void revealOnce(long table, long node, Object member, long key) {
        long place = table + ((key * 0x9e37_79b9_7f4a_7c15L >>> 52) << 3);
        if (U.getLong(place) != key) {
            long began = unpaused(node & ~LOW);
            if (reveal(member, true)) {
                U.putLong(place, key);
            }
            held(node, unpaused(node & ~LOW) - began);
        }
    }

    /** A method handle is about to be called. It may have been made before anybody looked. */
    @ForceInline
    public static void invokes(Object handle) {
        long table = revealed;
        if (table != 0) {
            long node = here();
            if (node != 0) {
                invoked(table, node, handle);
            }
        }
    }

    @DontInline
    private static void invoked(long table, long node, Object handle) {
        if (HANDLE_MEMBER == -1 || MEMBER_CLASS == -1 || MEMBER_METHOD == -1) {
            return;
        }
        Object member = U.getReference(handle, HANDLE_MEMBER);
        int type = System.identityHashCode(U.getReference(member, MEMBER_CLASS));
        int method = System.identityHashCode(U.getReference(member, MEMBER_METHOD));
        // Places of methods in a class are small numbers: no key is of both kinds.
        revealOnce(table, node, member, (long) type << 32 | method & LOW | 1L << 31);
    }

    /** A method handle is being made for a MemberName. */
    public static void links(Object member) {
        if (revealed != 0) {
            long node = here();
            long began = node == 0 ? 0 : unpaused(node & ~LOW);
            reveal(member, node != 0);
            if (node != 0) {
                held(node, unpaused(node & ~LOW) - began);
            }
        }
    }
}
