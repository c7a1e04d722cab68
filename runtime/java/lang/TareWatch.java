package java.lang;

import static java.lang.TareAllocations.layout;
import static java.lang.TareAllocations.length;
import static java.lang.TareAllocations.size;
import static java.lang.TareLayout.*;

import jdk.internal.misc.Unsafe;

/**
 * Hands new objects of chosen classes to the agent, which watches them by weak references: nothing here
 * keeps one. Their sites are children of the node where the running thread is, as in {@link TareSites},
 * which has counted them already.
 */
public final class TareWatch {
    private static final Unsafe U = Unsafe.getUnsafe();

    private TareWatch() {}

    /** An object was made: its constructor has returned, or there is none. */
    public static void one(Object object, int site) {
        if (object != null) {
            hand(object, site, TareSites.place(site));
        }
    }

    /** An array was made, and the arrays in it; those on the levels that these bits say are watched. */
    public static void array(Object array, int site, int levels) {
        for (int level = 0; levels >>> level != 0; level++) {
            if ((levels >>> level & 1) != 0) {
                within(array, level, site + level, TareSites.place(site + level));
            }
            if (level == 31) {
                return;
            }
        }
    }

    /** All arrays so many levels below. */
    private static void within(Object array, int level, int site, long node) {
        if (level == 0) {
            hand(array, site, node);
        } else if (array instanceof Object[]) {
            Object[] arrays = (Object[]) array;
            for (int i = 0; i < arrays.length && arrays[i] != null; i++) {
                within(arrays[i], level - 1, site, node);
            }
        }
    }

    /** A copy was made, of an object that may be of this class. */
    public static void cloned(Object object, Class<?> expected, int site) {
        if (object != null) {
            one(object, object.getClass() == expected ? site : site + 1);
        }
    }

    /** A copy was made by a class file that cannot name its class. */
    public static void clonedUnknown(Object object, int site) {
        if (object != null) {
            one(object, TareSites.isSure(object) ? site : site + 1);
        }
    }

    /** A value was boxed, anew or not. */
    public static void boxed(Object box, int site) {
        if (!TareSites.isKept(box)) {
            one(box, site);
        }
    }

    /** An array of primitives was made by the JDK's Unsafe; its class is known if these are bytes. */
    public static void uninitialised(Object array, int site) {
        if (array instanceof byte[]) {
            one(array, site);
        }
    }

    /** Those without a node of their own are handed over without one, to be counted. */
    private static void hand(Object object, int site, long node) {
        if (node != 0) {
            boolean placed = U.getInt(node + METHOD) == site;
            made(object, placed ? node : 0, size(layout(object.getClass()), length(object)));
        }
    }

    /** Found in the agent. */
    private static native void made(Object object, long node, long bytes);
}
