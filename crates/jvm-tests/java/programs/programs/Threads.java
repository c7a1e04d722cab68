package programs;

/** Threads that do the same amount of work each, whoever is first. */
public final class Threads {
    private Threads() {}

    public static long run() throws InterruptedException {
        Worker[] workers = new Worker[4];
        for (int i = 0; i < workers.length; i++) {
            workers[i] = new Worker(i);
            workers[i].start();
        }
        long sum = 0;
        for (Worker worker : workers) {
            worker.join();
            sum = sum * 31 + worker.result;
        }
        return sum;
    }

    static final class Worker extends Thread {
        private final int number;
        private long result;

        Worker(int number) {
            super("worker " + number);
            this.number = number;
        }

        @Override
        public void run() {
            for (int i = 0; i < 300 + number * 50; i++) {
                result += step(i);
            }
        }

        private long step(int i) {
            return (long) i * i % (number + 7);
        }
    }
}
