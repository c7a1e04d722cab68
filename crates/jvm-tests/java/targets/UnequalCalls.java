/**
 * Calls of one root that differ: how often each of a dozen methods is called is drawn anew for every call of
 * the root, the same in every run. Nothing depends on time.
 */
public final class UnequalCalls {
    private static final int CALLS = 20_000;

    private static long state = 42;
    private static volatile long sum;

    public static void main(String[] args) {
        for (int i = 0; i < CALLS; i++) {
            root();
        }
    }

    private static int drawn(int below) {
        state = state * 6364136223846793005L + 1442695040888963407L;
        return (int) ((state >>> 33) % below);
    }

    private static void root() {
        times(drawn(2), UnequalCalls::a);
        times(drawn(3), UnequalCalls::b);
        times(drawn(9) * drawn(2), UnequalCalls::c);
        times(drawn(40) == 0 ? 60 : 0, UnequalCalls::d);
        times(drawn(10) == 0 ? drawn(30) : 1, UnequalCalls::e);
        times(drawn(5), UnequalCalls::f);
    }

    private static void times(int number, Runnable what) {
        for (int i = 0; i < number; i++) {
            what.run();
        }
    }

    private static void a() {
        work();
        twice(drawn(4));
    }

    private static void b() {
        work();
    }

    private static void c() {
        again(drawn(3));
    }

    private static void d() {
        work();
    }

    private static void e() {
        twice(drawn(2));
    }

    private static void f() {
        again(1);
    }

    private static void again(int number) {
        for (int i = 0; i < number; i++) {
            work();
        }
    }

    private static void twice(int number) {
        for (int i = 0; i < 2 * number; i++) {
            work();
        }
    }

    private static void work() {
        sum += state & 7;
    }
}
