package bench;

/** The dearest case for a profiler of calls: a method that does nothing but call itself. */
final class Fib implements Workload {
    private final int n;

    Fib(String[] args) {
        n = Integer.parseInt(args[0]);
    }

    @Override
    public long iterate() {
        return fib(n);
    }

    private static long fib(int n) {
        return n < 2 ? n : fib(n - 1) + fib(n - 2);
    }
}
