import java.util.concurrent.CountDownLatch;

/**
 * A thread that never returns from methods which it entered before anybody changes their class: {@link #compiled}, which is
 * compiled by then, below it {@link #loop}, which calls {@link #step} for ever. Ends with its input.
 */
public final class Lasting {
    private static volatile long sink;
    private static final CountDownLatch LASTS = new CountDownLatch(1);

    private Lasting() {
    }

    public static void main(String[] arguments) throws Exception {
        Thread thread = new Thread(Lasting::run, "lasting");
        thread.setDaemon(true);
        thread.start();
        LASTS.await();
        System.out.println("ready");
        while (System.in.read() >= 0) {
            // What is said is of no interest.
        }
    }

    private static void run() {
        warmUp();
        compiled(new Loop());
    }

    private static void warmUp() {
        // Work of three kinds, so that no compiler makes one method of the caller and its work.
        Work[] kinds = {() -> sink++, () -> sink--, () -> sink = 0};
        for (int i = 0; i < 100_000; i++) {
            compiled(kinds[i % kinds.length]);
        }
    }

    private static void compiled(Work work) {
        work.go();
        sink++;
    }

    private static void loop() {
        LASTS.countDown();
        while (true) {
            sink += step(100_000);
        }
    }

    private static long step(int rounds) {
        long sum = sink;
        for (int i = 0; i < rounds; i++) {
            sum += i * 31L ^ sum >>> 3;
        }
        return sum;
    }

    interface Work {
        void go();
    }

    static final class Loop implements Work {
        @Override
        public void go() {
            loop();
        }
    }
}
