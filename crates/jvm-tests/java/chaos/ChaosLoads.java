import java.io.IOException;
import java.io.InputStream;
import java.util.function.LongUnaryOperator;

/** Classes by the hundred, each by a loader of its own that is thrown away at once. */
final class ChaosLoads implements Chaos.Work {
    static final String GUEST = "ChaosGuest";
    private final byte[] bytes = classFile(GUEST);

    static byte[] classFile(String name) {
        try (InputStream in = ChaosLoads.class.getResourceAsStream(name + ".class")) {
            return in.readAllBytes();
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }

    private static final class Own extends ClassLoader {
        private final byte[] bytes;

        Own(byte[] bytes) {
            super(ChaosLoads.class.getClassLoader());
            this.bytes = bytes;
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            if (!name.equals(GUEST)) {
                return super.loadClass(name, resolve);
            }
            Class<?> known = findLoadedClass(name);
            return known != null ? known : defineClass(name, bytes, 0, bytes.length);
        }
    }

    @Override
    public void round(long number) throws Exception {
        for (int i = 0; i < 25; i++) {
            Class<?> type = new Own(bytes).loadClass(GUEST);
            // Some are never linked.
            if (i % 5 == 0) {
                continue;
            }
            LongUnaryOperator guest = (LongUnaryOperator) type.getDeclaredConstructor().newInstance();
            Chaos.expect("a guest's answer", ChaosGuest.ofHundred(), guest.applyAsLong(100));
        }
        if (number % 100 == 99 && !Boolean.getBoolean("chaos.frugal")) {
            System.gc();
        }
    }
}
