import java.io.InputStream;
import java.lang.instrument.ClassDefinition;
import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.nio.charset.StandardCharsets;
import java.security.ProtectionDomain;
import java.util.concurrent.atomic.AtomicInteger;

/** Another agent in the same JVM: it changes classes whenever it is told to, also while we do. */
public final class Meddler {
    private static Instrumentation instrumentation;

    private Meddler() {
    }

    public static void premain(String options, Instrumentation given) {
        instrumentation = given;
        if (options == null) {
            return;
        }
        String[] words = options.split("=");
        switch (words[0]) {
            case "spoil":
                given.addTransformer(new Spoiler(words[1]), true);
                break;
            case "watch":
                given.addTransformer(new Watcher(words[1]), true);
                break;
            case "hold":
                given.addTransformer(new Holder(), true);
                break;
            default:
                throw new IllegalArgumentException(options);
        }
    }

    /** Gives a class a body in which one text constant is another of the same length. */
    static void redefine(Class<?> type, String from, String to) throws Exception {
        byte[] bytes;
        try (InputStream in = type.getResourceAsStream("/" + type.getName().replace('.', '/') + ".class")) {
            bytes = in.readAllBytes();
        }
        instrumentation.redefineClasses(new ClassDefinition(type, replaced(bytes, from, to)));
    }

    static void retransform(Class<?> type) throws Exception {
        instrumentation.retransformClasses(type);
    }

    /** How often a watched class passed by. */
    static int seen() {
        return Watcher.SEEN.get();
    }

    private static byte[] replaced(byte[] bytes, String from, String to) {
        String text = new String(bytes, StandardCharsets.ISO_8859_1);
        if (from.length() != to.length() || !text.contains(from)) {
            throw new IllegalArgumentException(from);
        }
        return text.replace(from, to).getBytes(StandardCharsets.ISO_8859_1);
    }

    /** Whenever a class is loaded again, gives it another super class, which no JVM accepts. */
    private static final class Spoiler implements ClassFileTransformer {
        private final String name;

        Spoiler(String name) {
            this.name = name;
        }

        @Override
        public byte[] transform(ClassLoader loader, String className, Class<?> again,
                                ProtectionDomain domain, byte[] bytes) {
            boolean mine = again != null && className.equals(name);
            return mine ? replaced(bytes, "java/lang/Object", "java/lang/Thread") : null;
        }
    }

    /** Counts how often a class is loaded again, and gives it back as it came, as a copy. */
    private static final class Watcher implements ClassFileTransformer {
        static final AtomicInteger SEEN = new AtomicInteger();
        private final String name;

        Watcher(String name) {
            this.name = name;
        }

        @Override
        public byte[] transform(ClassLoader loader, String className, Class<?> again,
                                ProtectionDomain domain, byte[] bytes) {
            if (again == null || !className.equals(name)) {
                return null;
            }
            SEEN.incrementAndGet();
            return bytes.clone();
        }
    }

    /** From now on whoever has a class loaded again waits in here, or all who wait go on. */
    static void hold(boolean hold) {
        synchronized (Holder.LOCK) {
            Holder.holds = hold;
            Holder.LOCK.notifyAll();
        }
    }

    /** Changes nothing, but may take as long as it is told to. */
    private static final class Holder implements ClassFileTransformer {
        static final Object LOCK = new Object();
        static boolean holds;

        @Override
        public byte[] transform(ClassLoader loader, String className, Class<?> again,
                                ProtectionDomain domain, byte[] bytes) {
            synchronized (LOCK) {
                if (again != null && holds) {
                    System.out.println("held");
                    while (holds) {
                        try {
                            LOCK.wait();
                        } catch (InterruptedException e) {
                            throw new IllegalStateException(e);
                        }
                    }
                }
            }
            return null;
        }
    }
}
