import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;

/**
 * Has threads wait in every way at known places: in {@code Object.wait}, for a monitor, parked, asleep,
 * in a system call; and one that works. Says {@code ready} when all are there, and ends with its input.
 */
public final class Waits {
    static final Object MONITOR = new Object();
    static final Object CONDITION = new Object();
    static final CountDownLatch HELD = new CountDownLatch(1);
    static volatile long sink;

    public static void main(String[] arguments) throws Exception {
        start("t-waiting", Waits::waiting);
        start("t-holder", Waits::holder);
        HELD.await();
        start("t-blocked", Waits::blocked);
        start("t-parked", Waits::parked);
        start("t-sleeping", Waits::sleeping);
        start("t-system-call", Waits::accepting);
        start("t-running", Waits::running);
        // Until they are where they wait; what a test needs is looked at again anyway.
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

    static void start(String name, Body body) {
        Thread thread = new Thread(() -> {
            try {
                body.run();
            } catch (Exception e) {
                e.printStackTrace();
            }
        }, name);
        thread.setDaemon(true);
        thread.start();
    }

    static void waiting() throws Exception {
        synchronized (CONDITION) {
            while (true) {
                CONDITION.wait();
            }
        }
    }

    static void holder() throws Exception {
        synchronized (MONITOR) {
            HELD.countDown();
            while (true) {
                Thread.sleep(100_000);
            }
        }
    }

    static void blocked() {
        synchronized (MONITOR) {
            sink++;
        }
    }

    static void parked() {
        while (true) {
            LockSupport.park();
        }
    }

    static void sleeping() throws Exception {
        while (true) {
            Thread.sleep(100_000);
        }
    }

    static void accepting() throws Exception {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            socket.accept();
        }
    }

    static void running() {
        while (true) {
            sink = sink * 31 + 7;
        }
    }
}
