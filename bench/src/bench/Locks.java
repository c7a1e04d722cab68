package bench;

/** Threads that take turns with two locks, one of them wanted by all of them all the time. */
final class Locks implements Workload {
    private static final int THREADS = 4;

    private final int rounds;
    private final Object busy = new Object();
    private final Object[] quiet = new Object[THREADS];
    private long shared;

    Locks(String[] args) {
        rounds = Integer.parseInt(args[0]);
        for (int i = 0; i < THREADS; i++) {
            quiet[i] = new Object();
        }
    }

    @Override
    public long iterate() throws InterruptedException {
        shared = 0;
        Thread[] threads = new Thread[THREADS];
        for (int i = 0; i < THREADS; i++) {
            int mine = i;
            threads[i] = new Thread(() -> work(mine), "locks-" + i);
            threads[i].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        return shared;
    }

    private void work(int mine) {
        for (int i = 0; i < rounds; i++) {
            alone(mine);
            if (i % 16 == 0) {
                together();
            }
        }
    }

    private void alone(int mine) {
        synchronized (quiet[mine]) {
            Thread.onSpinWait();
        }
    }

    private void together() {
        synchronized (busy) {
            shared++;
        }
    }
}
