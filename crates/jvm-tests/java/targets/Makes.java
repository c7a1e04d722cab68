import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Array;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.IntSupplier;
import java.util.function.Supplier;

/**
 * Has {@link Made} allocate, on platform threads and virtual ones, and knows how much that is: sizes are what
 * the JVM says that this thread has allocated. Waits for a line, works, prints {@code made}, the place, the
 * class, objects and bytes, apart by tabs, and {@code done}; again for each further line. With the words
 * {@code paths N} it makes an array at each of N steps, on all paths that there are, and prints how many
 * and how large each is.
 */
public final class Makes {
    static final Map<String, long[]> MADE = new ConcurrentHashMap<>();
    static final com.sun.management.ThreadMXBean THREADS =
        (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
    static volatile Object sink;

    static void expect(String place, String type, long objects, long bytes) {
        if (objects > 0) {
            MADE.merge(place + "\t" + type, new long[] {objects, bytes},
                (a, b) -> new long[] {a[0] + b[0], a[1] + b[1]});
        }
    }

    /** What making one takes: the second time, when nothing has to be linked any more. */
    static long size(Supplier<?> made) {
        long bytes = 0;
        for (int i = 0; i < 2; i++) {
            long before = THREADS.getCurrentThreadAllocatedBytes();
            sink = made.get();
            bytes = THREADS.getCurrentThreadAllocatedBytes() - before;
        }
        return bytes;
    }

    static final Map<String, Long> SIZES = new ConcurrentHashMap<>();

    static long array(Class<?> element, int length) {
        return SIZES.computeIfAbsent(element.getName() + length,
            key -> size(() -> Array.newInstance(element, length)));
    }

    static long lambda(int n) {
        return size(() -> {
            IntSupplier captures = () -> n;
            return captures;
        });
    }

    static long derived;
    static long fails;
    static long thrown;
    static long point;
    static long point3;
    static long[] boxes;
    static long string;
    static long captured;

    static void measure() {
        derived = size(() -> new Made.Derived(1));
        fails = size(() -> new Made.Fails(1));
        thrown = size(() -> new Made.Stop());
        point = size(() -> new Made.Point());
        point3 = size(() -> new Made.Point3());
        boxes = new long[] {size(() -> Integer.valueOf(1000)), size(() -> Long.valueOf(1000)),
            size(() -> Short.valueOf((short) 1000)), size(() -> Character.valueOf((char) 1000)),
            size(() -> Double.valueOf(1)), size(() -> Float.valueOf(1))};
        string = size(() -> new String("shares its bytes"));
        captured = lambda(1);
        for (int n = 0; n < 40; n++) {
            for (Class<?> type : TYPES) {
                array(type, n);
            }
        }
    }

    static final Class<?>[] TYPES = {byte.class, boolean.class, char.class, short.class, int.class, float.class,
        long.class, double.class, String.class, Object.class, int[].class, int[][].class};
    static final String[] PRIMITIVES = {"byte", "boolean", "char", "short", "int", "float", "long", "double"};
    static final String REFLECTED = "java.lang.Object (by reflection)";

    static void everything(int round) throws Exception {
        for (int n = 0; n < 20; n++) {
            Made.object();
            expect("object", "Made$Derived", 1, derived);
            Made.fails(n);
            expect("fails", "Made$Fails", 1, fails);
            expect("thrown", "Made$Stop", 1 - n % 2, thrown);
            Made.primitives(n);
            for (int i = 0; i < PRIMITIVES.length; i++) {
                expect(PRIMITIVES[i] + "s", PRIMITIVES[i] + "[]", 1, array(TYPES[i], n));
            }
            Made.leaf(n);
            expect("leaf", "int[]", 1, array(int.class, n));
            Made.references(n);
            expect("strings", "java.lang.String[]", 1, array(String.class, n));
            expect("rows", "int[][]", 1, array(int[].class, n));
            int b = n % 3;
            Made.grid(n, b, 2);
            expect("grid", "int[][][]", 1, array(int[][].class, n));
            expect("grid", "int[][]", n, n * array(int[].class, b));
            expect("grid", "int[]", n * b, n * b * array(int.class, 2));
            expect("half", "int[][][]", 1, array(int[][].class, n));
            expect("half", "int[][]", n, n * array(int[].class, b));
            clones(n);
            boxes(n * 10 - 160);
            Made.lambdas(n);
            expect("captures", "Made$$Lambda", 1, captured);
            Made.joined("text", n);
            expect("joined", "java.lang.String", 1, string);
            reflection(n);
        }
        Made.recursive(30 + round);
        expect("recursive", "byte[]", 30 + round, (30 + round) * array(byte.class, 16));
    }

    static void clones(int n) throws Exception {
        boolean odd = n % 2 == 1;
        Made.clones(new int[n], odd ? new String[n] : new Object[n], odd ? new Made.Point3() : new Made.Point());
        expect("ints cloned", "int[]", 1, array(int.class, n));
        expect("objects cloned", "java.lang.Object[]" + (odd ? " (or a subclass)" : ""), 1, array(Object.class, n));
        expect("clone", "Made$Point" + (odd ? " (or a subclass)" : ""), 1, odd ? point3 : point);
    }

    static void boxes(int n) {
        Made.boxes(n);
        boolean small = n >= -128 && n <= 127;
        expect("int", "java.lang.Integer", small ? 0 : 1, boxes[0]);
        expect("long", "java.lang.Long", small ? 0 : 1, boxes[1]);
        expect("short", "java.lang.Short", small ? 0 : 1, boxes[2]);
        expect("char", "java.lang.Character", (char) n <= 127 ? 0 : 1, boxes[3]);
        expect("double", "java.lang.Double", 1, boxes[4]);
        expect("float", "java.lang.Float", 1, boxes[5]);
    }

    static void reflection(int n) throws Exception {
        Made.reflection(n);
        // What is passed as variable arguments is an array, too.
        expect("constructor", "java.lang.Class[]", 1, array(Object.class, 0));
        expect("constructor", "java.lang.Object[]", 1, array(Object.class, 0));
        expect("constructor", REFLECTED, 1, point);
        expect("array by class", REFLECTED, 1, array(int.class, n));
        expect("objects by class", "java.lang.Object[]", 1, array(Object.class, n));
        expect("grid by class", "int[]", 1, array(int.class, 2));
        expect("grid by class", REFLECTED, 1 + n, array(int[].class, n) + n * array(int.class, 3));
    }

    /** Every other one is virtual, where there are such. */
    static Thread start(int number, Runnable work) throws Exception {
        if (number % 2 == 1 && Runtime.version().feature() >= 21) {
            Method start = Thread.class.getMethod("startVirtualThread", Runnable.class);
            return (Thread) start.invoke(null, work);
        }
        Thread thread = new Thread(work, "makes " + number);
        thread.start();
        return thread;
    }

    public static void main(String[] arguments) throws Exception {
        if (arguments.length > 1) {
            int steps = Integer.parseInt(arguments[1]);
            for (int path = 0; path < 1 << steps; path++) {
                Made.left(path, steps);
            }
            System.out.println(((long) steps << steps) + "\t" + array(byte.class, 8));
            return;
        }
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        measure();
        System.out.println("ready");
        int rounds = arguments.length > 0 ? Integer.parseInt(arguments[0]) : Integer.MAX_VALUE;
        for (int round = 0; round < rounds; round++) {
            if (arguments.length == 0 && in.readLine() == null) {
                return;
            }
            List<Thread> threads = new ArrayList<>();
            List<Throwable> failures = new ArrayList<>();
            for (int number = 0; number < 4; number++) {
                int given = round;
                threads.add(start(number, () -> {
                    try {
                        everything(given);
                    } catch (Throwable failure) {
                        failures.add(failure);
                    }
                }));
            }
            for (Thread thread : threads) {
                thread.join();
            }
            if (!failures.isEmpty()) {
                throw new AssertionError(failures.get(0));
            }
            new TreeMap<>(MADE).forEach((what, n) ->
                System.out.println("made\t" + what + "\t" + n[0] + "\t" + n[1]));
            System.out.println("done");
        }
    }
}
