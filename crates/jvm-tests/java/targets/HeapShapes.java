// A heap that a test knows: so many objects of each class, with these values, held by static
// fields, a local variable and each other. Then it does what it is told, and ends with its input.

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;

public final class HeapShapes {
    static final int LEAVES = 3000;

    static class Base {
        long base = 77;
    }

    static final class Leaf extends Base {
        final int number;
        final String name;
        final boolean odd;
        final byte tiny;
        final short small;
        final char letter;
        final float third;
        final double half;

        Leaf(int number) {
            this.number = number;
            this.name = "leaf " + number;
            this.odd = number % 2 == 1;
            this.tiny = (byte) number;
            this.small = (short) -number;
            this.letter = (char) ('a' + number % 26);
            this.third = number / 3f;
            this.half = number / 2.0;
        }
    }

    static final class Node {
        Node next;
        Leaf leaf;
    }

    /** The left one is always counted up first. */
    static final class Pair {
        final Counter left = new Counter();
        final Counter right = new Counter();
        /** A new list each time, as long as its own number says. */
        volatile Chain chain = new Chain(0);
    }

    static final class Counter {
        volatile long value;
    }

    static final class Chain {
        final int length;
        final List<Integer> items = new ArrayList<>();

        Chain(int length) {
            this.length = length;
            for (int i = 0; i < length; i++) {
                items.add(i + 1000);
            }
        }
    }

    static final class OnlyOnAStack {
        final int[] numbers = {3, 1, 4, 1, 5};
    }

    static Object[] leaves = new Object[LEAVES];
    static Node first;
    static final Map<Integer, Leaf> MAP = new HashMap<>();
    static int[][] matrix = {{1, 2}, {3, 4, 5}};
    static long answer = 42;
    static final Pair PAIR = new Pair();
    /** Made of parts, so that the text is in no class file. */
    static String secret = String.join("-", "pass", "word", "of", "nobody", Integer.toString(4711));
    static char[] secretLetters = secret.toUpperCase().toCharArray();
    static volatile boolean over;

    private HeapShapes() {
    }

    public static void main(String[] args) throws IOException, InterruptedException {
        for (int i = 0; i < LEAVES; i++) {
            Leaf leaf = new Leaf(i);
            leaves[i] = leaf;
            Node node = new Node();
            node.leaf = leaf;
            node.next = first;
            first = node;
            if (i < 500) {
                MAP.put(i, leaf);
            }
        }
        CountDownLatch held = new CountDownLatch(1);
        Thread holder = new Thread(() -> hold(held), "the-holder");
        holder.setDaemon(true);
        holder.start();
        held.await();
        System.gc();
        System.out.println("ready");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            switch (line.strip()) {
                case "work" -> System.out.println("work: " + work());
                case "mutate" -> {
                    for (int i = 0; i < 2; i++) {
                        Thread churn = new Thread(HeapShapes::churn, "churn-" + i);
                        churn.setDaemon(true);
                        churn.start();
                    }
                    Thread mutator = new Thread(HeapShapes::mutate, "mutator");
                    mutator.setDaemon(true);
                    mutator.start();
                    System.out.println("mutate: begun");
                }
                case "count" -> System.out.println("count: " + PAIR.right.value);
                default -> System.out.println("unknown: " + line);
            }
        }
        over = true;
    }

    private static void hold(CountDownLatch held) {
        OnlyOnAStack local = new OnlyOnAStack();
        held.countDown();
        while (!over) {
            try {
                Thread.sleep(100);
            } catch (InterruptedException e) {
                return;
            }
        }
        System.out.println(local.numbers.length);
    }

    /** One thread counts, and replaces a list by a longer or a shorter one. */
    private static void mutate() {
        for (long i = 1; !over; i++) {
            PAIR.left.value = i;
            PAIR.right.value = i;
            if (i % 64 == 0) {
                PAIR.chain = new Chain((int) (i / 64 % 50));
            }
        }
    }

    /** Garbage, and objects that grow old, for the collector to move. */
    private static void churn() {
        List<byte[]> some = new ArrayList<>();
        for (int i = 0; !over; i++) {
            some.add(new byte[i % 2000]);
            if (some.size() > 5000) {
                some = new ArrayList<>(some.subList(4000, 5000));
            }
        }
    }

    private static long work() {
        long sum = 0;
        for (Object leaf : leaves) {
            sum += ((Leaf) leaf).number;
        }
        return sum + MAP.size();
    }
}
