package bench;

import java.io.IOException;
import java.io.InputStream;
import java.util.function.IntUnaryOperator;

/** Many classes, each called now and then; together they get the same number of calls however many they are. */
final class Classes implements Workload {
    private static final int CALLS = 4_000_000;

    private final IntUnaryOperator[] all;

    Classes(String[] args) throws IOException, ReflectiveOperationException {
        all = new IntUnaryOperator[Integer.parseInt(args[0])];
        byte[] bytes;
        try (InputStream file = Classes.class.getResourceAsStream("Classes$One.class")) {
            bytes = file.readAllBytes();
        }
        // A loader has one class of a name.
        for (int i = 0; i < all.length; i++) {
            Class<?> type = new Loader().define(bytes);
            all[i] = (IntUnaryOperator) type.getDeclaredConstructor().newInstance();
        }
    }

    @Override
    public long iterate() {
        long sum = 0;
        for (int i = 0; i < CALLS; i++) {
            sum += all[i % all.length].applyAsInt(i);
        }
        return sum;
    }

    private static final class Loader extends ClassLoader {
        Loader() {
            super(Classes.class.getClassLoader());
        }

        Class<?> define(byte[] bytes) {
            return defineClass("bench.Classes$One", bytes, 0, bytes.length);
        }
    }

    /** One of them. */
    public static final class One implements IntUnaryOperator {
        @Override
        public int applyAsInt(int i) {
            return twice(i) + once(i);
        }

        private static int twice(int i) {
            return once(i) * 2;
        }

        private static int once(int i) {
            return i & 0xff;
        }
    }
}
