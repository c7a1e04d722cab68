package java.lang;

import static java.lang.TareLayout.*;
import static java.lang.TareThreads.*;

import jdk.internal.misc.Unsafe;

/**
 * Counts objects and bytes where the running thread is in its tree.
 */
public final class TareAllocations {
    private static final Unsafe U = Unsafe.getUnsafe();

    // Sizes are the JVM's own, from where it keeps them itself; the agent says where that is.

    private static long klassAt;
    private static long layoutAt;
    /** Sizes are multiples of this plus one. */
    private static int within = 7;

    private TareAllocations() {}

    /** Called by the agent: where a Class has its HotSpot structure, and that its layout. */
    static void layout(long klass, long layout) {
        klassAt = klass;
        layoutAt = layout;
    }

    /** Called by the agent: of what objects' sizes are multiples, if it is not eight bytes. */
    static void align(long bytes) {
        within = (int) bytes - 1;
    }

    /** Called by the agent: the size of the smallest object, to see whether it is right. */
    static long smallest() {
        return size(layout(Object.class), 0);
    }

    /** An object of this class was made. */
    public static void newObject(Class<?> type) {
        allocated(1, size(layout(type), 0));
    }

    /** An object was made by a class file that cannot name its class. */
    public static void newUnknown() {
        allocated(1, 0);
    }

    /** An array was made, and the arrays in it, if its instruction made those, too. */
    public static void newArray(Object array) {
        long objects = 0;
        long bytes = 0;
        long alike = 1;
        for (;;) {
            objects += alike;
            bytes += alike * size(layout(array.getClass()), length(array));
            if (!(array instanceof Object[])) {
                break;
            }
            Object[] inner = (Object[]) array;
            if (inner.length == 0 || inner[0] == null) {
                break;
            }
            alike *= inner.length;
            array = inner[0];
        }
        allocated(objects, bytes);
    }

    /** A copy was made. */
    public static void cloned(Object object) {
        if (object != null) {
            allocated(1, size(layout(object.getClass()), length(object)));
        }
    }

    private static void allocated(long objects, long bytes) {
        Thread thread = Thread.currentThread();
        long node = get(thread, entry(thread));
        if (node > 0 && node >>> 32 == session
            && U.getInt((node & ~LOW) + H_HOLDS) == HOLDS_ALLOCATIONS) {
            U.putLong(node + OBJECTS, U.getLong(node + OBJECTS) + objects);
            U.putLong(node + BYTES, U.getLong(node + BYTES) + bytes);
        }
    }

    static int layout(Class<?> type) {
        return klassAt == 0 ? 0 : U.getInt(U.getLong(type, klassAt) + layoutAt);
    }

    /** Bytes by a layout as HotSpot writes it: positive for objects, a header and a shift for arrays. */
    static long size(int layout, int length) {
        if (layout >= 0) {
            return layout & ~7;
        }
        return (layout >> 16 & 0xff) + ((long) length << (layout & 0x3f)) + within & ~within;
    }

    static int length(Object array) {
        return array instanceof Object[] ? ((Object[]) array).length
            : array instanceof byte[] ? ((byte[]) array).length
            : array instanceof int[] ? ((int[]) array).length
            : array instanceof char[] ? ((char[]) array).length
            : array instanceof long[] ? ((long[]) array).length
            : array instanceof double[] ? ((double[]) array).length
            : array instanceof boolean[] ? ((boolean[]) array).length
            : array instanceof float[] ? ((float[]) array).length
            : array instanceof short[] ? ((short[]) array).length : 0;
    }
}
