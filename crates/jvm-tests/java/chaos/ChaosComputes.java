import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.zip.CRC32;

/** Results that are known, of code that keeps much in registers, uses intrinsics, and loses assumptions. */
final class ChaosComputes implements Chaos.Work {
    private interface Shape {
        int area(int side);
    }

    private static final Shape[] SHAPES = {
        side -> side * side, side -> side * side / 2, side -> 3 * side * side, side -> side,
    };

    @Override
    public void round(long number) {
        numbers();
        copies();
        maps();
        // Calls that had one target get more of them, round by round.
        int kinds = (int) (number % SHAPES.length) + 1;
        long areas = 0;
        long expected = 0;
        for (int i = 0; i < 5_000; i++) {
            int kind = i % kinds;
            areas += SHAPES[kind].area(10);
            expected += kind == 0 ? 100 : kind == 1 ? 50 : kind == 2 ? 300 : 10;
        }
        Chaos.expect("areas", expected, areas);
    }

    private static void numbers() {
        long sum = 0;
        double series = 0;
        for (int i = 1; i <= 20_000; i++) {
            sum += (long) i * i;
            series += 1.0 / ((double) i * i);
        }
        Chaos.expect("squares", 20_000L * 20_001 * 40_001 / 6, sum);
        Chaos.expect("a series", 1, Math.abs(series - 1.6449340668482264) < 1e-4 ? 1 : 0);
        Chaos.expect("bits", 32, Long.bitCount(0x5555555555555555L));
        Chaos.expect("a product", 1, Math.multiplyHigh(1L << 62, 4));
    }

    private static void copies() {
        byte[] bytes = new byte[10_000];
        for (int i = 0; i < bytes.length; i++) {
            bytes[i] = (byte) (i * 31);
        }
        byte[] copy = new byte[bytes.length];
        System.arraycopy(bytes, 1, copy, 0, bytes.length - 1);
        Chaos.expect("a copy", -1, Arrays.mismatch(bytes, 1, bytes.length, copy, 0, copy.length - 1));
        CRC32 whole = new CRC32();
        whole.update(bytes);
        CRC32 slow = new CRC32();
        for (byte one : bytes) {
            slow.update(one);
        }
        Chaos.expect("a checksum", slow.getValue(), whole.getValue());
    }

    private static void maps() {
        Map<String, Integer> lengths = new HashMap<>();
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < 300; i++) {
            text.append("item ").append(i).append(';');
            lengths.merge(Integer.toString(i % 50), 1, Integer::sum);
        }
        Chaos.expect("a text", 2590, text.length());
        Chaos.expect("keys", 50, lengths.size());
        lengths.values().forEach(count -> Chaos.expect("values", 6, count));
        Chaos.expect("a hash", 300 * 299 / 2, text.toString().lines().mapToLong(ChaosComputes::numbersIn).sum());
    }

    private static long numbersIn(String text) {
        return Arrays.stream(text.split(";")).mapToLong(item -> Long.parseLong(item.substring(5))).sum();
    }
}
