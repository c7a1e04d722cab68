import java.io.InputStream;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.channels.Pipe;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

/**
 * Virtual threads that count their own calls. Waits for a line, does what the arguments say, prints
 * {@code count CLASS.METHOD N} and {@code done}. Arguments: {@code short N} (N threads that come and go, some
 * hundreds at a time), {@code long N ROUNDS} (threads that wait in the middle of calls, and go on wherever
 * they wake up), {@code pinned N} (threads that hold on to their carriers while they wait). Reaches
 * virtual threads by reflection, because it is compiled for Java 17.
 */
public final class Crowd {
    private static final AtomicLong VISITS = new AtomicLong();
    private static final AtomicLong WAITS = new AtomicLong();
    private static final AtomicLong HELD = new AtomicLong();
    private static final AtomicLong MOVES = new AtomicLong();
    public static final AtomicLong INITS = new AtomicLong();

    private Crowd() {
    }

    public static void main(String[] arguments) throws Exception {
        System.out.println("ready");
        if (System.getProperty("wait") != null) {
            System.in.read();
        }
        int threads = Integer.parseInt(arguments[1]);
        switch (arguments[0]) {
            case "short":
                crowd(threads, 300, i -> visit(i % 4));
                break;
            case "long":
                int rounds = Integer.parseInt(arguments[2]);
                crowd(threads, threads, i -> stay(3, rounds));
                break;
            default:
                crowd(threads, threads, i -> held(i, new Object()));
                break;
        }
        System.out.println("moves " + MOVES);
        System.out.println("count Crowd.visit " + VISITS);
        System.out.println("count Crowd.pause " + WAITS);
        System.out.println("count Crowd.held " + HELD);
        System.out.println("count Crowd$Slow.begin " + INITS);
        System.out.println("done");
        if (System.getProperty("wait") != null) {
            while (System.in.read() >= 0) {
            }
        }
    }

    private interface Task {
        void run(int number) throws Exception;
    }

    private static void crowd(int threads, int atATime, Task task) throws Exception {
        Method start = Thread.class.getMethod("startVirtualThread", Runnable.class);
        Semaphore room = new Semaphore(atATime);
        for (int i = 0; i < threads; i++) {
            int number = i;
            room.acquire();
            start.invoke(null, (Runnable) () -> {
                try {
                    task.run(number);
                } catch (Exception e) {
                    throw new IllegalStateException(e);
                } finally {
                    room.release();
                }
            });
        }
        room.acquire(atATime);
    }

    public static int visit(int depth) {
        VISITS.incrementAndGet();
        return depth == 0 ? 0 : 1 + visit(depth - 1);
    }

    /** Waits at the bottom of some calls. */
    static void stay(int depth, int rounds) throws Exception {
        visit(depth);
        if (depth > 0) {
            stay(depth - 1, rounds);
            return;
        }
        Pipe pipe = Pipe.open();
        try (Pipe.SourceChannel source = pipe.source(); Pipe.SinkChannel sink = pipe.sink()) {
            for (int i = 0; i < rounds; i++) {
                String before = carrier();
                pause(i, source, sink);
                if (!carrier().equals(before)) {
                    MOVES.incrementAndGet();
                }
                visit(2);
            }
        }
    }

    static void pause(int kind, Pipe.SourceChannel source, Pipe.SinkChannel sink) throws Exception {
        WAITS.incrementAndGet();
        switch (kind % 4) {
            case 0:
                Thread.sleep(1);
                break;
            case 1:
                LockSupport.parkNanos(200_000);
                break;
            case 2:
                Thread.yield();
                break;
            default:
                sink.write(ByteBuffer.wrap(new byte[8]));
                ByteBuffer buffer = ByteBuffer.allocate(8);
                while (buffer.hasRemaining()) {
                    source.read(buffer);
                }
                break;
        }
    }

    private static String carrier() {
        String text = Thread.currentThread().toString();
        return text.substring(text.indexOf('@') + 1);
    }

    /** Waits with a monitor, and in a static initialiser, which a native frame of the JVM calls. */
    static void held(int number, Object monitor) throws Exception {
        HELD.incrementAndGet();
        synchronized (monitor) {
            visit(3);
            Thread.sleep(1);
            visit(1);
        }
        if (number % 10 == 0) {
            Class.forName("Crowd$Slow", true, new Loader());
        }
        visit(0);
    }

    public static final class Slow {
        static {
            begin();
        }

        static void begin() {
            Crowd.INITS.incrementAndGet();
            try {
                Thread.sleep(1);
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
            visit(1);
        }
    }

    /** Has a class Slow of its own. */
    private static final class Loader extends ClassLoader {
        Loader() {
            super(Crowd.class.getClassLoader());
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            if (!name.equals("Crowd$Slow")) {
                return super.loadClass(name, resolve);
            }
            try (InputStream in = getResourceAsStream("Crowd$Slow.class")) {
                byte[] bytes = in.readAllBytes();
                return defineClass(name, bytes, 0, bytes.length);
            } catch (java.io.IOException e) {
                throw new ClassNotFoundException(name, e);
            }
        }
    }
}
