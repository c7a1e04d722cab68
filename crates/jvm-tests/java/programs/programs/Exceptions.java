package programs;

import java.util.function.IntSupplier;

/** Exceptions of all kinds, half way through expressions, constructors, loops and finally blocks. */
public final class Exceptions {
    private static int seen;

    private Exceptions() {}

    public static int run() {
        int[] few = new int[3];
        Object text = "text";
        for (int i = 0; i < 20; i++) {
            int n = i;
            caught(() -> few[n % 5] + 100 / (n % 3));
            caught(() -> ((Integer) (n % 2 == 0 ? text : (Object) n)) + n);
            caught(() -> (n % 4 == 0 ? null : "abc").length() + n);
            caught(() -> new int[n % 3 - 1].length + n);
            caught(() -> new Derived(n).value + n);
            caught(() -> deep(n % 7));
            caught(() -> nested(n));
            caught(() -> looping(n, few));
        }
        return seen;
    }

    private static void caught(IntSupplier body) {
        try {
            seen += body.getAsInt();
        } catch (RuntimeException e) {
            seen = seen * 3 + 1;
        }
    }

    private static int deep(int n) {
        if (n == 0) {
            throw new IllegalStateException();
        }
        int below = deep(n - 1);
        return below + n;
    }

    private static int nested(int n) {
        int result = 0;
        try {
            try {
                result += 12 / (n % 4);
            } finally {
                result += deep(n % 3 + (n % 2 == 0 ? 0 : 1));
            }
        } catch (ArithmeticException e) {
            result += 1000;
        } catch (IllegalStateException e) {
            result += 2000;
        } finally {
            seen++;
        }
        return result;
    }

    private static int looping(int n, int[] few) {
        int sum = 0;
        for (int i = 0; i < 6; i++) {
            try {
                if (i == n % 6) {
                    continue;
                }
                sum += few[i] + i;
            } catch (ArrayIndexOutOfBoundsException e) {
                sum += 7;
                if (i == 5) {
                    throw e;
                }
            }
        }
        return sum;
    }

    static class Base {
        final int value;

        Base(int n) {
            if (n % 5 == 0) {
                throw new IllegalArgumentException();
            }
            value = n;
        }
    }

    static final class Derived extends Base {
        Derived(int n) {
            this(n, 10 / (n % 4));
        }

        private Derived(int n, int part) {
            super(part > 4 ? n : n + part);
            if (n % 7 == 0) {
                throw new UnsupportedOperationException();
            }
        }
    }
}
