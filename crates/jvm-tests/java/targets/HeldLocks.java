import java.io.BufferedReader;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;

/**
 * One thread loads classes while it holds a lock that another one waits for, which holds a lock that
 * a third one waits for. With {@code initialise}, it loads them in a static initialiser, and other
 * threads need that class: itself, by a subclass, by reflection; one may be a virtual thread. Says how
 * long each of them took.
 */
public final class HeldLocks {
    private static final int CLASSES = 400;
    private static final Object LOCK = new Object();
    private static final Object SECOND = new Object();
    private static volatile boolean locked;
    private static volatile boolean secondLocked;
    private static volatile boolean initialising;
    private static byte[] big;
    private static final List<Thread> NEEDY = new ArrayList<>();
    private static Thread waiter;
    private static Thread last;

    private HeldLocks() {}

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        try (InputStream file = HeldLocks.class.getResourceAsStream("Everything.class")) {
            big = file.readAllBytes();
        }
        System.out.println("ready");
        for (String line; (line = in.readLine()) != null;) {
            if (line.equals("initialise")) {
                NEEDY.add(new Thread(() -> took("needs", HeldLocks::needs)));
                NEEDY.add(new Thread(() -> took("needsByASubclass", HeldLocks::needsByASubclass)));
                NEEDY.add(new Thread(() -> took("needsByReflection", HeldLocks::needsByReflection)));
                addVirtual(() -> took("needsOnAVirtualThread", HeldLocks::needsOnAVirtualThread));
                took("initialises", HeldLocks::initialises);
                for (Thread needy : NEEDY) {
                    needy.join();
                }
            } else {
                waiter = new Thread(() -> took("waits", HeldLocks::waits), "waiter");
                last = new Thread(() -> took("waitsForTheWaiter", HeldLocks::waitsForTheWaiter), "last");
                took("holds", HeldLocks::holds);
                waiter.join();
                last.join();
            }
            System.out.println("done " + line);
        }
    }

    private static void took(String what, Runnable part) {
        long began = System.nanoTime();
        part.run();
        System.out.println("took " + what + " " + (System.nanoTime() - began));
    }

    private static void waits() {
        synchronized (SECOND) {
            last.start();
            await(last);
            synchronized (LOCK) {
                locked = true;
            }
        }
    }

    private static void waitsForTheWaiter() {
        synchronized (SECOND) {
            secondLocked = true;
        }
    }

    private static void holds() {
        synchronized (LOCK) {
            waiter.start();
            await(waiter);
            loadClasses();
        }
    }

    /** Until a thread waits for a lock. */
    private static void await(Thread thread) {
        while (thread.getState() != Thread.State.BLOCKED) {
            Thread.onSpinWait();
        }
    }

    private static void initialises() {
        Slow.touch();
    }

    private static void needs() {
        awaitInitialiser();
        Slow.touch();
    }

    private static void needsByASubclass() {
        awaitInitialiser();
        new SlowToo();
    }

    private static void needsByReflection() {
        awaitInitialiser();
        try {
            Class.forName("HeldLocks$Slow");
        } catch (ClassNotFoundException missing) {
            throw new AssertionError(missing);
        }
    }

    private static void needsOnAVirtualThread() {
        awaitInitialiser();
        Slow.touch();
    }

    private static void awaitInitialiser() {
        while (!initialising) {
            Thread.onSpinWait();
        }
    }

    /** Where there are virtual threads. */
    private static void addVirtual(Runnable part) throws ReflectiveOperationException {
        if (Runtime.version().feature() >= 21) {
            Object builder = Thread.class.getMethod("ofVirtual").invoke(null);
            Class<?> type = Class.forName("java.lang.Thread$Builder");
            NEEDY.add((Thread) type.getMethod("unstarted", Runnable.class).invoke(builder, part));
        }
    }

    private static void loadClasses() {
        for (int i = 0; i < CLASSES; i++) {
            new Loader().define(big);
        }
    }

    private static class Slow {
        static {
            NEEDY.forEach(Thread::start);
            initialising = true;
            loadClasses();
        }

        static void touch() {}
    }

    private static final class SlowToo extends Slow {}

    /** A new one each time, so that the class is a new one, too. */
    private static final class Loader extends ClassLoader {
        void define(byte[] bytes) {
            defineClass("Everything", bytes, 0, bytes.length);
        }
    }
}
