import java.lang.reflect.Method;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.channels.Pipe;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * Uses much of java.base from many threads, virtual ones where there are any, and prints a sum that
 * is the same in every run. Arguments: the number of threads.
 */
public final class Everything {
    private static final Object MONITOR = new Object();
    private static final ReentrantLock LOCK = new ReentrantLock();
    private static final Semaphore FEW = new Semaphore(8);
    private static final Map<String, LongAdder> SUMS = new ConcurrentHashMap<>();
    private static final Pattern WORD = Pattern.compile("([a-z]+)-(\\d+)");

    private Everything() {
    }

    public static void main(String[] arguments) throws Exception {
        int tasks = Integer.parseInt(arguments[0]);
        BlockingQueue<String> results = new ArrayBlockingQueue<>(16);
        Starter starter = starter();
        Semaphore running = new Semaphore(200);
        starter.start(() -> {
            for (int i = 0; i < tasks; i++) {
                int number = i;
                running.acquireUninterruptibly();
                starter.start(() -> {
                    try {
                        results.put(task(number));
                    } catch (Exception e) {
                        throw new IllegalStateException(e);
                    } finally {
                        running.release();
                    }
                });
            }
        });
        long sum = 0;
        for (int i = 0; i < tasks; i++) {
            sum += results.take().hashCode();
        }
        System.out.println("sum " + sum + " " + new TreeMap<>(SUMS));
    }

    private interface Starter {
        void start(Runnable task);
    }

    private static Starter starter() throws Exception {
        try {
            Method start = Thread.class.getMethod("startVirtualThread", Runnable.class);
            return task -> {
                try {
                    start.invoke(null, task);
                } catch (ReflectiveOperationException e) {
                    throw new IllegalStateException(e);
                }
            };
        } catch (NoSuchMethodException before21) {
            return task -> new Thread(task).start();
        }
    }

    private static String task(int number) throws Exception {
        List<String> words = new ArrayList<>();
        for (int i = 0; i < 20; i++) {
            words.add("word-" + (number * 31 + i) % 97);
        }
        Map<String, Integer> counts = new HashMap<>();
        words.forEach(word -> counts.merge(word, 1, Integer::sum));
        String joined = counts.keySet().stream().sorted().collect(Collectors.joining(","));
        Thread.sleep(number % 3);
        BigInteger big = IntStream.rangeClosed(1, 20 + number % 10)
            .mapToObj(BigInteger::valueOf)
            .reduce(BigInteger.ONE, BigInteger::multiply);
        LOCK.lock();
        try {
            SUMS.computeIfAbsent("locked", key -> new LongAdder()).add(number);
            if (number % 50 == 0) {
                LockSupport.parkNanos(100_000);
            }
        } finally {
            LOCK.unlock();
        }
        synchronized (MONITOR) {
            SUMS.computeIfAbsent("monitor", key -> new LongAdder()).add(big.bitLength());
            if (number % 50 == 0) {
                Thread.sleep(1); // Pins its carrier on 21.
            }
        }
        String digest = CompletableFuture
            .supplyAsync(() -> digest(joined))
            .thenApply(text -> text.substring(0, 12))
            .get();
        String parsed = WORD.matcher(joined).replaceAll("$2$1");
        return String.format("%s %s %d %s %s", digest, big.toString(36), counts.size(),
            parsed, number % 10 == 0 ? throughAPipe(joined) : fails(number));
    }

    private static String digest(String text) {
        try {
            byte[] bytes = MessageDigest.getInstance("SHA-256").digest(text.getBytes(StandardCharsets.UTF_8));
            return new BigInteger(1, bytes).toString(16);
        } catch (java.security.NoSuchAlgorithmException e) {
            throw new IllegalStateException(e);
        }
    }

    private static String fails(int number) {
        try {
            return Integer.toString(Integer.parseInt("x" + number));
        } catch (NumberFormatException e) {
            return e.getMessage();
        }
    }

    private static String throughAPipe(String text) throws Exception {
        FEW.acquire();
        try {
            Pipe pipe = Pipe.open();
            try (Pipe.SourceChannel source = pipe.source(); Pipe.SinkChannel sink = pipe.sink()) {
                sink.write(ByteBuffer.wrap(text.getBytes(StandardCharsets.UTF_8)));
                ByteBuffer buffer = ByteBuffer.allocate(text.length());
                while (buffer.hasRemaining()) {
                    source.read(buffer);
                }
                return new String(buffer.array(), StandardCharsets.UTF_8);
            }
        } finally {
            FEW.release();
        }
    }
}
