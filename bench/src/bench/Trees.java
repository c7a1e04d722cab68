package bench;

/** Trees of expressions, worked out and rewritten through methods that each kind of node has its own of. */
final class Trees implements Workload {
    private final int rounds;

    Trees(String[] args) {
        rounds = Integer.parseInt(args[0]);
    }

    @Override
    public long iterate() {
        long sum = 0;
        for (int i = 0; i < rounds; i++) {
            Node tree = grow(i, 11);
            sum = sum * 31 + tree.value(i) + tree.simpler().value(i + 1) + tree.size();
        }
        return sum;
    }

    private static Node grow(int seed, int depth) {
        int next = seed * 1103515245 + 12345;
        if (depth == 0) {
            return (next & 0x10000) == 0 ? new Constant(next >>> 24) : new Variable();
        }
        Node left = grow(next, depth - 1);
        return switch (next >>> 16 & 3) {
            case 0 -> new Negative(left);
            case 1 -> new Product(left, grow(next + 1, depth - 2 < 0 ? 0 : depth - 2));
            default -> new Sum(left, grow(next + 2, depth - 1));
        };
    }

    private interface Node {
        long value(long x);

        Node simpler();

        int size();
    }

    private record Constant(long number) implements Node {
        @Override
        public long value(long x) {
            return number;
        }

        @Override
        public Node simpler() {
            return this;
        }

        @Override
        public int size() {
            return 1;
        }
    }

    private record Variable() implements Node {
        @Override
        public long value(long x) {
            return x;
        }

        @Override
        public Node simpler() {
            return this;
        }

        @Override
        public int size() {
            return 1;
        }
    }

    private record Negative(Node of) implements Node {
        @Override
        public long value(long x) {
            return -of.value(x);
        }

        @Override
        public Node simpler() {
            Node inner = of.simpler();
            return inner instanceof Negative twice ? twice.of() : new Negative(inner);
        }

        @Override
        public int size() {
            return 1 + of.size();
        }
    }

    private record Sum(Node left, Node right) implements Node {
        @Override
        public long value(long x) {
            return left.value(x) + right.value(x);
        }

        @Override
        public Node simpler() {
            Node a = left.simpler();
            Node b = right.simpler();
            if (a instanceof Constant one && b instanceof Constant two) {
                return new Constant(one.number() + two.number());
            }
            return new Sum(a, b);
        }

        @Override
        public int size() {
            return 1 + left.size() + right.size();
        }
    }

    private record Product(Node left, Node right) implements Node {
        @Override
        public long value(long x) {
            return left.value(x) * right.value(x);
        }

        @Override
        public Node simpler() {
            return new Product(left.simpler(), right.simpler());
        }

        @Override
        public int size() {
            return 1 + left.size() + right.size();
        }
    }
}
