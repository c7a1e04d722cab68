import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.channels.Selector;
import java.util.Timer;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.zip.Deflater;

/**
 * A server as seen by its threads: pools, a selector, an acceptor and a timer that have nothing to do, one
 * thread that works, mostly in a native library, and two that wait for what may never come. Says
 * {@code ready} when all are there, and ends with its input.
 */
public final class Server {
    static volatile int sink;

    public static void main(String[] arguments) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(4, task -> daemon("idle-pool", task));
        for (int task = 0; task < 4; task++) {
            pool.submit(() -> sink++).get();
        }
        Executors.newScheduledThreadPool(1, task -> daemon("idle-scheduled", task))
                .schedule(() -> sink++, 1, java.util.concurrent.TimeUnit.DAYS);
        ForkJoinPool.commonPool().submit(() -> sink++).get();
        new Timer("idle-timer", true).schedule(new java.util.TimerTask() {
            @Override
            public void run() {
                sink++;
            }
        }, 100_000_000);
        start("idle-acceptor", () -> {
            try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
                socket.accept();
            }
        });
        start("idle-selector", () -> {
            try (Selector selector = Selector.open()) {
                selector.select();
            }
        });
        start("idle-consumer", () -> new LinkedBlockingQueue<String>().take());
        start("stuck-latch", Server::stuck);
        start("stuck-socket", Server::reading);
        start("worker", Server::work);
        Thread.sleep(300);
        System.out.println("ready");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        while (in.readLine() != null) {
        }
        System.exit(0);
    }

    interface Body {
        void run() throws Exception;
    }

    static Thread daemon(String name, Runnable task) {
        Thread thread = new Thread(task, name);
        thread.setDaemon(true);
        return thread;
    }

    static void start(String name, Body body) {
        daemon(name, () -> {
            try {
                body.run();
            } catch (Exception e) {
                e.printStackTrace();
            }
        }).start();
    }

    static void stuck() throws Exception {
        new CountDownLatch(1).await();
    }

    static void reading() throws Exception {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
                var client = new java.net.Socket(socket.getInetAddress(), socket.getLocalPort())) {
            client.getInputStream().read();
        }
    }

    static void work() {
        byte[] text = new byte[1 << 16];
        byte[] small = new byte[1 << 16];
        for (int at = 0; at < text.length; at++) {
            text[at] = (byte) (at * at >> 3);
        }
        while (true) {
            Deflater deflater = new Deflater(9);
            deflater.setInput(text);
            deflater.finish();
            sink += deflater.deflate(small);
            deflater.end();
        }
    }
}
