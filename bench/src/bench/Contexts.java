package bench;

/** Many calling contexts: every path through three methods, to the depth at which there are so many. */
final class Contexts implements Workload {
    private static final long CALLS = 12_000_000;

    private final int depth;
    private final int rounds;

    Contexts(String[] args) {
        long wanted = Long.parseLong(args[0]);
        int levels = 1;
        long paths = 3;
        long contexts = 3;
        while (contexts < wanted) {
            levels++;
            paths *= 3;
            contexts += paths;
        }
        depth = levels;
        rounds = (int) Math.max(1, CALLS / contexts);
    }

    @Override
    public long iterate() {
        long sum = 0;
        for (int i = 0; i < rounds; i++) {
            sum += below(depth);
        }
        return sum;
    }

    /** Calls all three; not woven, so that contexts are the paths. */
    private static int below(int depth) {
        return depth == 0 ? 1 : Paths.a(depth) + Paths.b(depth) + Paths.c(depth);
    }

    /** What is woven. */
    static final class Paths {
        private Paths() {}

        static int a(int depth) {
            return below(depth - 1);
        }

        static int b(int depth) {
            return below(depth - 1) + 1;
        }

        static int c(int depth) {
            return below(depth - 1) + 2;
        }
    }
}
