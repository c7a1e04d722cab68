/** Exceptions of all kinds, those that begin as a signal of the processor among them, and their stacks. */
final class ChaosThrows implements Chaos.Work {
    private static final class Node {
        Node next;
        int value = 5;
    }

    private static volatile long sink;

    @Override
    public void round(long number) {
        int caught = 0;
        int left = 0;
        for (int i = 0; i < 300; i++) {
            try {
                thrower(i % 30);
            } catch (IllegalStateException e) {
                caught++;
                StackTraceElement[] stack = e.getStackTrace();
                // The JVM leaves stacks out where exceptions are many; those that are told are right.
                if (stack.length > 0) {
                    Chaos.expect("who threw", 1, stack[0].getMethodName().equals("thrower") ? 1 : 0);
                    Chaos.expect("who caught", 1, stack[i % 30 + 1].getMethodName().equals("round") ? 1 : 0);
                }
            } finally {
                left++;
            }
            try {
                Node node = i % 2 == 0 ? new Node() : null;
                sink += node.value;
                sink += node.next.value;
            } catch (NullPointerException e) {
                caught++;
            }
            try {
                sink += 10 / (i % 2 == 0 ? 0 : 1);
            } catch (ArithmeticException e) {
                caught++;
            }
            try {
                int[] three = new int[3];
                sink += three[i % 6];
            } catch (ArrayIndexOutOfBoundsException e) {
                caught++;
            }
            try {
                Object object = i % 2 == 0 ? "text" : Long.valueOf(7);
                sink += (Long) object;
            } catch (ClassCastException e) {
                caught++;
            }
            Chaos.expect("finally", i % 3, throughFinally(i % 3));
        }
        Chaos.expect("exceptions", 300 + 300 + 150 + 150 + 150, caught);
        Chaos.expect("left", 300, left);
    }

    private static void thrower(int depth) {
        if (depth == 0) {
            throw new IllegalStateException("as planned");
        }
        thrower(depth - 1);
    }

    /** The last word is that of the outer block. */
    @SuppressWarnings("finally")
    private static int throughFinally(int value) {
        int result = -1;
        try {
            try {
                if (value > 0) {
                    throw new IllegalArgumentException(Integer.toString(value));
                }
                return value;
            } finally {
                if (value == 2) {
                    throw new UnsupportedOperationException();
                }
            }
        } catch (IllegalArgumentException e) {
            result = Integer.parseInt(e.getMessage());
        } catch (UnsupportedOperationException e) {
            result = 2;
        }
        return result;
    }
}
