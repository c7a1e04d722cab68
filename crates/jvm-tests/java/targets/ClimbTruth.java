/**
 * Callers of known shares and costs, which count themselves: in every round left calls a five times,
 * right calls a twice and b three times; each calls leaf, b for three times as much work. Every 10 ms it
 * says what time it is and how often each edge was taken: "edges NANOS leaf-a leaf-b a-left a-right
 * b-right". With a second word it does all that on a hundred virtual threads, which give way to each
 * other after every round.
 */
public final class ClimbTruth {
    private static final int LEAF_A = 0;
    private static final int LEAF_B = 1;
    private static final int A_LEFT = 2;
    private static final int A_RIGHT = 3;
    private static final int B_RIGHT = 4;

    private static volatile boolean goesOn = true;

    public static void main(String[] args) throws Exception {
        int work = args.length > 0 ? Integer.parseInt(args[0]) : 20_000;
        boolean virtual = args.length > 1;
        Worker[] workers = new Worker[virtual ? 100 : 2];
        for (int i = 0; i < workers.length; i++) {
            workers[i] = new Worker(work, virtual);
            workers[i].setDaemon(true);
            if (virtual) {
                Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, workers[i]);
            } else {
                workers[i].start();
            }
        }
        Thread said = new Thread(() -> say(workers));
        said.setDaemon(true);
        said.start();
        System.out.println("ready");
        while (System.in.read() >= 0) {}
        goesOn = false;
    }

    private static void say(Worker[] workers) {
        while (goesOn) {
            // All counts lie between those before and after the time that is told.
            StringBuilder line = new StringBuilder("edges ").append(System.nanoTime());
            for (int edge = 0; edge <= B_RIGHT; edge++) {
                long sum = 0;
                for (Worker worker : workers) {
                    sum += worker.edges.get(edge);
                }
                line.append(' ').append(sum);
            }
            System.out.println(line);
            try {
                Thread.sleep(10);
            } catch (InterruptedException e) {
                return;
            }
        }
    }

    static final class Worker extends Thread {
        final java.util.concurrent.atomic.AtomicLongArray edges =
            new java.util.concurrent.atomic.AtomicLongArray(B_RIGHT + 1);
        private final int work;
        private final boolean givesWay;
        private long sum;

        Worker(int work, boolean givesWay) {
            this.work = work;
            this.givesWay = givesWay;
        }

        @Override
        public void run() {
            while (goesOn) {
                round();
                if (givesWay) {
                    Thread.yield();
                }
            }
        }

        private void round() {
            left();
            right();
        }

        private void left() {
            for (int i = 0; i < 5; i++) {
                took(A_LEFT);
                a();
            }
        }

        private void right() {
            for (int i = 0; i < 3; i++) {
                if (i < 2) {
                    took(A_RIGHT);
                    a();
                }
                took(B_RIGHT);
                b();
            }
        }

        private void a() {
            took(LEAF_A);
            leaf(work);
        }

        private void b() {
            took(LEAF_B);
            leaf(3 * work);
        }

        private void took(int edge) {
            edges.setOpaque(edge, edges.getOpaque(edge) + 1);
        }

        private void leaf(int rounds) {
            long x = sum;
            for (int i = 0; i < rounds; i++) {
                x = x * 6364136223846793005L + 1442695040888963407L;
            }
            sum = x;
        }
    }
}
