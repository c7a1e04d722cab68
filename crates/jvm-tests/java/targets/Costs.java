import java.util.Scanner;

/** A method that is short and called often, beside one that is long and called seldom. */
public final class Costs {
    private static int sink;
    private static long brief;
    private static long lengthy;

    private Costs() {}

    static int brief(int x) {
        return x * 31 + 7;
    }

    static int lengthy(int x) {
        for (int i = 0; i < 100_000; i++) {
            x = x * 31 + i;
        }
        return x;
    }

    static int round(int x) {
        for (int i = 0; i < 20_000; i++) {
            x = brief(x);
        }
        brief += 20_000;
        x = lengthy(x);
        lengthy++;
        return x;
    }

    public static void main(String[] args) {
        System.out.println("ready");
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine()) {
            String line = lines.nextLine();
            if (!line.startsWith("for ")) {
                break;
            }
            long end = System.nanoTime() + Long.parseLong(line.substring(4)) * 1_000_000;
            while (System.nanoTime() < end) {
                sink = round(sink);
            }
            System.out.println("count Costs.brief " + brief);
            System.out.println("count Costs.lengthy " + lengthy);
            System.out.println("done " + line);
        }
    }
}
