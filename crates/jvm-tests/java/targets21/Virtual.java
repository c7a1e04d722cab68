// A target full of virtual threads, some running, some parked. Needs Java 21.

import java.util.concurrent.atomic.AtomicLong;

public final class Virtual {
    private Virtual() {
    }

    public static void main(String[] args) throws Exception {
        int threads = Integer.parseInt(args[0]);
        AtomicLong rounds = new AtomicLong();
        for (int i = 0; i < threads; i++) {
            Thread.ofVirtual().name("virtual-" + i).start(() -> {
                while (true) {
                    rounds.incrementAndGet();
                    try {
                        Thread.sleep(5);
                    } catch (InterruptedException stop) {
                        return;
                    }
                }
            });
        }
        System.out.println("ready");
        for (int c = System.in.read(); c >= 0; c = System.in.read()) {
            if (c == '\n') {
                long before = rounds.get();
                while (rounds.get() < before + threads) {
                    Thread.sleep(1);
                }
                System.out.println("work: " + rounds.get());
            }
        }
    }
}
