package weave.counted;

import java.util.ArrayList;
import java.util.List;
import java.util.function.IntUnaryOperator;

/**
 * Ordinary Java whose executed bytecodes are counted twice, by single-stepping and by weaving.
 *
 * <p>The name of a method says whether an exception ends a block early in it: {@code thrown…}
 * methods do that, all others do not, so that both block analyses must agree on them.
 */
public final class Subjects {
    private static int state;

    private Subjects() {}

    /** Runs everything; the text says what came out, and must not depend on weaving. */
    public static String run() {
        StringBuilder out = new StringBuilder();
        out.append(loops(7)).append(' ').append(nested(4)).append(' ').append(words("banana"));
        out.append(' ').append(fibonacci(12)).append(' ').append(isEven(9));
        for (int i = -1; i < 6; i++) {
            out.append(' ').append(finallyReturns(i)).append(' ').append(labels(i));
            out.append(' ').append(thrownInTheMiddle(i)).append(' ').append(thrownAndNested(i));
        }
        out.append(' ').append(numbers(3, 2.5)).append(' ').append(lambdas(5));
        out.append(' ').append(new Shape(3)).append(' ').append(new Shape("four").area());
        out.append(' ').append(thrownByConstructor(-1)).append(thrownByConstructor(1));
        out.append(' ').append(new Counter().thrownWhileLocked(3)).append(locked(4));
        out.append(' ').append(patterns("text")).append(patterns(42)).append(patterns(null));
        out.append(' ').append(arrays(3)).append(' ').append(Season.SPRING.next().label());
        out.append(' ').append(thrownByCast("no number")).append(thrownByNull(null));
        out.append(' ').append(manyLocals(1)).append(' ').append(new Pair(1, "b").hashCode() != 0);
        return out.toString();
    }

