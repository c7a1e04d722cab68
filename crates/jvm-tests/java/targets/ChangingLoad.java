/**
 * Calls of one root that first do work in one piece, and from a word on call a short method very often:
 * then probes weigh. Counts its calls, which have nothing to do with time.
 */
public final class ChangingLoad {
    private static final int MANY = 4_000;

    private static volatile long sum;
    private static long roots;
    private static long few;
    private static long shorts;

    public static void main(String[] args) throws Exception {
        System.out.println("ready");
        boolean often = false;
        while (true) {
            if (System.in.available() > 0) {
                int word = System.in.read();
                if (word == 'o') {
                    often = true;
                } else if (word == 'q') {
                    break;
                }
            }
            root(often);
        }
        System.out.println("count ChangingLoad.root " + roots);
        System.out.println("count ChangingLoad.few " + few);
        System.out.println("count ChangingLoad.brief " + shorts);
        System.out.println("done");
    }

    private static void root(boolean often) {
        roots++;
        if (often) {
            for (int i = 0; i < MANY; i++) {
                brief(i);
            }
        } else {
            few();
        }
    }

    private static void few() {
        few++;
        spin(100_000);
    }

    private static void brief(int i) {
        shorts++;
        spin(i & 3);
    }

    private static void spin(int rounds) {
        // Each step waits for the one before, and no compiler makes fewer of them.
        long x = sum | 1;
        for (int i = 0; i < rounds; i++) {
            x ^= x << 13;
            x ^= x >>> 7;
            x ^= x << 17;
        }
        sum = x;
    }
}
