import java.io.BufferedReader;
import java.io.InputStreamReader;

/**
 * Calls methods of the JDK that HotSpot's compilers replace by code of their own, often enough for
 * them to do so, and counts the calls. Every line on standard input makes it go on for a while.
 */
public final class Intrinsics {
    private static long max;
    private static long valueOf;
    private static long append;
    private static long bits;

    private Intrinsics() {}

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        int sum = 0;
        for (String line; (line = in.readLine()) != null;) {
            for (int round = 0; round < 300; round++) {
                sum += work(1000) + largest(1000);
            }
            System.out.println("count java.lang.Math.max " + max);
            System.out.println("count java.lang.Integer.valueOf " + valueOf);
            System.out.println("count java.lang.StringBuilder.append " + append);
            System.out.println("count java.lang.Integer.bitCount " + bits);
            System.out.println("done " + line + " " + (sum == 0 ? 0 : 1));
        }
    }

    private static int work(int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            valueOf++;
            Integer boxed = Integer.valueOf(i);
            sum += boxed;
            StringBuilder text = new StringBuilder();
            append += 2;
            text.append("x").append("y");
            sum += text.toString().length();
        }
        return sum;
    }

    /** Calls nothing else: once compiled it has nothing to do with any other method. */
    private static int largest(int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            max++;
            sum += Math.max(i, n - i);
            bits++;
            sum += Integer.bitCount(i);
        }
        return sum;
    }
}
