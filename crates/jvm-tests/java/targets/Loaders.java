// Loads the same class again and again, each time by a new class loader, calls it and lets go of both. Does
// what it is told on standard input, one line at a time, and ends with it.

import java.io.BufferedReader;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.util.function.IntUnaryOperator;

public final class Loaders {
    private static volatile long sink;

    private Loaders() {
    }

    public static void main(String[] args) throws Exception {
        byte[] bytes;
        try (InputStream in = Loaders.class.getResourceAsStream("Loaders$Plugin.class")) {
            bytes = in.readAllBytes();
        }
        System.out.println("ready");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.strip().split(" ");
            switch (words[0]) {
                case "load" -> {
                    for (int i = 0; i < Integer.parseInt(words[1]); i++) {
                        load(bytes, i);
                    }
                    System.out.println(line + ": done");
                }
                case "gc" -> {
                    System.gc();
                    System.out.println("gc: done");
                }
                case "busy" -> {
                    for (int i = 0; i < Integer.parseInt(words[1]); i++) {
                        Thread thread = new Thread(Loaders::keepBusy, "busy " + i);
                        thread.setDaemon(true);
                        thread.start();
                    }
                    System.out.println(line + ": done");
                }
                case "work" -> System.out.println("work: " + Steady.outer(10));
                default -> System.out.println("unknown: " + line);
            }
        }
    }

    /** A class that was never loaded before, with the loader that it comes from. */
    private static void load(byte[] bytes, int number) throws Exception {
        Class<?> plugin = new Own(bytes).loadClass("Loaders$Plugin");
        IntUnaryOperator made = (IntUnaryOperator) plugin.getDeclaredConstructor().newInstance();
        int result = made.applyAsInt(number);
        if (result != 10 * number + 45) {
            throw new IllegalStateException("WRONG: " + result);
        }
    }

    private static void keepBusy() {
        while (true) {
            sink += Steady.outer(3);
        }
    }

    /** What stays. */
    static final class Steady {
        private Steady() {
        }

        static long outer(int depth) {
            return depth == 0 ? 1 : inner(depth) + other(depth);
        }

        static long inner(int depth) {
            return outer(depth - 1);
        }

        static long other(int depth) {
            return depth;
        }
    }

    /** What comes and goes. */
    public static final class Plugin implements IntUnaryOperator {
        public Plugin() {
        }

        @Override
        public int applyAsInt(int n) {
            return zero(n) + one(n) + two(n) + three(n) + four(n) + five(n) + six(n) + seven(n) + eight(n) + nine(n);
        }

        private int zero(int n) {
            return n;
        }

        private int one(int n) {
            return n + 1;
        }

        private int two(int n) {
            return n + 2;
        }

        private int three(int n) {
            return n + 3;
        }

        private int four(int n) {
            return n + 4;
        }

        private int five(int n) {
            return n + 5;
        }

        private int six(int n) {
            return n + 6;
        }

        private int seven(int n) {
            return n + 7;
        }

        private int eight(int n) {
            return n + 8;
        }

        private int nine(int n) {
            return n + 9;
        }
    }

    private static final class Own extends ClassLoader {
        private final byte[] bytes;

        Own(byte[] bytes) {
            this.bytes = bytes;
        }

        @Override
        public Class<?> loadClass(String name) throws ClassNotFoundException {
            if (!name.equals("Loaders$Plugin")) {
                return super.loadClass(name);
            }
            return defineClass(name, bytes, 0, bytes.length);
        }
    }
}
