package tare.runtime;

/**
 * Loops of known bytecodes, by which {@link Target} measures what each kind of them costs on a JVM.
 *
 * <p>Tare reads how many bytecodes of which kind a turn of each has off this class file. Therefore a loop has one way through it: a
 * condition in the body is always true or its other way leaves the method, the cases of a switch are alike, and what
 * is called is in this file and has no loop. Results depend on every turn, so no compiler can leave one out.
 */
final class Kernels {
    static final int MASK = 1023;

    static int one = 1;
    static int two = 2;
    static final int[] numbers = new int[MASK + 1];
    static final Node2[] ring = new Node2[MASK + 1];
    static final Shape[] shapes = {new Square(), new Line(), new Square(), new Line()};
    static final Base[] bases = {new First(), new Second(), new First(), new Second()};
    static final Object[] kept = new Object[4];
    static final RuntimeException THROWN = new Quick();

    static {
        for (int i = 0; i <= MASK; i++) {
            numbers[i] = i * 7919 + 13;
            ring[i] = new Node2(i);
        }
        for (int i = 0; i <= MASK; i++) {
            ring[i].next = ring[i * 331 + 17 & MASK];
        }
    }

    private Kernels() {}

    static final class Node2 {
        Node2 next;
        int value;

        Node2(int value) {
            this.value = value;
        }
    }

    static final class Quick extends RuntimeException {
        private static final long serialVersionUID = 1;

        Quick() {
            super("measured", null, false, false);
        }
    }

    interface Shape {
        int area(int x);
    }

    static final class Square implements Shape {
        @Override
        public int area(int x) {
            return x * x;
        }
    }

    static final class Line implements Shape {
        @Override
        public int area(int x) {
            return x * 3;
        }
    }

    abstract static class Base {
        abstract int step(int x);
    }

    static final class First extends Base {
        @Override
        int step(int x) {
            return x + 5;
        }
    }

    static final class Second extends Base {
        @Override
        int step(int x) {
            return x + 9;
        }
    }

    static int plain(int n) {
        int x = 0;
        for (int i = 0; i < n; i++) {
            x += i;
        }
        return x;
    }

    static int moves(int n) {
        int a = 1;
        int b = 2;
        int c = 3;
        for (int i = 0; i < n; i++) {
            int t = a;
            a = b;
            b = c;
            c = t;
            t = a;
            a = b;
            b = c + i;
            c = t;
        }
        return a + b + c;
    }

    static int sums(int n) {
        int x = 1;
        int y = 7;
        for (int i = 0; i < n; i++) {
            x = (x << 3 ^ y) + (x >>> 5 | i);
            y = (y - x & 0xffff) + (x ^ i);
            x = (x << 1 ^ y) + (x >>> 7 | i);
        }
        return x + y;
    }

    static int longSums(int n) {
        long x = 1;
        for (int i = 0; i < n; i++) {
            x = (x << 3) + (x >>> 5) + i;
            x ^= x << 13;
            x ^= x >>> 7;
        }
        return (int) x;
    }

    static int products(int n) {
        int x = 3;
        for (int i = 0; i < n; i++) {
            x = x * 31 + i;
            x = x * 17 + i;
            x = x * 13 + i;
        }
        return x;
    }

    static int quotients(int n) {
        int x = 1 << 30;
        int d = two;
        for (int i = 0; i < n; i++) {
            x = x / d + (i | 1 << 28);
            x = x % (i | 4097) + (1 << 27);
        }
        return x;
    }

    static int floats(int n) {
        double x = 1.5;
        double y = 0.5;
        for (int i = 0; i < n; i++) {
            x = x * 0.999 + y;
            y = y * 0.5 - x * 0.25;
            x = x + y * 0.125;
        }
        return (int) (x + y);
    }

    static int conversions(int n) {
        double x = 1;
        for (int i = 0; i < n; i++) {
            x = (double) (int) x + i * 0.5f;
        }
        return (int) x;
    }

    static int fields(int n) {
        Node2 a = ring[0];
        Node2 b = ring[1];
        for (int i = 0; i < n; i++) {
            a.value = b.value + i;
            b.value = a.value ^ b.value;
            a.value = a.value - b.value;
        }
        return a.value;
    }

