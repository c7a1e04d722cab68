/** Calls native methods of the JDK, some of which throw. */
public final class NativeCalls {
    private NativeCalls() {}

    static long time() {
        return System.nanoTime();
    }

    static boolean copy(Object from) {
        try {
            System.arraycopy(from, 0, new int[1], 0, 1);
            return true;
        } catch (NullPointerException expected) {
            return false;
        }
    }

    public static void main(String[] args) {
        long sum = 0;
        int copied = 0;
        for (int i = 0; i < 100; i++) {
            sum += time();
            copied += copy(i % 4 == 0 ? null : new int[1]) ? 1 : 0;
        }
        System.out.println("copied " + copied + (sum == 0 ? " at once" : ""));
    }
}
