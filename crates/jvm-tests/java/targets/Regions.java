import java.io.BufferedReader;
import java.io.InputStreamReader;

/**
 * Passes some lines and methods known numbers of times, in two threads. For each line that it reads, or
 * as many times as it is told to, it works and prints {@code done}.
 */
public final class Regions {
    static int sink;

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        int rounds = arguments.length == 0 ? -1 : Integer.parseInt(arguments[0]);
        for (; rounds > 0 || rounds < 0 && in.readLine() != null; rounds--) {
            Thread other = new Thread(() -> work(40), "other");
            other.start();
            work(60);
            other.join();
            System.out.println("done");
        }
    }

    static void work(int times) {
        for (int i = 0; i < times; i++) {
            sink += lines(i) + recursive(2) + recursive("two");
            try {
                leaves(i);
            } catch (IllegalStateException expected) {
                sink++;
            }
        }
        nap();
    }

    static int lines(int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) { // begin
            sum += i ^ sink;
            Runnable body = () -> sink++; // Its body is not another passage.
            body.run();
        } // end
        return sum;
    }

    /** Goes out of its lines in every way. */
    static int leaves(int n) {
        sink++;
        if (n % 4 == 0) { // leaving
            return n;
        }
        if (n % 4 == 1) {
            throw new IllegalStateException();
        }
        sink--; // left
        return -n;
    }

    /** Three passages for each call from outside. */
    static int recursive(int n) {
        return n == 0 ? sink : recursive(n - 1);
    }

    static int recursive(String n) {
        return n.length();
    }

    static void nap() {
        try {
            Thread.sleep(20);
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }
}
