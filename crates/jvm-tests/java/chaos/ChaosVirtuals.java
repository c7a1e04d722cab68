import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/** Virtual threads by the thousand, found by reflection: the rest compiles for Java 17. */
final class ChaosVirtuals implements Chaos.Work {
    private static final MethodHandle START = start();
    private final ReentrantLock lock = new ReentrantLock();
    private final AtomicLong sum = new AtomicLong();
    private long locked;
    private long guarded;

    private static MethodHandle start() {
        try {
            return MethodHandles.lookup().findStatic(
                    Thread.class, "startVirtualThread", MethodType.methodType(Thread.class, Runnable.class));
        } catch (ReflectiveOperationException older) {
            return null;
        }
    }

    static boolean isPossible() {
        return START != null;
    }

    @Override
    public void round(long number) throws Throwable {
        int size = number % 20 == 10 ? 1_000 : 100;
        sum.set(0);
        locked = 0;
        guarded = 0;
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < size; i++) {
            int mine = i;
            Runnable task = () -> live(mine);
            threads.add((Thread) START.invokeExact(task));
        }
        for (Thread thread : threads) {
            thread.join();
        }
        Chaos.expect("the sum of virtual threads", (long) size * (size - 1) / 2, sum.get());
        Chaos.expect("a lock of virtual threads", size, locked);
        Chaos.expect("a monitor of virtual threads", size, guarded);
    }

    private void live(int mine) {
        Chaos.expect("the depth of a virtual thread", 20, deeper(20, mine));
        lock.lock();
        try {
            locked++;
        } finally {
            lock.unlock();
        }
        synchronized (this) {
            guarded++;
        }
        sum.addAndGet(mine);
    }

    /** It leaves its carrier at the bottom, and comes back to another. */
    private int deeper(int depth, int mine) {
        if (depth == 0) {
            switch (mine % 3) {
                case 0 -> LockSupport.parkNanos(200_000);
                case 1 -> Thread.yield();
                default -> {
                    try {
                        Thread.sleep(1);
                    } catch (InterruptedException e) {
                        Chaos.wrong("a virtual thread is interrupted");
                    }
                }
            }
            return 0;
        }
        return 1 + deeper(depth - 1, mine);
    }
}
