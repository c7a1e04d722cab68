/**
 * Makes more contexts than fit into a small memory: three methods that call each other along paths
 * that hardly ever come back, beside one short path that is taken all the time. Counts its calls.
 *
 * <p>Or, with {@code tree N}, all paths of two methods to a depth, as fast as it can.
 */
public final class Contexts {
    private static int seed = 12345;
    private static long wandering;
    private static long steady;

    private Contexts() {}

    public static void main(String[] args) {
        if (args[0].equals("tree")) {
            Paths.left(Integer.parseInt(args[1]));
            System.out.println("count wandering " + wandering);
            return;
        }
        int rounds = Integer.parseInt(args[0]);
        for (int i = 0; i < rounds; i++) {
            Paths.step(14);
            Paths.steady();
        }
        System.out.println("count wandering " + wandering);
        System.out.println("count steady " + steady);
    }

    /** What is woven. */
    static final class Paths {
        private Paths() {}

        static void step(int depth) {
            wandering++;
            if (depth > 0) {
                seed = seed * 1664525 + 1013904223;
                switch ((seed >>> 16) % 3) {
                    case 0 -> a(depth);
                    case 1 -> b(depth);
                    default -> c(depth);
                }
            }
        }

        static void a(int depth) {
            wandering++;
            step(depth - 1);
        }

        static void b(int depth) {
            wandering++;
            step(depth - 1);
        }

        static void c(int depth) {
            wandering++;
            step(depth - 1);
        }

        static void left(int depth) {
            wandering++;
            if (depth > 0) {
                left(depth - 1);
                right(depth - 1);
            }
        }

        static void right(int depth) {
            wandering++;
            if (depth > 0) {
                left(depth - 1);
                right(depth - 1);
            }
        }

        static void steady() {
            steady++;
            often();
        }

        static void often() {
            steady++;
        }
    }
}
