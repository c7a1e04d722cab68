import java.io.BufferedReader;
import java.io.InputStreamReader;

/**
 * Makes contexts: every path of a given length through ten methods is walked once, which are ten to
 * the power of that length, and the shorter ones on the way. Waits for a line (unless {@code once}
 * is given), prints {@code calls N}, the number of calls in all, and {@code done}; again for each
 * further line. Arguments: the length, and that word.
 */
public final class Branches {
    private static long calls;

    private Branches() {
    }

    public static void main(String[] arguments) throws Exception {
        int length = Integer.parseInt(arguments[0]);
        boolean once = arguments.length > 1;
        byte[][] ballast = new byte[24][];
        for (int i = 0; i < ballast.length; i++) {
            ballast[i] = new byte[1 << 20];
        }
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        while (once || in.readLine() != null) {
            calls = 0;
            Paths.step(length);
            System.out.println("calls " + calls);
            System.out.println("done");
            if (once) {
                break;
            }
        }
        System.out.println("ballast " + ballast.length);
    }

    /** The methods; what is outside of this class is not to be recorded. */
    static final class Paths {
        static void step(int left) {
            calls++;
            if (left > 0) {
                m0(left - 1); m1(left - 1); m2(left - 1); m3(left - 1); m4(left - 1);
                m5(left - 1); m6(left - 1); m7(left - 1); m8(left - 1); m9(left - 1);
            }
        }

        static void m0(int left) { calls++; step(left); }
        static void m1(int left) { calls++; step(left); }
        static void m2(int left) { calls++; step(left); }
        static void m3(int left) { calls++; step(left); }
        static void m4(int left) { calls++; step(left); }
        static void m5(int left) { calls++; step(left); }
        static void m6(int left) { calls++; step(left); }
        static void m7(int left) { calls++; step(left); }
        static void m8(int left) { calls++; step(left); }
        static void m9(int left) { calls++; step(left); }
    }
}
