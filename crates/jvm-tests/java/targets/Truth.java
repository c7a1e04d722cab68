import java.io.BufferedReader;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.IntStream;

/**
 * Calls methods in every way that could lose a profiler its place, and counts them itself. Each
 * method counts its own entry as its first act. Waits for a line, works, prints
 * {@code count CLASS.METHOD N} for all of them and {@code done}; again for each further line.
 */
public final class Truth {
    static final Map<String, AtomicLong> COUNTS = new ConcurrentHashMap<>();

    public static void count(String name) {
        COUNTS.computeIfAbsent("Work." + name, key -> new AtomicLong()).incrementAndGet();
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        int rounds = arguments.length > 0 ? Integer.parseInt(arguments[0]) : Integer.MAX_VALUE;
        for (int round = 0; round < rounds; round++) {
            if (arguments.length == 0 && in.readLine() == null) {
                return;
            }
            new Work().everything(round);
            new TreeMap<>(COUNTS).forEach((name, n) -> System.out.println("count " + name + " " + n));
            System.out.println("done");
        }
    }
}

/** The code whose calls are counted. */
class Work {
    static void count(String name) {
        Truth.count(name);
    }

    void everything(int round) throws Exception {
        count("everything");
        recursion(300 + round);
        mutualA(100);
        for (int i = 0; i < 50; i++) {
            unwinding(i % 7);
            throughTheJdk(i);
            constructors(i);
            locked(i);
            finallyEverywhere(i);
            wide(i);
        }
        handles();
        lambdas();
        initialisers();
        overflow();
        loaders();
        threads();
    }

    // ---- recursion ----

    int recursion(int depth) {
        count("recursion");
        return depth == 0 ? 0 : 1 + recursion(depth - 1);
    }

    int mutualA(int depth) {
        count("mutualA");
        return depth == 0 ? 0 : mutualB(depth - 1) + (depth % 3 == 0 ? mutualB(0) : 0);
    }

    int mutualB(int depth) {
        count("mutualB");
        return depth == 0 ? 0 : mutualA(depth - 1);
    }

    // ---- exceptions ----

    void unwinding(int depth) {
        count("unwinding");
        try {
            fall(depth);
        } catch (IllegalStateException e) {
            afterTheFall();
        }
    }

    void fall(int depth) {
        count("fall");
        if (depth == 0) {
            throw new IllegalStateException("bottom");
        }
        try {
            fall(depth - 1);
        } catch (IllegalArgumentException never) {
            afterTheFall();
        }
    }

    void afterTheFall() {
        count("afterTheFall");
    }

    /** Caught by frames that are not woven: reflection, futures, streams. */
    void throughTheJdk(int i) throws Exception {
        count("throughTheJdk");
        try {
            Work.class.getDeclaredMethod("thrower", int.class).invoke(this, i);
        } catch (ReflectiveOperationException e) {
            afterTheFall();
        }
        Callable<Integer> task = () -> thrower(i);
        FutureTask<Integer> future = new FutureTask<>(task);
        future.run();
        CompletableFuture.supplyAsync(() -> thrower(i), Runnable::run).handle((v, e) -> fine(1)).get();
        IntStream.range(0, 3).map(x -> fine(x)).sum();
        afterTheFall();
    }

    int thrower(int i) {
        count("thrower");
        if (i % 2 == 0) {
            throw new IllegalStateException("even");
        }
        return fine(i);
    }

    int fine(int i) {
        count("fine");
        return i;
    }

    static class Base {
        Base(int i) {
            Work.count("Base.<init>");
            if (i % 3 == 0) {
                throw new IllegalArgumentException("base");
            }
        }
    }

    static class Derived extends Base {
        Derived(int i) {
            super(argument(i));
            Work.count("Derived.<init> past super");
            if (i % 5 == 0) {
                throw new IllegalArgumentException("derived");
            }
        }

        static int argument(int i) {
            Work.count("Derived.argument");
            if (i % 7 == 0) {
                throw new IllegalArgumentException("argument");
            }
            return i;
        }
    }

    /** Constructors that fail before, in and after super(), caught here and by reflection. */
    void constructors(int i) throws Exception {
        count("constructors");
        try {
            new Derived(i);
        } catch (IllegalArgumentException e) {
            afterTheFall();
        }
        fine(i);
        try {
            Derived.class.getDeclaredConstructor(int.class).newInstance(i);
        } catch (ReflectiveOperationException e) {
            afterTheFall();
        }
        fine(i);
    }

    synchronized void locked(int i) {
        count("locked");
        try {
            lockedToo(i);
        } catch (IllegalStateException e) {
            afterTheFall();
        }
    }

    synchronized void lockedToo(int i) {
        count("lockedToo");
        synchronized (Truth.COUNTS) {
            thrower(i);
        }
    }

