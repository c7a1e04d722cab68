// Works that a sampler has it hard with, each in a loop on a thread of its own, each checking its own
// results. Answers `progress` with the rounds of each; ends with its input. A wrong result ends it at once.

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import java.util.zip.CRC32;

public final class Soak {
    private static volatile long sink;

    private interface Round {
        void run(int number) throws Exception;
    }

    private Soak() {
    }

    public static void main(String[] args) throws IOException {
        Map<String, Round> works = new LinkedHashMap<>();
        works.put("checks", Soak::checks);
        works.put("churn", Soak::churn);
        works.put("loads", Soak::loads);
        works.put("deoptimises", Soak::deoptimises);
        works.put("throws", Soak::throwsAndCatches);
        works.put("overflows", Soak::overflows);
        works.put("processes", Soak::processes);
        works.put("collects", Soak::collects);
        works.put("locks", Soak::locks);
        works.put("waits", Soak::waits);
        Map<String, AtomicLong> rounds = new LinkedHashMap<>();
        for (Map.Entry<String, Round> work : works.entrySet()) {
            AtomicLong count = new AtomicLong();
            rounds.put(work.getKey(), count);
            Thread thread = new Thread(() -> forEver(work.getKey(), work.getValue(), count), work.getKey());
            thread.setDaemon(true);
            thread.start();
        }
        System.out.println("ready");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            System.out.println(line + ": " + rounds);
        }
        System.out.println("done");
    }

    private static void forEver(String name, Round round, AtomicLong count) {
        try {
            for (int number = 0; ; number++) {
                round.run(number);
                count.incrementAndGet();
            }
        } catch (Throwable e) {
            wrong(name + ": " + e);
        }
    }

    private static void wrong(String what) {
        System.out.println("WRONG " + what);
        System.out.flush();
        Runtime.getRuntime().halt(3);
    }

    private static void expect(String what, long expected, long found) {
        if (expected != found) {
            wrong(what + ": " + found + " instead of " + expected);
        }
    }

    // Results that are known, of code that keeps much in registers.

    private static void checks(int number) {
        long sum = 0;
        double series = 0;
        for (int i = 1; i <= 200_000; i++) {
            sum = sum * 31 + (i ^ sum >>> 7);
            series += 1.0 / ((double) i * i);
        }
        expect("integers", 3814653103585522549L, sum);
        expect("floats", 1, Math.abs(series - 1.644929066860) < 1e-9 ? 1 : 0);
        int[] numbers = new int[20_000];
        for (int i = 0; i < numbers.length; i++) {
            numbers[i] = i * 1_103_515_245 + 12_345;
        }
        long before = Arrays.stream(numbers).asLongStream().sum();
        Arrays.sort(numbers);
        for (int i = 1; i < numbers.length; i++) {
            if (numbers[i - 1] > numbers[i]) {
                wrong("order at " + i);
            }
        }
        expect("sorting", before, Arrays.stream(numbers).asLongStream().sum());
        byte[] bytes = new byte[100_000];
        for (int i = 0; i < bytes.length; i++) {
            bytes[i] = (byte) i;
        }
        byte[] copy = new byte[bytes.length];
        System.arraycopy(bytes, 1, copy, 0, bytes.length - 1);
        expect("copies", -1, Arrays.mismatch(bytes, 1, bytes.length, copy, 0, copy.length - 1));
        CRC32 crc = new CRC32();
        crc.update(bytes);
        CRC32 slow = new CRC32();
        for (byte one : bytes) {
            slow.update(one);
        }
        expect("checksum", slow.getValue(), crc.getValue());
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < 1000; i++) {
            text.append("item ").append(i).append(';');
        }
        expect("text", 8890, text.length());
    }

    // Threads that come and go.

    private static void churn(int number) throws InterruptedException {
        long[] results = new long[6];
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < results.length; i++) {
            int mine = i;
            Thread thread = new Thread(() -> {
                long sum = 0;
                for (int n = 0; n < 100_000; n++) {
                    sum += n;
                }
                results[mine] = sum;
            }, "churned");
            thread.start();
            threads.add(thread);
        }
        for (Thread thread : threads) {
            thread.join();
        }
        for (long result : results) {
            expect("a thread's result", 4_999_950_000L, result);
        }
    }

    // Classes that come and go.

    public interface Work {
        long work(int rounds);
    }

    public static final class Loaded implements Work {
        @Override
        public long work(int rounds) {
            long sum = 0;
            for (int i = 0; i < rounds; i++) {
                sum += i ^ 5;
            }
            return sum;
        }
    }

    private static Work load() throws Exception {
        byte[] bytes;
        try (var in = Soak.class.getResourceAsStream("Soak$Loaded.class")) {
            bytes = in.readAllBytes();
        }
        ClassLoader loader = new ClassLoader(Soak.class.getClassLoader()) {
            @Override
            protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
                return name.endsWith("Loaded") ? defineClass(name, bytes, 0, bytes.length) : super.loadClass(name, resolve);
            }
        };
        return (Work) loader.loadClass("Soak$Loaded").getDeclaredConstructor().newInstance();
    }

    private static void loads(int number) throws Exception {
        Work work = load();
        for (int i = 0; i < 20; i++) {
            expect("a loaded class's result", 49_995_000L, work.work(10_000));
        }
        if (number % 50 == 49) {
            System.gc();
        }
    }

    // Compiled code whose assumptions fail: a call that had one target gets more.

    private static long through(Work work, Object value) {
        long sum = work.work(500);
        return value instanceof String text ? sum + text.length() : sum;
    }

    private static void deoptimises(int number) throws Exception {
        Work first = rounds -> rounds;
        for (int i = 0; i < 20_000; i++) {
            expect("one target", 503, through(first, "abc"));
        }
        Work second = load();
        expect("another target", second.work(500), through(second, 7));
        expect("a third", 1, through(rounds -> 1, null));
    }

    // Exceptions of all kinds, those that begin as a signal of the processor among them.

    private static final class Node {
        Node next;
        int value = 5;
    }

    private static void throwsAndCatches(int number) {
        int caught = 0;
        for (int i = 0; i < 2_000; i++) {
            try {
                thrower(i % 30);
            } catch (IllegalStateException e) {
                caught++;
            }
            try {
                Node node = i % 2 == 0 ? new Node() : null;
                sink += node.value;
                sink += node.next.value;
            } catch (NullPointerException e) {
                caught++;
            }
            try {
                sink += 10 / (i % 2 == 0 ? 0 : 1);
            } catch (ArithmeticException e) {
                caught++;
            }
        }
        expect("exceptions", 5_000, caught);
    }

    private static void thrower(int depth) {
        if (depth == 0) {
            throw new IllegalStateException("as planned");
        }
        thrower(depth - 1);
    }

    // Stacks that are used up.

    private static int depth(int so) {
        return depth(so + 1) + 1;
    }

    private static void overflows(int number) throws InterruptedException {
        int[] caught = new int[1];
        Thread thread = new Thread(null, () -> {
            for (int i = 0; i < 5; i++) {
                try {
                    depth(0);
                } catch (StackOverflowError e) {
                    caught[0]++;
                }
            }
        }, "overflowing", 512 << 10);
        thread.start();
        thread.join();
        expect("overflows", 5, caught[0]);
        Thread.sleep(5);
    }

    // Processes, whose signals must not be ours.

    private static void processes(int number) throws Exception {
        Process process = new ProcessBuilder("sh", "-c", "kill -0 $$; exit 7").start();
        expect("a child's status", 7, process.waitFor());
    }

    // Garbage of all sizes, and something that outlives it.

    private static final List<byte[]> KEPT = new ArrayList<>();

    private static void collects(int number) {
        for (int i = 0; i < 2_000; i++) {
            byte[] garbage = new byte[(i * 37) % 20_000];
            sink += garbage.length;
        }
        byte[] kept = new byte[10_000];
        Arrays.fill(kept, (byte) number);
        KEPT.add(kept);
        byte[] oldest = KEPT.get(0);
        expect("an old object", oldest[0], oldest[9_999]);
        if (KEPT.size() > 500) {
            KEPT.subList(0, 250).clear();
        }
        if (number % 20 == 19) {
            System.gc();
        }
    }

    // Monitors and locks that several threads want.

    private static long guarded;
    private static long locked;

    private static void locks(int number) throws InterruptedException {
        Object monitor = new Object();
        ReentrantLock lock = new ReentrantLock();
        guarded = 0;
        locked = 0;
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            Thread thread = new Thread(() -> {
                for (int n = 0; n < 2_000; n++) {
                    synchronized (monitor) {
                        guarded++;
                    }
                    lock.lock();
                    try {
                        locked++;
                    } finally {
                        lock.unlock();
                    }
                }
            }, "locking");
            threads.add(thread);
        }
        threads.forEach(Thread::start);
        for (Thread thread : threads) {
            thread.join();
        }
        expect("a guarded count", 6_000, guarded);
        expect("a locked count", 6_000, locked);
    }

    // Waits that a signal must not cut short for the program.

    private static void waits(int number) throws InterruptedException {
        long began = System.nanoTime();
        Thread.sleep(2);
        expect("a sleep's length", 1, System.nanoTime() - began >= 1_900_000 ? 1 : 0);
        LockSupport.parkNanos(100_000);
        Object monitor = new Object();
        synchronized (monitor) {
            monitor.wait(1);
        }
        expect("interruptions", 0, Thread.interrupted() ? 1 : 0);
    }
}
