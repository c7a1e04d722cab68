package java.lang;

import static java.lang.TareAllocations.layout;
import static java.lang.TareAllocations.length;
import static java.lang.TareAllocations.size;
import static java.lang.TareLayout.*;
import static java.lang.TareThreads.*;

import jdk.internal.misc.Unsafe;
import jdk.internal.vm.annotation.ForceInline;

/**
 * Counts objects and bytes at the site that made them: a child of the node where the running thread is.
 *
 * <p>A site has an id for each class that it may make objects of, one after the other. Nothing here
 * calls a method that is woven at the same time, allocates, blocks or throws.
 */
public final class TareSites {
    private static final Unsafe U = Unsafe.getUnsafe();

    /** Numbers from -128 up to this are never boxed anew. */
    private static final int INTEGERS = cached();

    private TareSites() {}

    private static int cached() {
        int last = 127;
        while (last < Integer.MAX_VALUE && same(last + 1)) {
            last++;
        }
        return last;
    }

    private static boolean same(int number) {
        return (Object) Integer.valueOf(number) == (Object) Integer.valueOf(number);
    }

    /** An object of this class was made. */
    public static void newObject(Class<?> type, int site) {
        made(site, 1, size(layout(type), 0));
    }

    /** An object was made by a class file that cannot name its class. */
    public static void newUnknown(int site) {
        made(site, 1, 0);
    }

    /** An array was made, and the arrays in it, if its instruction made those, too. */
    public static void newArray(Object array, int site) {
        long alike = 1;
        for (;; site++) {
            made(site, alike, alike * size(layout(array.getClass()), length(array)));
            Object inner = inner(array);
            if (inner == null) {
                return;
            }
            alike *= ((Object[]) array).length;
            array = inner;
        }
    }

    /** The first array in a new one, if it has any; all are alike. */
    private static Object inner(Object array) {
        if (!(array instanceof Object[])) {
            return null;
        }
        Object[] arrays = (Object[]) array;
        return arrays.length == 0 ? null : arrays[0];
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
            one(object, isSure(object) ? site : site + 1);
        }
    }

    /** Whether no other class than the declared one could have been meant. */
    static boolean isSure(Object object) {
        return layout(object.getClass()) < 0 && !(object instanceof Object[]);
    }

    /** An object was made, of a class that the site knows. */
    public static void one(Object object, int site) {
        if (object != null) {
            made(site, 1, size(layout(object.getClass()), length(object)));
        }
    }

    /** A value was boxed, anew or not. */
    public static void boxed(Object box, int site) {
        if (!isKept(box)) {
            one(box, site);
        }
    }

    /** Whether a box is one that the JDK keeps. */
    static boolean isKept(Object box) {
        return box instanceof Integer ? within(((Integer) box).intValue(), INTEGERS)
            : box instanceof Long ? within(((Long) box).longValue(), 127)
            : box instanceof Short ? within(((Short) box).shortValue(), 127)
            : box instanceof Character && ((Character) box).charValue() <= 127;
    }

    private static boolean within(long number, int last) {
        return number >= -128 && number <= last;
    }

    /** An array was made by reflection, with arrays in it or without. */
    public static void reflected(Object array, int site) {
        if (array.getClass() == Object[].class) {
            one(array, site);
            return;
        }
        long alike = 1;
        while (array != null) {
            made(site + 1, alike, alike * size(layout(array.getClass()), length(array)));
            Object inner = inner(array);
            if (inner != null) {
                alike *= ((Object[]) array).length;
            }
            array = inner;
        }
    }

    /** An array of primitives was made by the JDK's Unsafe. */
    public static void uninitialised(Object array, int site) {
        one(array, array instanceof byte[] ? site : site + 1);
    }

    private static void made(int site, long objects, long bytes) {
        long child = place(site);
        if (child == 0) {
            return;
        }
        U.putLong(null, child + MADE_BYTES, U.getLong(null, child + MADE_BYTES) + bytes);
        U.putLong(null, child + MADE, U.getLong(null, child + MADE) + objects);
    }

    /** The node of a site where the thread is, or where it is counted for lack of room; or zero. */
    @ForceInline
    static long place(int site) {
        Thread thread = Thread.currentThread();
        long node = get(thread, entry(thread));
        if (node <= 0 || node >>> 32 != session
            || U.getInt((node & ~LOW) + H_HOLDS) != HOLDS_SITES) {
            return 0;
        }
        long child = node + U.getInt(node + SLOT + ((site & SLOTS - 1) << 2));
        return U.getInt(child + METHOD) == site ? child : TareTree.site(node, site);
    }
}
