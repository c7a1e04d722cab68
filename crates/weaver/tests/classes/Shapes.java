import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;

/** Code shapes that a weaver meets. The tests compile it for several releases of Java. */
public class Shapes {
    @Target({ElementType.TYPE_USE, ElementType.FIELD})
    @Retention(RetentionPolicy.RUNTIME)
    @interface Mark { String value() default "x"; int[] numbers() default {}; }

    private final @Mark("f") String name;
    private static long total;
    private final Object lock = new Object();

    Shapes(boolean a, int n) { this(a ? "yes" : n > 3 ? "many" : "few"); total += n; }

    Shapes(String name) {
        super();
        if (name == null) throw new IllegalArgumentException();
        this.name = name;
    }

    static int loops(int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            int j = i;
            while (j > 0) { sum += j; j -= 2; if (sum > 100000) break; }
            do { sum ^= j; } while (j++ < 0);
        }
        return sum;
    }

    static String tables(int n, String s) {
        switch (n) { case 1: return "one"; case 2: return "two"; case 3: break; default: n = 9; }
        switch (n) { case 100: return "c"; case 100000: return "m"; default: }
        switch (s) { case "a": return "A"; case "b": return "B"; default: return s + n; }
    }

    int locked(int[] a) {
        synchronized (lock) {
            try { return a[0] / a[1]; }
            catch (ArithmeticException e) { return -1; }
            finally { total++; }
        }
    }

    static synchronized long wide(long a, double b, float c, long d) {
        long r = a; double x = b;
        if (a > d) { r = (long) (b * c); } else { x += c; }
        for (long i = 0; i < 3; i++) { long y = i; x -= y; r += (long) x; }
        return r + (long) x;
    }

    static int handlers(Object o) {
        int state = 0;
        try {
            state = 1;
            o.hashCode();
            try { state = 2; throw new IllegalStateException("s"); }
            catch (IllegalStateException e) { state += 10; o.toString(); }
            state += 100;
        } catch (NullPointerException | ClassCastException e) {
            state += 1000;
        } finally {
            state += 10000;
        }
        return state;
    }

    <T extends @Mark Comparable<T>> @Mark T casts(Object o) {
        @Mark("local") List<@Mark("arg") String> l = new @Mark("new") ArrayList<@Mark String>();
        if (o instanceof @Mark("is") String) { l.add((@Mark("cast") String) o); }
        Supplier<String> s = l::toString;
        Supplier<Supplier<String>> t = () -> () -> name + s.get();
        @SuppressWarnings("unchecked") T r = (T) (Comparable<?>) t.get().get();
        return r;
    }

    static Object[] arrays(int n) {
        int[] a = new int[n]; long[][] b = new long[n][2]; String[] c = {"p", "q"};
        return new Object[] {a.clone(), b.clone(), c.clone(), new Object[n][n]};
    }

    static Shapes nested(boolean p) { return new Shapes(p ? new String("a") : p ? "b" : "c"); }

    static double maths(double d) {
        double r = Math.max(1, 2) + d;
        System.arraycopy(new int[2], 0, new int[2], 0, 1);
        return d > 0 ? r % d : -r;
    }

    protected void finalize() { }

    static abstract class Base { abstract int f(); }
    static class Derived extends Base { int f() { return (int) total; } }
    enum Colour { RED, GREEN { @Override int f() { return 2; } }; int f() { return 1; } }
    interface Face { default int g() { return 3; } static int h() { return 4; } }

    static String run() {
        StringBuilder b = new StringBuilder();
        b.append(loops(50)).append(' ').append(tables(1, "a")).append(tables(7, "b")).append(tables(3, "z"));
        b.append(' ').append(new Shapes(true, 5).locked(new int[] {6, 2})).append(' ');
        b.append(new Shapes(false, 9).locked(new int[] {6, 0})).append(' ');
        try { new Shapes("k").locked(new int[0]); } catch (ArrayIndexOutOfBoundsException e) { b.append("oob "); }
        try { new Shapes(null); } catch (IllegalArgumentException e) { b.append("iae "); }
        b.append(wide(5, 2.5, 1.5f, 3)).append(' ').append(wide(1, 2.5, 1.5f, 3)).append(' ');
        b.append(handlers("x")).append(' ').append(handlers(null)).append(' ');
        b.append(new Shapes("n").<String>casts("v")).append(' ').append(arrays(2).length).append(' ');
        b.append(nested(false).name).append(' ').append(maths(4)).append(' ').append(maths(-4)).append(' ');
        b.append(new Derived().f()).append(Colour.GREEN.f()).append(Colour.RED.f());
        b.append(new Face() { }.g()).append(Face.h());
        return b.toString();
    }

    public static void main(String[] args) {
        System.out.println(run());
        int n = 0;
        for (int i = 0; i < 20000; i++) n += run().length();
        System.out.println(n);
    }
}
