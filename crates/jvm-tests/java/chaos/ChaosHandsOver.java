import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.LongStream;

/** What threads hand each other: by queues, executors, futures, parallel streams, wait and notify. */
final class ChaosHandsOver implements Chaos.Work {
    private int ball;

    @Override
    public void round(long number) throws Exception {
        BlockingQueue<Integer> queue = new ArrayBlockingQueue<>(4);
        Thread producer = new Thread(() -> {
            try {
                for (int i = 1; i <= 200; i++) {
                    queue.put(i);
                }
            } catch (InterruptedException e) {
                Chaos.wrong("a producer is interrupted");
            }
        }, "producer");
        producer.start();
        for (int i = 1; i <= 200; i++) {
            Chaos.expect("the next of a queue", i, queue.take());
        }
        producer.join();
        executors();
        Chaos.expect("a parallel sum", 500_500, LongStream.rangeClosed(1, 1_000).parallel().sum());
        pingPong();
    }

    private static void executors() throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(3);
        try {
            List<Future<Integer>> futures = new ArrayList<>();
            for (int i = 0; i < 40; i++) {
                int mine = i;
                futures.add(pool.submit(() -> mine * mine));
            }
            for (int i = 0; i < futures.size(); i++) {
                Chaos.expect("a task", (long) i * i, futures.get(i).get());
            }
            CompletableFuture<Integer> chain = CompletableFuture.supplyAsync(() -> 3, pool)
                    .thenApplyAsync(value -> value + 4, pool)
                    .thenCombine(CompletableFuture.supplyAsync(() -> 5, pool), (a, b) -> a * b);
            Chaos.expect("a chain", 35, chain.get());
        } finally {
            pool.shutdown();
        }
    }

    private void pingPong() throws InterruptedException {
        ball = 0;
        Thread other = new Thread(() -> play(1), "other player");
        other.start();
        play(0);
        other.join();
        Chaos.expect("throws of a ball", 100, ball);
    }

    private void play(int parity) {
        for (int i = 0; i < 50; i++) {
            synchronized (this) {
                try {
                    while (ball % 2 != parity) {
                        wait();
                    }
                } catch (InterruptedException e) {
                    Chaos.wrong("a player is interrupted");
                }
                ball++;
                notifyAll();
            }
        }
    }
}
