import java.io.BufferedReader;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;
import java.util.function.IntUnaryOperator;
import java.util.stream.IntStream;

/**
 * A root that reaches most of what it calls through the JDK, by objects that were made before anybody
 * looked. Each method counts itself. Waits for a line, works, prints {@code count CLASS.METHOD N} for all
 * and {@code done}; again for each further line. The word {@code before} calls everything outside the root.
 */
public final class Reach {
    static final Map<String, AtomicLong> COUNTS = new ConcurrentHashMap<>();

    public static void count(String name) {
        COUNTS.computeIfAbsent(name, key -> new AtomicLong()).incrementAndGet();
    }

    static final Comparator<Key> BY_NUMBER = (a, b) -> Orders.compare(a, b);
    static final Function<Integer, Integer> REFERENCE = Orders::twice;
    static final Rule RULE = x -> Orders.ruled(x);
    static final Map<Key, Integer> KEYS = new HashMap<>();
    static final Service SERVICE = (Service) Proxy.newProxyInstance(
        Reach.class.getClassLoader(), new Class<?>[] {Service.class}, new Handler());
    static final ThreadLocal<Integer> LOCAL = ThreadLocal.withInitial(() -> Orders.initial());
    static final Method REFLECTED;
    static final Constructor<Made> MAKER;
    /** Constant for the JVM's compilers, and not. */
    static final MethodHandle HANDLE;
    static MethodHandle virtualHandle;
    static MethodHandle makingHandle;

