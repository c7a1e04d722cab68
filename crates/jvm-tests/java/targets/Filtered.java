/**
 * Threads under a filter of system calls that the rest of the program is not under. Waits for a
 * line, starts them one after the other, each busy for a moment, and prints {@code done}.
 */
public final class Filtered {
    private static volatile double sink;

    private Filtered() {
    }

    public static void main(String[] arguments) throws Exception {
        System.out.println("ready");
        while (System.in.read() >= 0) {
            Thread filtered = new Thread(Filtered::startOthers, "filtered");
            filtered.start();
            filtered.join();
            System.out.println("done");
        }
    }

    private static void startOthers() {
        Natives.filter();
        for (int i = 0; i < 20; i++) {
            Thread other = new Thread(Filtered::burn, "below the filter " + i);
            other.start();
            try {
                other.join();
            } catch (InterruptedException e) {
                return;
            }
        }
    }

    private static void burn() {
        long end = System.nanoTime() + 50_000_000;
        while (System.nanoTime() < end) {
            sink = Math.sqrt(sink + 1);
        }
    }
}
