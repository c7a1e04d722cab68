// Objects whose sizes and holders are known: a list, a map, thread locals, variables, a soft
// reference, an inner class, loaders, and something that two hold.
import java.io.IOException;
import java.io.InputStream;
import java.lang.ref.SoftReference;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;

public final class Shapes {
    static final class Link {
        Link next;
        long value;
    }

    static final class Outer {
        final byte[] bytes = new byte[50_000];

        final class Inner {
            int number = 7;
        }
    }

    static final class Shared {
        final byte[] bytes = new byte[70_000];
    }

    enum State { OPEN, CLOSED }

    static final class Order {
        final State state;
        final int number;
        final String name;

        Order(int number) {
            this.number = number;
            state = number % 10 == 0 ? State.OPEN : State.CLOSED;
            name = "order-" + number;
        }
    }

    /** Loaded once by each loader, with a static field of its own. */
    public static final class Plugin {
        static final byte[] BYTES = new byte[60_000];
    }

    static final class PluginLoader extends ClassLoader {
        PluginLoader() {
            super(Shapes.class.getClassLoader());
        }

        Object plugin() throws Exception {
            String name = "Shapes$Plugin";
            try (InputStream in = getParent().getResourceAsStream(name + ".class")) {
                byte[] code = in.readAllBytes();
                Class<?> made = defineClass(name, code, 0, code.length);
                return made.getDeclaredConstructor().newInstance();
            }
        }
    }

    static Link list;
    static final Map<Integer, byte[]> MAP = new HashMap<>();
    static final ThreadLocal<byte[]> NOTES = new ThreadLocal<>();
    static SoftReference<byte[]> soft;
    static Object inner;
    static final List<Object> PLUGINS = new ArrayList<>();
    static final Object[] ONE = new Object[1];
    static final Object[] OTHER = new Object[1];
    static final List<Order> ORDERS = new ArrayList<>();

    static void hold(CountDownLatch ready, Object lock) {
        byte[] variable = new byte[300_000];
        ready.countDown();
        synchronized (lock) {
            variable[0]++;
        }
    }

    public static void main(String[] words) throws Exception {
        for (int i = 0; i < 1000; i++) {
            Link link = new Link();
            link.next = list;
            list = link;
        }
        for (int i = 0; i < 123; i++) {
            MAP.put(100_000 + i, new byte[1000]);
        }
        soft = new SoftReference<>(new byte[200_000]);
        inner = new Outer().new Inner();
        PLUGINS.add(new PluginLoader().plugin());
        PLUGINS.add(new PluginLoader().plugin());
        Shared shared = new Shared();
        ONE[0] = shared;
        OTHER[0] = shared;
        shared = null;
        for (int i = 0; i < 100; i++) {
            ORDERS.add(new Order(i));
        }
        Object lock = new Object();
        CountDownLatch ready = new CountDownLatch(3);
        synchronized (lock) {
            for (int i = 0; i < 2; i++) {
                start("pooled-" + i, () -> {
                    NOTES.set(new byte[100_000]);
                    ready.countDown();
                    synchronized (lock) {
                        NOTES.remove();
                    }
                });
            }
            start("holder", () -> hold(ready, lock));
            ready.await();
            System.out.println("ready");
            waitForEnd();
        }
    }

    private static void start(String name, Runnable run) {
        Thread thread = new Thread(run, name);
        thread.setDaemon(true);
        thread.start();
    }

    private static void waitForEnd() throws IOException {
        while (System.in.read() >= 0) {
            // Until whoever started this has enough.
        }
    }
}
