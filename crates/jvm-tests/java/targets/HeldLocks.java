import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * One thread loads classes while it holds a lock that another one waits for, which holds a lock that
 * a third one waits for. With {@code initialise}, it loads them in a static initialiser, and other
 * threads need that class: itself, by a subclass, by reflection; one may be a virtual thread. With
 * {@code link}, it loads them while a class is linked that another thread needs. With {@code boot}, it has
 * the JVM load them, and another thread wants each of them, too. With {@code doubt}, it loads them in a static
 * initialiser while another thread is in one, and a third waits by reflection. Says how long each of them took.
 */
public final class HeldLocks {
    private static final int CLASSES = 400;
    private static final int HUGE_CLASSES = 5;
    private static final int HUGE_METHODS = 20_000;
    private static final Object LOCK = new Object();
    private static final Object SECOND = new Object();
    private static volatile boolean locked;
    private static volatile boolean secondLocked;
    private static volatile boolean initialising;
    private static volatile boolean linking;
    private static volatile boolean doubtful;
    private static volatile boolean doubtIsOver;
    private static volatile boolean asSlow;
    private static final AtomicInteger LOADING = new AtomicInteger(-1);
    private static final AtomicInteger WANTED = new AtomicInteger(-1);
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
            if (line.equals("link")) {
                Runnable user = (Runnable) new Linker().loadClass("HeldLocks$User").getConstructor().newInstance();
                Thread needy = new Thread(() -> took("needsWhatIsLinked", () -> needsWhatIsLinked(user)));
                needy.start();
                took("links", () -> links(user));
                needy.join();
            } else if (line.equals("boot")) {
                List<String> names = makeClasses(Path.of(args[0]));
                Thread second = new Thread(() -> took("wantsWhatIsLoaded", () -> wantsWhatIsLoaded(names)));
                second.start();
                took("hasClassesLoaded", () -> hasClassesLoaded(names));
                second.join();
            } else if (line.equals("doubt")) {
                Thread other = new Thread(HeldLocks::initialisesToo);
                Thread needy = new Thread(() -> took("needsInDoubt", HeldLocks::needsInDoubt));
                other.start();
                needy.start();
                took("initialisesInDoubt", HeldLocks::initialisesInDoubt);
                doubtIsOver = true;
                needy.join();
                other.join();
            } else if (line.equals("initialise")) {
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

    private static void links(Runnable user) {
        user.run();
    }

    private static void needsWhatIsLinked(Runnable user) {
        while (!linking) {
            Thread.onSpinWait();
        }
        user.run();
    }

    /** Classes of so many methods that there is time to wait for each of them. */
    private static List<String> makeClasses(Path directory) throws IOException {
        List<String> names = new ArrayList<>();
        for (int i = 0; i < HUGE_CLASSES; i++) {
            String name = "Huge" + i;
            names.add(name);
            Files.write(directory.resolve(name + ".class"), hugeClass(name));
        }
        return names;
    }

    /** A class with static methods that each do nothing, for a while. */
    private static byte[] hugeClass(String name) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(bytes);
        out.writeInt(0xcafebabe);
        out.writeInt(52);
        out.writeShort(7 + HUGE_METHODS);
        for (String text : List.of(name, "java/lang/Object", "()V", "Code")) {
            out.writeByte(1);
            out.writeUTF(text);
        }
        for (int text = 1; text <= 2; text++) {
            out.writeByte(7);
            out.writeShort(text);
        }
        for (int i = 0; i < HUGE_METHODS; i++) {
            out.writeByte(1);
            out.writeUTF("m" + i);
        }
        out.writeShort(0x0021);
        out.writeShort(5);
        out.writeShort(6);
        out.writeShort(0);
        out.writeShort(0);
        out.writeShort(HUGE_METHODS);
        byte[] nops = new byte[100];
        for (int i = 0; i < HUGE_METHODS; i++) {
            out.writeShort(0x0009);
            out.writeShort(7 + i);
            out.writeShort(3);
            out.writeShort(1);
            out.writeShort(4);
            out.writeInt(12 + nops.length + 1);
            out.writeShort(0);
            out.writeShort(0);
            out.writeInt(nops.length + 1);
            out.write(nops);
            out.writeByte(0xb1);
            out.writeShort(0);
            out.writeShort(0);
        }
        out.writeShort(0);
        return bytes.toByteArray();
    }

    private static void hasClassesLoaded(List<String> names) {
        for (int i = 0; i < names.size(); i++) {
            while (WANTED.get() < i) {
                Thread.onSpinWait();
            }
            LOADING.set(i);
            load(names.get(i));
        }
    }

    private static void wantsWhatIsLoaded(List<String> names) {
        for (int i = 0; i < names.size(); i++) {
            WANTED.set(i);
            while (LOADING.get() < i) {
                Thread.onSpinWait();
            }
            load(names.get(i));
        }
    }

    private static void load(String name) {
        try {
            Class.forName(name, false, null);
        } catch (ClassNotFoundException missing) {
            throw new AssertionError(missing);
        }
    }

    private static void initialisesInDoubt() {
        SlowInDoubt.touch();
    }

    private static void initialisesToo() {
        AsSlow.touch();
    }

    private static void needsInDoubt() {
        while (!doubtful) {
            Thread.onSpinWait();
        }
        try {
            Class.forName("HeldLocks$SlowInDoubt");
        } catch (ClassNotFoundException missing) {
            throw new AssertionError(missing);
        }
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

    private static final class SlowInDoubt {
        static {
            while (!asSlow) {
                Thread.onSpinWait();
            }
            doubtful = true;
            loadClasses();
        }

        static void touch() {}
    }

    private static final class AsSlow {
        static {
            asSlow = true;
            while (!doubtIsOver) {
                Thread.onSpinWait();
            }
        }

        static void touch() {}
    }

    /** Uses a class that is linked when it is first used. */
    public static final class User implements Runnable {
        @Override
        public void run() {
            Linked.touch();
        }
    }

    static final class Linked {
        /** That this is sound can be told only with both classes at hand. */
        static Result widen(Special special) {
            return special;
        }

        static void touch() {}
    }

    static class Result {}

    static final class Special extends Result {}

    /** Has its own version of these four classes, and takes its time to load one that linking asks for. */
    private static final class Linker extends ClassLoader {
        private static final Set<String> OWN =
                Set.of("HeldLocks$User", "HeldLocks$Linked", "HeldLocks$Result", "HeldLocks$Special");

        @Override
        public Class<?> loadClass(String name) throws ClassNotFoundException {
            if (!OWN.contains(name)) {
                return super.loadClass(name);
            }
            Class<?> known = findLoadedClass(name);
            if (known != null) {
                return known;
            }
            if (name.endsWith("Special")) {
                linking = true;
                loadClasses();
            }
            try (InputStream file = HeldLocks.class.getResourceAsStream(name + ".class")) {
                byte[] bytes = file.readAllBytes();
                return defineClass(name, bytes, 0, bytes.length);
            } catch (IOException unreadable) {
                throw new ClassNotFoundException(name, unreadable);
            }
        }
    }

    /** A new one each time, so that the class is a new one, too. */
    private static final class Loader extends ClassLoader {
        void define(byte[] bytes) {
            defineClass("Everything", bytes, 0, bytes.length);
        }
    }
}
