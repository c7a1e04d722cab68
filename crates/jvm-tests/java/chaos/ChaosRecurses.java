/** Deep recursion whose result is known, and stacks that are used up, of threads of all sizes. */
final class ChaosRecurses implements Chaos.Work {
    private int inside;

    @Override
    public void round(long number) throws InterruptedException {
        int[] caught = new int[1];
        Thread thread = new Thread(null, () -> {
            // Woven code needs more of the stack than plain code: this is a fifth of what fits.
            Chaos.expect("a deep sum", 500L * 501 / 2, sum(500));
            Chaos.expect("even", 1, isEven(400) ? 1 : 0);
            for (int i = 0; i < 3; i++) {
                try {
                    endless(0);
                } catch (StackOverflowError e) {
                    caught[0]++;
                }
                // It goes on as if nothing had been.
                Chaos.expect("a sum after an overflow", 300L * 301 / 2, sum(300));
            }
        }, "recursion", (1 + number % 4) * 512 << 10);
        thread.start();
        thread.join();
        Chaos.expect("overflows", 3, caught[0]);
        Thread.sleep(10);
    }

    private static long sum(int n) {
        return n == 0 ? 0 : n + sum(n - 1);
    }

    private static boolean isEven(int n) {
        return n == 0 || isOdd(n - 1);
    }

    private static boolean isOdd(int n) {
        return n != 0 && isEven(n - 1);
    }

    private int endless(int so) {
        inside = so;
        return endless(so + 1) + inside;
    }
}
