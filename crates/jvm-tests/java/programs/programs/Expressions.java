package programs;

/** A parser by recursive descent, and an evaluator over the tree that it makes. */
public final class Expressions {
    private final String text;
    private int at;

    private Expressions(String text) {
        this.text = text;
    }

    public static long run() {
        long sum = 0;
        for (int i = 1; i < 40; i++) {
            String text = "(" + i + "+2)*(3*x-" + i % 7 + ")*(x+(1+x)*" + i + ")";
            Node tree = new Expressions(text).sum();
            for (int x = 0; x < 4; x++) {
                sum = sum * 31 + tree.value(x);
            }
        }
        return sum;
    }

    private Node sum() {
        Node left = product();
        while (at < text.length() && (text.charAt(at) == '+' || text.charAt(at) == '-')) {
            char operator = text.charAt(at++);
            left = new Pair(operator, left, product());
        }
        return left;
    }

    private Node product() {
        Node left = atom();
        while (at < text.length() && text.charAt(at) == '*') {
            at++;
            left = new Pair('*', left, atom());
        }
        return left;
    }

    private Node atom() {
        char c = text.charAt(at++);
        if (c == '(') {
            Node inner = sum();
            at++;
            return inner;
        }
        if (c == 'x') {
            return new Variable();
        }
        long number = c - '0';
        while (at < text.length() && Character.isDigit(text.charAt(at))) {
            number = number * 10 + text.charAt(at++) - '0';
        }
        return new Constant(number);
    }

    interface Node {
        long value(long x);
    }

    static final class Variable implements Node {
        @Override
        public long value(long x) {
            return x;
        }
    }

    record Constant(long number) implements Node {
        @Override
        public long value(long x) {
            return number;
        }
    }

    record Pair(char operator, Node left, Node right) implements Node {
        @Override
        public long value(long x) {
            long a = left.value(x);
            long b = right.value(x);
            return switch (operator) {
                case '+' -> a + b;
                case '-' -> a - b;
                default -> a * b;
            };
        }
    }
}