    static int loops(int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            sum += i;
        }
        while (sum > 10) {
            sum -= 3;
        }
        do {
            sum++;
        } while (sum < 20);
        return sum;
    }

    static int nested(int n) {
        int count = 0;
        for (int i = 0; i < n; i++) {
            for (int j = 0; j < i; j++) {
                count += i > 2 && j > 0 || i == j ? i : j;
            }
        }
        return count;
    }

    static int words(String word) {
        int sum = 0;
        for (char c : word.toCharArray()) {
            switch (c) {
                case 'a' -> sum += 1;
                case 'b' -> sum += 10;
                default -> sum += 100;
            }
        }
        return switch (word) {
            case "apple" -> -sum;
            case "banana" -> sum;
            default -> 0;
        };
    }

    static int fibonacci(int n) {
        return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
    }

    static boolean isEven(int n) {
        return n == 0 || isOdd(n - 1);
    }

    static boolean isOdd(int n) {
        return n != 0 && isEven(n - 1);
    }

    @SuppressWarnings("finally")
    static int finallyReturns(int n) {
        int x = 0;
        for (int i = 0; i < 3; i++) {
            try {
                x += n;
                if (n == 1) {
                    return x;
                }
                if (n == 2) {
                    continue;
                }
                if (n == 3) {
                    break;
                }
                if (n == 4) {
                    throw new IllegalStateException("four");
                }
                x++;
            } catch (IllegalStateException e) {
                x += 1000;
            } finally {
                x += 10;
                if (n == 5) {
                    return -x;
                }
            }
        }
        return x;
    }

    static int labels(int n) {
        int x = 0;
        outer:
        for (int i = 0; i < 5; i++) {
            for (int j = 0; j < 5; j++) {
                if (j == n) {
                    continue outer;
                }
                if (i == n) {
                    break outer;
                }
                x += i * j;
            }
        }
        return x;
    }

    /** The index is out of range in the middle of a block. */
    static int thrownInTheMiddle(int n) {
        int[] values = {1, 2, 3};
        try {
            int a = values[0] + values[n];
            state = a * 2;
            return a + values[1] * 3;
        } catch (ArrayIndexOutOfBoundsException e) {
            return -1;
        }
    }

    static int thrownAndNested(int n) {
        int x = 0;
        try {
            try {
                x = 100 / n;
                x += 7;
                try {
                    x += Integer.parseInt(n == 2 ? "two" : "3");
                } finally {
                    x += 1;
                }
            } catch (ArithmeticException e) {
                x = deep(n);
            } finally {
                x *= 2;
            }
        } catch (RuntimeException e) {
            x -= 5;
        }
        return x;
    }

    private static int deep(int n) {
        if (n < 3) {
            return deep(n + 1) + 1;
        }
        throw new UnsupportedOperationException();
    }

    static double numbers(long a, double b) {
        long bits = Double.doubleToLongBits(b) >>> 3 ^ a;
        double sum = 0;
        for (long i = a; i < 10; i++) {
            sum += i * b - (float) i / 2;
        }
        return sum + (bits > 0 ? 1 : 2);
    }

    static int lambdas(int n) {
        IntUnaryOperator twice = x -> x * 2 + n;
        List<Integer> list = new ArrayList<>();
        for (int i = 0; i < n; i++) {
            list.add(twice.applyAsInt(i));
        }
        return list.stream().mapToInt(x -> x + 1).filter(x -> x % 2 == 0).sum();
    }

    static String patterns(Object o) {
        if (o instanceof String s && s.length() > 2) {
            return s + "!" + s.length();
        }
        return o instanceof Integer i ? "int " + (i + 1) : "other " + o;
    }

    static int arrays(int n) {
        int[][] grid = new int[n][n + 1];
        int[] copy = grid[0].clone();
        Object[] boxes = new Object[] {grid, copy, "x"};
        grid[n - 1][n] = boxes.length;
        return grid[n - 1][n] + copy.length;
    }

    static int thrownByCast(Object o) {
        try {
            Integer number = (Integer) o;
            return number + 1;
        } catch (ClassCastException e) {
            return -2;
        }
    }

    static int thrownByNull(String s) {
        try {
            return s.length() + 1;
        } catch (NullPointerException e) {
            return -3;
        }
    }

    static synchronized int locked(int n) {
        synchronized (Subjects.class) {
            return n > 0 ? locked(n - 1) + n : 0;
        }
    }

    static int thrownByConstructor(int n) {
        try {
            return new Fragile(n).value + 1;
        } catch (IllegalArgumentException e) {
            return -4;
        }
    }

    static long manyLocals(int n) {
        long a = n, b = a + 1, c = b + 1, d = c + 1, e = d + 1, f = e + 1, g = f + 1, h = g + 1;
        double i = h, j = i + 1, k = j + 1, l = k + 1, m = l + 1, o = m + 1, p = o + 1;
        for (int q = 0; q < 3; q++) {
            a += b * c - d + e * f - g + h;
            i += j - k * l + m - o * p;
        }
        return a + (long) i;
    }

    /** A constructor that chooses its arguments, one that calls another, an initialiser block. */
    static class Shape {
        private final int side;
        private int times;

        {
            for (int i = 0; i < 2; i++) {
                times += i;
            }
        }

        Shape(int side) {
            super();
            this.side = side > 2 ? side : -side;
        }

        Shape(String text) {
            this(text == null || text.isEmpty() ? 0 : text.length());
            times++;
        }

        int area() {
            return side * side + times;
        }

        @Override
        public String toString() {
            return "shape of " + side + " and " + times;
        }
    }

    static class Fragile {
        final int value;

        Fragile(int value) {
            this.value = value;
            if (value < 0) {
                throw new IllegalArgumentException("negative");
            }
        }
    }

    static class Counter {
        private int count;

        synchronized int thrownWhileLocked(int n) {
            for (int i = 0; i < n; i++) {
                try {
                    step(i);
                } catch (IllegalStateException e) {
                    count += 100;
                }
            }
            return count;
        }

        private synchronized void step(int i) {
            synchronized (this) {
                count++;
                if (i == 1) {
                    throw new IllegalStateException();
                }
            }
        }
    }

    enum Season {
        WINTER,
        SPRING,
        SUMMER;

        Season next() {
            return values()[(ordinal() + 1) % values().length];
        }

        String label() {
            return switch (this) {
                case WINTER -> "w";
                case SPRING -> "sp";
                case SUMMER -> "su";
            };
        }
    }

    record Pair(int a, String b) {}
}
