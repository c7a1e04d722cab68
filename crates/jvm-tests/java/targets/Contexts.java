/**
 * Makes more contexts than fit into a small memory: three methods that call each other along paths
 * that hardly ever come back, beside one short path that is taken all the time. Counts its calls.
 *
 * <p>Or, with {@code tree N}, all paths of two methods to a depth, as fast as it can. Or, with {@code drawn N},
 * N walks of 24 calls through 24 methods that are drawn, some far more often than others.
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
        if (args[0].equals("drawn")) {
            for (int i = Integer.parseInt(args[1]); i > 0; i--) {
                draw(24);
            }
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

    /** Calls one of the methods; not woven, so that contexts are the walks. */
    private static void draw(int depth) {
        if (depth == 0) {
            return;
        }
        seed = seed * 1664525 + 1013904223;
        int one = seed >>> 16 & 0x7fff;
        // Half of the draws fall on two methods.
        switch (one < 0x4000 ? one & 1 : one % 24) {
            case 0 -> Drawn.m0(depth);
            case 1 -> Drawn.m1(depth);
            case 2 -> Drawn.m2(depth);
            case 3 -> Drawn.m3(depth);
            case 4 -> Drawn.m4(depth);
            case 5 -> Drawn.m5(depth);
            case 6 -> Drawn.m6(depth);
            case 7 -> Drawn.m7(depth);
            case 8 -> Drawn.m8(depth);
            case 9 -> Drawn.m9(depth);
            case 10 -> Drawn.m10(depth);
            case 11 -> Drawn.m11(depth);
            case 12 -> Drawn.m12(depth);
            case 13 -> Drawn.m13(depth);
            case 14 -> Drawn.m14(depth);
            case 15 -> Drawn.m15(depth);
            case 16 -> Drawn.m16(depth);
            case 17 -> Drawn.m17(depth);
            case 18 -> Drawn.m18(depth);
            case 19 -> Drawn.m19(depth);
            case 20 -> Drawn.m20(depth);
            case 21 -> Drawn.m21(depth);
            case 22 -> Drawn.m22(depth);
            default -> Drawn.m23(depth);
        }
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

    /** What is woven of the walks. */
    static final class Drawn {
        private Drawn() {}

        static void m0(int depth) {
            wandering++;
            draw(depth - 1);
        }

        static void m1(int depth) {
            wandering++;
            draw(depth - 1);
        }

        static void m2(int depth) {
            wandering++;
            draw(depth - 1);
        }

        static void m3(int depth) {
            wandering++;
            draw(depth - 1);
        }

        static void m4(int depth) {
            wandering++;
            draw(depth - 1);
        }

        static void m5(int depth) {
            wandering++;
            draw(depth - 1);
        }

        static void m6(int depth) {
            wandering++;
            draw(depth - 1);
        }

        static void m7(int depth) {
            wandering++;
            draw(depth - 1);
        }

        static void m8(int depth) {
            wandering++;
            draw(depth - 1);
        }

        static void m9(int depth) {
            wandering++;
            draw(depth - 1);
        }

        static void m10(int depth) {
            wandering++;
            draw(depth - 1);
        }

        static void m11(int depth) {
            wandering++;
            draw(depth - 1);
        }

        static void m12(int depth) {
            wandering++;
            draw(depth - 1);
        }

        static void m13(int depth) {
            wandering++;
            draw(depth - 1);
        }

        static void m14(int depth) {
            wandering++;
            draw(depth - 1);
        }

        static void m15(int depth) {
            wandering++;
            draw(depth - 1);
        }

        static void m16(int depth) {
            wandering++;
            draw(depth - 1);
        }

        static void m17(int depth) {
            wandering++;
            draw(depth - 1);
        }

        static void m18(int depth) {
            wandering++;
            draw(depth - 1);
        }

        static void m19(int depth) {
            wandering++;
            draw(depth - 1);
        }

        static void m20(int depth) {
            wandering++;
            draw(depth - 1);
        }

        static void m21(int depth) {
            wandering++;
            draw(depth - 1);
        }

        static void m22(int depth) {
            wandering++;
            draw(depth - 1);
        }

        static void m23(int depth) {
            wandering++;
            draw(depth - 1);
        }
    }
}
