import java.io.BufferedReader;
import java.io.InputStreamReader;

/**
 * Calls a root that reaches classes which were never loaded, each through the one before, and says
 * how long it took: with a recording that looks for what the root reaches, mostly for its weaving.
 */
public final class FirstCalls {
    private FirstCalls() {}

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        for (String line; (line = in.readLine()) != null;) {
            long start = System.nanoTime();
            int sum = root(5);
            System.out.println("took " + (System.nanoTime() - start) + " " + sum);
            System.out.println("done " + line);
        }
    }

    static int root(int n) {
        return Part1.run(n) + Part2.run(n) + Part3.run(n) + Part4.run(n) + Part5.run(n) + Part6.run(n) + Part7.run(n) + Part8.run(n);
    }

    /** Part 1: loaded when it is first called. */
    static final class Part1 {
        private Part1() {}

        static int run(int n) {
            return inner(n) + 1;
        }

        private static int inner(int n) {
            return n < 2 ? n : inner(n - 1) + 1;
        }
    }

    /** Part 2: loaded when it is first called. */
    static final class Part2 {
        private Part2() {}

        static int run(int n) {
            return inner(n) + 2;
        }

        private static int inner(int n) {
            return n < 2 ? n : inner(n - 1) + 1;
        }
    }

    /** Part 3: loaded when it is first called. */
    static final class Part3 {
        private Part3() {}

        static int run(int n) {
            return inner(n) + 3;
        }

        private static int inner(int n) {
            return n < 2 ? n : inner(n - 1) + 1;
        }
    }

    /** Part 4: loaded when it is first called. */
    static final class Part4 {
        private Part4() {}

        static int run(int n) {
            return inner(n) + 4;
        }

        private static int inner(int n) {
            return n < 2 ? n : inner(n - 1) + 1;
        }
    }

    /** Part 5: loaded when it is first called. */
    static final class Part5 {
        private Part5() {}

        static int run(int n) {
            return inner(n) + 5;
        }

        private static int inner(int n) {
            return n < 2 ? n : inner(n - 1) + 1;
        }
    }

    /** Part 6: loaded when it is first called. */
    static final class Part6 {
        private Part6() {}

        static int run(int n) {
            return inner(n) + 6;
        }

        private static int inner(int n) {
            return n < 2 ? n : inner(n - 1) + 1;
        }
    }

    /** Part 7: loaded when it is first called. */
    static final class Part7 {
        private Part7() {}

        static int run(int n) {
            return inner(n) + 7;
        }

        private static int inner(int n) {
            return n < 2 ? n : inner(n - 1) + 1;
        }
    }

    /** Part 8: loaded when it is first called. */
    static final class Part8 {
        private Part8() {}

        static int run(int n) {
            return inner(n) + 8;
        }

        private static int inner(int n) {
            return n < 2 ? n : inner(n - 1) + 1;
        }
    }
}