    @SuppressWarnings("finally")
    int finallyEverywhere(int i) {
        count("finallyEverywhere");
        for (int k = 0; k < 3; k++) {
            try {
                if (k == 1) {
                    continue;
                }
                thrower(i + k);
            } catch (IllegalStateException e) {
                if (k == 2) {
                    break;
                }
            } finally {
                fine(k);
            }
        }
        try {
            return thrower(i);
        } finally {
            return fine(i);
        }
    }

    // ---- one caller, many callees ----

    void wide(int i) {
        count("wide");
        for (int k = 0; k < 40; k++) {
            one(k);
        }
    }

    void one(int k) {
        switch (k % 20) {
            case 0: w0(); break; case 1: w1(); break; case 2: w2(); break; case 3: w3(); break;
            case 4: w4(); break; case 5: w5(); break; case 6: w6(); break; case 7: w7(); break;
            case 8: w8(); break; case 9: w9(); break; case 10: w10(); break; case 11: w11(); break;
            case 12: w12(); break; case 13: w13(); break; case 14: w14(); break; case 15: w15(); break;
            case 16: w16(); break; case 17: w17(); break; case 18: w18(); break; default: w19(); break;
        }
    }

    void w0() { count("w0"); } void w1() { count("w1"); } void w2() { count("w2"); }
    void w3() { count("w3"); } void w4() { count("w4"); } void w5() { count("w5"); }
    void w6() { count("w6"); } void w7() { count("w7"); } void w8() { count("w8"); }
    void w9() { count("w9"); } void w10() { count("w10"); } void w11() { count("w11"); }
    void w12() { count("w12"); } void w13() { count("w13"); } void w14() { count("w14"); }
    void w15() { count("w15"); } void w16() { count("w16"); } void w17() { count("w17"); }
    void w18() { count("w18"); } void w19() { count("w19"); }

    // ---- other ways to call ----

    void handles() throws Exception {
        count("handles");
        try {
            MethodHandle handle = MethodHandles.lookup()
                .findVirtual(Work.class, "thrower", MethodType.methodType(int.class, int.class));
            for (int i = 0; i < 30; i++) {
                try {
                    int ignored = (int) handle.invokeExact(this, i);
                } catch (IllegalStateException e) {
                    afterTheFall();
                }
            }
        } catch (Throwable t) {
            throw new Exception(t);
        }
    }

    void lambdas() {
        count("lambdas");
        Runnable reference = this::afterTheFall;
        Runnable lambda = () -> fine(1);
        for (int i = 0; i < 20; i++) {
            reference.run();
            lambda.run();
        }
    }

    static class Fails {
        static final int VALUE = compute();

        static int compute() {
            Work.count("Fails.compute");
            throw new IllegalStateException("in a static initialiser");
        }
    }

    void initialisers() {
        count("initialisers");
        for (int i = 0; i < 3; i++) {
            try {
                fine(Fails.VALUE);
            } catch (LinkageError e) {
                afterTheFall();
            }
        }
    }

    // ---- stack overflow: what is counted below it is not compared ----

    void overflow() {
        count("overflow");
        try {
            bottomless(0);
        } catch (StackOverflowError e) {
            afterTheFall();
        }
        fine(1);
    }

    static int bottomless(int depth) {
        return bottomless(depth + 1) + 1;
    }

    // ---- classes of one name in several loaders ----

    public static class Plugin implements Callable<Object> {
        public Object call() {
            Truth.count("Plugin.call");
            return helper(3);
        }

        int helper(int n) {
            Truth.count("Plugin.helper");
            return n == 0 ? 0 : helper(n - 1);
        }
    }

    static class Loader extends ClassLoader {
        Loader() {
            super(Work.class.getClassLoader());
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            if (!name.equals("Work$Plugin")) {
                return super.loadClass(name, resolve);
            }
            try (InputStream in = getResourceAsStream("Work$Plugin.class")) {
                byte[] bytes = in.readAllBytes();
                return defineClass(name, bytes, 0, bytes.length);
            } catch (java.io.IOException e) {
                throw new ClassNotFoundException(name, e);
            }
        }
    }

    @SuppressWarnings("unchecked")
    void loaders() throws Exception {
        count("loaders");
        for (int i = 0; i < 5; i++) {
            Class<?> type = new Loader().loadClass("Work$Plugin", false);
            ((Callable<Object>) type.getDeclaredConstructor().newInstance()).call();
        }
        System.gc();
    }

    // ---- threads ----

    void threads() throws Exception {
        count("threads");
        Thread[] all = new Thread[16];
        for (int i = 0; i < all.length; i++) {
            all[i] = new Thread(this::task, "truth-" + i);
            all[i].start();
        }
        for (Thread thread : all) {
            thread.join();
        }
    }

    void task() {
        count("task");
        for (int i = 0; i < 200; i++) {
            unwinding(i % 5);
            locked(i);
        }
    }
}
