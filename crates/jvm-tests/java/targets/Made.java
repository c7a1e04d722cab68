import java.lang.reflect.Array;
import java.util.function.IntSupplier;

/** Allocates in every way that code can. Each place has a name, which {@link Makes} knows it by. */
class Made {
    static volatile Object sink;

    static class Base {
        int a;

        Base(int a) {
            this.a = a;
        }
    }

    static class Derived extends Base {
        long b;

        Derived(int a) {
            super(a);
            b = a;
        }
    }

    static class Fails {
        Fails(int n) {
            if (n % 2 == 0) {
                throw new Stop(); // place: thrown
            }
        }
    }

    /** Has no stack trace, which the JDK would allocate. */
    static class Stop extends RuntimeException {
        private static final long serialVersionUID = 1;

        Stop() {
            super(null, null, false, false);
        }
    }

    static class Point implements Cloneable {
        int x;
        int y;

        Object copy() throws CloneNotSupportedException {
            return super.clone(); // place: clone
        }
    }

    static class Point3 extends Point {
        int z;
        long w;
    }

    static void object() {
        sink = new Derived(1); // place: object
    }

    static void fails(int n) {
        try {
            sink = new Fails(n); // place: fails
        } catch (Stop expected) {
            sink = expected;
        }
    }

    static void primitives(int n) {
        sink = new byte[n]; // place: bytes
        sink = new boolean[n]; // place: booleans
        sink = new char[n]; // place: chars
        sink = new short[n]; // place: shorts
        sink = new int[n]; // place: ints
        sink = new float[n]; // place: floats
        sink = new long[n]; // place: longs
        sink = new double[n]; // place: doubles
    }

    /** Calls nothing. */
    static int[] leaf(int n) {
        return new int[n]; // place: leaf
    }

    static void references(int n) {
        sink = new String[n]; // place: strings
        sink = new int[n][]; // place: rows
    }

    static void grid(int a, int b, int c) {
        sink = new int[a][b][c]; // place: grid
        sink = new int[a][b][]; // place: half
    }

    static void clones(int[] ints, Object[] objects, Point point) throws Exception {
        sink = ints.clone(); // place: ints cloned
        sink = objects.clone(); // place: objects cloned
        sink = point.copy();
    }

    static void boxes(int n) {
        sink = n; // place: int
        sink = (long) n; // place: long
        sink = (short) n; // place: short
        sink = (char) n; // place: char
        sink = (double) n; // place: double
        sink = (float) n; // place: float
        sink = (byte) n;
        sink = n > 0;
    }

    static void lambdas(int n) {
        IntSupplier captures = () -> n; // place: captures
        IntSupplier none = () -> 7;
        sink = captures;
        sink = none;
    }

    static void joined(String text, int n) {
        sink = text + n; // place: joined
    }

    static void reflection(int n) throws Exception {
        sink = Point.class.getDeclaredConstructor().newInstance(); // place: constructor
        sink = Array.newInstance(int.class, n); // place: array by class
        sink = Array.newInstance(Object.class, n); // place: objects by class
        sink = Array.newInstance(int.class, n, 3); // place: grid by class
    }

    static void recursive(int depth) {
        sink = new byte[16]; // place: recursive
        if (depth > 1) {
            recursive(depth - 1);
        }
    }

    /** A context for each path of so many steps. */
    static void left(int path, int steps) {
        sink = new byte[8];
        if (steps > 1) {
            if ((path & 1) == 0) {
                left(path >> 1, steps - 1);
            } else {
                right(path >> 1, steps - 1);
            }
        }
    }

    static void right(int path, int steps) {
        sink = new byte[8];
        if (steps > 1) {
            if ((path & 1) == 0) {
                left(path >> 1, steps - 1);
            } else {
                right(path >> 1, steps - 1);
            }
        }
    }
}
