import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.Arrays;

/** A fixed amount of work, full of calls: whatever is left in the code of the program makes it dearer. */
final class ChaosUnit {
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    private static volatile long sink;

    private ChaosUnit() {
    }

    static void warmUp() {
        for (int i = 0; i < 30; i++) {
            measure();
        }
    }

    /** Nanoseconds of processor time: the least of some, since others only ever add to it. */
    static long measure() {
        long least = Long.MAX_VALUE;
        for (int i = 0; i < 15; i++) {
            long before = THREADS.getCurrentThreadCpuTime();
            long sum = fib(20) + sorted(2000);
            least = Math.min(least, THREADS.getCurrentThreadCpuTime() - before);
            Chaos.expect("a unit of work", 6765 + 1_999_000, sum);
            sink += sum;
        }
        return least;
    }

    private static long fib(int n) {
        return n < 2 ? n : fib(n - 1) + fib(n - 2);
    }

    private static long sorted(int size) {
        Integer[] numbers = new Integer[size];
        for (int i = 0; i < size; i++) {
            numbers[i] = (i * 7919) % size;
        }
        Arrays.sort(numbers, (a, b) -> Integer.compare(b, a));
        long sum = 0;
        for (int i = 0; i < size; i++) {
            Chaos.expect("an order", size - 1 - i, numbers[i]);
            sum += numbers[i];
        }
        return sum;
    }
}