    static int statics(int n) {
        for (int i = 0; i < n; i++) {
            one = two + i;
            two = one ^ two;
        }
        return one;
    }

    static int chain(int n) {
        Node2 at = ring[0];
        int x = 0;
        for (int i = 0; i < n; i++) {
            at = at.next;
            if (at == null) {
                return 0;
            }
            x += at.value;
        }
        return x;
    }

    static int reads(int n) {
        int[] from = numbers;
        int x = 0;
        for (int i = 0; i < n; i++) {
            x += from[x + i & MASK];
            x ^= from[i & MASK];
            x += from[x & MASK];
        }
        return x;
    }

    static int writes(int n) {
        int[] to = numbers;
        for (int i = 0; i < n; i++) {
            to[i & MASK] = to[i + 1 & MASK] + i;
            to[i + 7 & MASK] = i;
        }
        return to[5];
    }

    static int branches(int n) {
        int x = 5;
        for (int i = 0; i < n; i++) {
            x = x + i & 0xffff;
            if (x < 0) {
                return 1;
            }
            x = x + 3 & 0xffff;
            if (x == -5) {
                return 2;
            }
            if (x + i == -7) {
                return 3;
            }
        }
        return x;
    }

    static int cases(int n) {
        int x = 0;
        for (int i = 0; i < n; i++) {
            switch (i & 3) {
                case 0:
                    x += 11;
                    break;
                case 1:
                    x += 22;
                    break;
                case 2:
                    x += 33;
                    break;
                default:
                    x += 44;
                    break;
            }
        }
        return x;
    }

    static int increment(int x, int by) {
        return x + by;
    }

    static int twice(int x, int by) {
        return increment(increment(x, by), by);
    }

    static int calls(int n) {
        int x = 0;
        for (int i = 0; i < n; i++) {
            x = increment(x, i);
            x = increment(i, x);
        }
        return x;
    }

    static int deepCalls(int n) {
        int x = 0;
        for (int i = 0; i < n; i++) {
            x = twice(x, i);
            x = twice(i, x);
        }
        return x;
    }

    static int virtualCalls(int n) {
        int x = 0;
        for (int i = 0; i < n; i++) {
            x = bases[i & 3].step(x);
            x = bases[i + 1 & 3].step(x);
        }
        return x;
    }

    static int interfaceCalls(int n) {
        int x = 0;
        for (int i = 0; i < n; i++) {
            x += shapes[i & 3].area(i);
            x += shapes[i + 1 & 3].area(x);
        }
        return x;
    }

    static int objects(int n) {
        int x = 0;
        for (int i = 0; i < n; i++) {
            Node2 made = new Node2(i);
            kept[i & 3] = made;
            x += made.value;
        }
        return x;
    }

    static int arrays(int n) {
        int x = 0;
        for (int i = 0; i < n; i++) {
            int[] made = new int[8];
            kept[i & 3] = made;
            x += made.length;
        }
        return x;
    }

    static int casts(int n) {
        Object[] from = shapes;
        int x = 0;
        for (int i = 0; i < n; i++) {
            Object at = from[i & 2];
            if (!(at instanceof Square)) {
                return 0;
            }
            Square square = (Square) at;
            x = square == null ? x : x + i;
        }
        return x;
    }

    static int monitors(int n) {
        int x = 0;
        for (int i = 0; i < n; i++) {
            synchronized (kept) {
                x += i;
            }
        }
        return x;
    }

    static int exceptions(int n) {
        int x = 0;
        for (int i = 0; i < n; i++) {
            try {
                throw THROWN;
            } catch (RuntimeException e) {
                x += i;
            }
        }
        return x;
    }

    static int scramble(int n) {
        int[] data = numbers;
        int x = 17;
        for (int i = 0; i < n; i++) {
            int at = x & MASK;
            int other = increment(at, i) & MASK;
            int kept = data[at];
            data[at] = data[other];
            data[other] = kept;
            if (kept == Integer.MIN_VALUE) {
                return 0;
            }
            x = x * 31 + kept;
        }
        return x;
    }
}
