package bench;

/** Exceptions thrown from some depth and caught further out, with and without a stack trace. */
final class Throws implements Workload {
    private final int rounds;

    Throws(String[] args) {
        rounds = Integer.parseInt(args[0]);
    }

    @Override
    public long iterate() {
        long caught = 0;
        for (int i = 0; i < rounds; i++) {
            try {
                down(i & 15, i);
            } catch (Cheap e) {
                caught += e.number;
            } catch (IllegalStateException e) {
                caught += e.getStackTrace().length > 0 ? 1 : 0;
            }
        }
        return caught;
    }

    private static int down(int depth, int number) {
        if (depth > 0) {
            try {
                return down(depth - 1, number) + 1;
            } finally {
                number++;
            }
        }
        if ((number & 7) == 0) {
            throw new IllegalStateException("every eighth has a stack trace");
        }
        throw new Cheap(number & 3);
    }

    private static final class Cheap extends RuntimeException {
        private static final long serialVersionUID = 1;
        final int number;

        Cheap(int number) {
            super(null, null, false, false);
            this.number = number;
        }
    }
}
