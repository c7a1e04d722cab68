// The plain target: does what it is told on standard input, one line at a time, and ends with it.
// Ending with its input means that it never outlives the test that started it.

import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;

public final class Idle {
    private static final List<FileInputStream> FILES = new ArrayList<>();
    /** Only a program that is told to write has the memory. */
    private static final class Written {
        static final byte[] BYTES = new byte[32 << 20];
    }

    private static volatile long sink;

    private Idle() {
    }

    /** A proxy, whose module is new and gets new exports; the answer, or what went wrong. */
    private static Object proxy() {
        try {
            Class<?>[] types = {Comparable.class};
            ClassLoader loader = Idle.class.getClassLoader();
            Object made = java.lang.reflect.Proxy.newProxyInstance(loader, types, (self, method, values) -> 7);
            @SuppressWarnings("unchecked")
            Comparable<Object> comparable = (Comparable<Object>) made;
            return comparable.compareTo("");
        } catch (Throwable e) {
            return e;
        }
    }

    public static void main(String[] args) throws IOException {
        System.out.println("ready pid=" + ProcessHandle.current().pid() + " args=" + String.join(" ", args));
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.strip().split(" ");
            switch (words[0]) {
                case "work" -> System.out.println("work: " + work());
                case "proxy" -> System.out.println("proxy: " + proxy());
                case "threads" -> System.out.println("threads: " + threads());
                case "gc" -> {
                    System.gc();
                    System.out.println("gc: done");
                }
                case "write" -> {
                    // The same memory every time.
                    Arrays.fill(Written.BYTES, (byte) 1);
                    System.out.println("write: done");
                }
                case "collections" -> System.out.println("collections: " + collections());
                case "files" -> System.out.println("files: opened " + useUpDescriptors());
                case "close" -> {
                    for (FileInputStream file : FILES) {
                        file.close();
                    }
                    FILES.clear();
                    System.out.println("close: done");
                }
                case "property" -> System.out.println(line + ": " + System.getProperty(words[1]));
                case "variable" -> System.out.println(line + ": " + System.getenv(words[1]));
                case "exit" -> System.exit(Integer.parseInt(words[1]));
                default -> System.out.println("unknown: " + line);
            }
        }
    }

    /** Something of everything: a thread, a class, allocation, a result that can be checked. */
    private static long work() {
        long[] result = new long[1];
        Thread thread = new Thread(() -> {
            for (int i = 0; i < 1000; i++) {
                result[0] += Integer.toString(i).length();
            }
        }, "worker");
        thread.start();
        try {
            thread.join();
        } catch (InterruptedException stop) {
            Thread.currentThread().interrupt();
        }
        sink += result[0];
        return result[0];
    }

    /** How often the JVM has collected, by its own account. */
    private static long collections() {
        return ManagementFactory.getGarbageCollectorMXBeans().stream()
            .mapToLong(GarbageCollectorMXBean::getCollectionCount).sum();
    }

    /** Opens files until the system gives no more. */
    private static int useUpDescriptors() {
        try {
            while (true) {
                FILES.add(new FileInputStream("/dev/null"));
            }
        } catch (IOException noMore) {
            return FILES.size();
        }
    }

    /** The names of all Java threads that the program can see. */
    private static String threads() {
        Set<String> names = new TreeSet<>();
        for (Thread thread : Thread.getAllStackTraces().keySet()) {
            names.add(thread.getName());
        }
        return String.join(",", names);
    }
}
