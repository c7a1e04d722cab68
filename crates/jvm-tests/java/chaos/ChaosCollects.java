import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Garbage of all sizes, what outlives it, and memory that is used up. */
final class ChaosCollects implements Chaos.Work {
    private static volatile long sink;
    private final List<byte[]> kept = new ArrayList<>();
    private final List<WeakReference<byte[]>> weak = new ArrayList<>();

    @Override
    public void round(long number) {
        for (int i = 0; i < 500; i++) {
            byte[] garbage = new byte[(i * 37) % 20_000];
            sink += garbage.length;
        }
        byte[] one = new byte[10_000];
        Arrays.fill(one, (byte) number);
        kept.add(one);
        weak.add(new WeakReference<>(one));
        for (int i = 0; i < kept.size(); i += 17) {
            byte[] old = kept.get(i);
            Chaos.expect("an old object", old[0], old[9_999]);
            Chaos.expect("a weak reference to what is held", 1, weak.get(i).get() == old ? 1 : 0);
        }
        if (kept.size() > 300) {
            kept.subList(0, 150).clear();
            weak.subList(0, 150).clear();
        }
        if (number % 64 == 63) {
            useUp();
        }
    }

    /** Leaves some room for the others, and asks for more than that. */
    private static void useUp() {
        Runtime runtime = Runtime.getRuntime();
        List<byte[]> all = new ArrayList<>();
        long room = runtime.maxMemory() / 3;
        while (runtime.maxMemory() - runtime.totalMemory() + runtime.freeMemory() > room) {
            all.add(new byte[100_000]);
            if (all.size() > 20_000) {
                break;
            }
        }
        int caught = 0;
        for (int i = 0; i < 3; i++) {
            try {
                // More than all of it in two pieces, of which one may find a place.
                long[][] pieces = new long[3][];
                for (int piece = 0; piece < pieces.length; piece++) {
                    pieces[piece] = new long[(int) Math.min(runtime.maxMemory() / 16, 1 << 28)];
                }
                sink += pieces[2].length;
            } catch (OutOfMemoryError expected) {
                caught++;
            }
        }
        sink += all.size();
        Chaos.expect("uses of all memory", 3, caught);
    }
}