    static {
        try {
            MethodHandles.Lookup lookup = MethodHandles.lookup();
            MethodType type = MethodType.methodType(int.class, int.class);
            HANDLE = lookup.findStatic(Orders.class, "handled", type);
            virtualHandle = MethodHandles.filterReturnValue(
                lookup.findVirtual(Bound.class, "bound", type), MethodHandles.identity(int.class));
            makingHandle = lookup.findConstructor(
                Bound.class, MethodType.methodType(void.class, int.class));
            REFLECTED = Orders.class.getDeclaredMethod("reflected", int.class);
            MAKER = Made.class.getDeclaredConstructor(int.class);
        } catch (ReflectiveOperationException e) {
            throw new AssertionError(e);
        }
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            if (line.equals("before")) {
                // Everything is loaded, initialised and linked, and was called once.
                new Root().work(0);
                COUNTS.clear();
            } else {
                outside();
                new Root().root(3);
            }
            new TreeMap<>(COUNTS).forEach((name, n) -> System.out.println("count " + name + " " + n));
            System.out.println("done");
        }
    }

    /** The same methods outside the root: not to be counted by anybody but these. */
    static void outside() throws Exception {
        Map<String, Long> before = new HashMap<>();
        COUNTS.forEach((name, n) -> before.put(name, n.get()));
        new Root().work(1);
        COUNTS.forEach((name, n) -> n.set(before.getOrDefault(name, 0L)));
    }

    interface Rule {
        int apply(int x);
    }

    interface Service {
        int serve(int x);

        default int twice(int x) {
            count("Reach$Service.twice");
            return 2 * serve(x);
        }
    }

    static final class Key {
        final int number;

        Key(int number) {
            count("Reach$Key.<init>");
            this.number = number;
        }

        @Override
        public int hashCode() {
            count("Reach$Key.hashCode");
            return number % 3;
        }

        @Override
        public boolean equals(Object other) {
            count("Reach$Key.equals");
            return other instanceof Key key && same(key);
        }

        boolean same(Key key) {
            count("Reach$Key.same");
            return key.number == number;
        }
    }

    static final class Handler implements InvocationHandler {
        @Override
        public Object invoke(Object proxy, Method method, Object[] arguments) {
            count("Reach$Handler.invoke");
            return Orders.served((Integer) arguments[0]);
        }
    }

    static class Impl implements Service {
        @Override
        public int serve(int x) {
            count("Reach$Impl.serve");
            return x;
        }
    }

    static final class Made {
        Made(int i) {
            count("Reach$Made.<init>");
            step(i);
        }

        void step(int i) {
            count("Reach$Made.step");
        }
    }

    static class Bound {
        Bound(int i) {
            count("Reach$Bound.<init>");
        }

        int bound(int x) {
            count("Reach$Bound.bound");
            return x;
        }
    }

    static final class Orders {
        static int handled(int x) {
            count("Reach$Orders.handled");
            return x;
        }

        static int compare(Key a, Key b) {
            count("Reach$Orders.compare");
            return Integer.compare(a.number, b.number);
        }

        static int twice(int x) {
            count("Reach$Orders.twice");
            return 2 * x;
        }

        static int ruled(int x) {
            count("Reach$Orders.ruled");
            return x + 1;
        }

        static int served(int x) {
            count("Reach$Orders.served");
            return x;
        }

        static int initial() {
            count("Reach$Orders.initial");
            return 7;
        }

        static int reflected(int x) {
            count("Reach$Orders.reflected");
            return deeper(x);
        }

        static int deeper(int x) {
            count("Reach$Orders.deeper");
            return x;
        }

        static int streamed(int x) {
            count("Reach$Orders.streamed");
            return x;
        }
    }

    static final class Root {
        int root(int n) throws Exception {
            count("Reach$Root.root");
            return work(n);
        }

        int work(int n) throws Exception {
            count("Reach$Root.work");
            List<Key> keys = new ArrayList<>();
            for (int i = 0; i < 10 + n; i++) {
                Key key = new Key(10 - i);
                keys.add(key);
                KEYS.put(key, i);
            }
            keys.sort(BY_NUMBER);
            int sum = REFERENCE.apply(n) + RULE.apply(n) + SERVICE.serve(n) + new Impl().twice(n);
            LOCAL.remove();
            sum += LOCAL.get();
            sum += (Integer) REFLECTED.invoke(null, n);
            MAKER.newInstance(n);
            sum += called(n);
            IntUnaryOperator operator = Orders::streamed;
            sum += IntStream.range(0, 5).map(operator).sum();
            sum += fromALoader(n);
            return sum;
        }

        /** By handles that the program looked up before anybody came. */
        int called(int n) throws Exception {
            count("Reach$Root.called");
            try {
                Bound bound = (Bound) makingHandle.invokeExact(n);
                return (int) HANDLE.invokeExact(n) + (int) virtualHandle.invoke(bound, n);
            } catch (Exception | Error e) {
                throw e;
            } catch (Throwable e) {
                throw new AssertionError(e);
            }
        }

        /** A class that did not exist before, from a loader that locks and calls back. */
        int fromALoader(int n) throws Exception {
            count("Reach$Root.fromALoader");
            Loader loader = new Loader();
            synchronized (loader) {
                Runnable plugin = (Runnable)
                    loader.loadClass("Reach$Plugin").getDeclaredConstructor().newInstance();
                plugin.run();
            }
            return n;
        }
    }

    public static class Plugin implements Runnable {
        @Override
        public void run() {
            count("Reach$Plugin.run");
            inner();
        }

        void inner() {
            count("Reach$Plugin.inner");
        }
    }

    static final class Loader extends ClassLoader {
        Loader() {
            super(Reach.class.getClassLoader());
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            synchronized (this) {
                count("Reach$Loader.loadClass");
                return name.equals("Reach$Plugin") ? own(name) : super.loadClass(name, resolve);
            }
        }

        Class<?> own(String name) throws ClassNotFoundException {
            count("Reach$Loader.own");
            try (InputStream in = getResourceAsStream("Reach$Plugin.class")) {
                byte[] bytes = in.readAllBytes();
                return defineClass(name, bytes, 0, bytes.length);
            } catch (java.io.IOException e) {
                throw new ClassNotFoundException(name, e);
            }
        }
    }
}
