package programs;

/** Monitors that are entered, left early, and left by exceptions. */
public final class Monitors {
    private final Object lock = new Object();
    private int count;

    private Monitors() {}

    public static int run() {
        Monitors monitors = new Monitors();
        int result = 0;
        for (int i = 0; i < 50; i++) {
            result += monitors.early(i);
            monitors.whole(i);
            try {
                monitors.failing(i);
            } catch (IllegalArgumentException e) {
                result ^= i;
            }
        }
        return result + monitors.count;
    }

    private synchronized void whole(int n) {
        if (n > 0 && n % 3 == 0) {
            whole(n / 3);
        }
        count += n;
    }

    private int early(int n) {
        synchronized (lock) {
            if (n % 2 == 0) {
                return n;
            }
            synchronized (this) {
                count++;
            }
        }
        return -n;
    }

    private synchronized void failing(int n) {
        synchronized (lock) {
            count += 2;
            if (n % 4 == 1) {
                throw new IllegalArgumentException();
            }
            count--;
        }
    }
}
