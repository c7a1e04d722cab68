package bench;

import java.io.IOException;
import java.util.HashMap;
import java.util.Map;

/**
 * A heap of so many entries: a map of numbers, records, texts and a few larger arrays, five objects
 * each. It says so and waits for the end of its input.
 */
public final class HeapFill {
    private record Order(String text, byte[] document) {
    }

    private static final Map<Integer, Order> ORDERS = new HashMap<>();

    private HeapFill() {
    }

    public static void main(String[] arguments) throws IOException {
        int entries = Integer.parseInt(arguments[0]);
        byte[] shared = new byte[64];
        for (int i = 0; i < entries; i++) {
            byte[] document = i % 4 == 0 ? new byte[400] : shared;
            ORDERS.put(i, new Order("order " + i, document));
        }
        System.gc();
        System.out.println("ready " + ORDERS.size());
        while (System.in.read() >= 0) {
            Thread.onSpinWait();
        }
    }
}
