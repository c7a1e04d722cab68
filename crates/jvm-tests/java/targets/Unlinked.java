import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

/**
 * A root that reaches large classes while another thread links them: each is loaded and not linked,
 * then the root runs what calls it, and a moment earlier or later the other thread has it linked.
 * Linking takes its time, because the JVM rewrites every call in the class. Waits for a line, does
 * so as often as the line says, and prints {@code done} and how often the right value came back.
 * The word {@code load} loads a class that cannot be linked, {@code link} tries to link it.
 */
public final class Unlinked {
    /** Methods that only make a class large, and the calls in each: fewer than make one huge. */
    private static final int METHODS = 60;
    private static final int CALLS = 1900;

    private static final byte ICONST_1 = 0x04;
    private static final byte ALOAD_0 = 0x2A;
    private static final byte POP = 0x57;
    private static final byte IRETURN = (byte) 0xAC;
    private static final byte RETURN = (byte) 0xB1;
    private static final byte INVOKESPECIAL = (byte) 0xB7;
    private static final byte INVOKESTATIC = (byte) 0xB8;

    private static Class<?> broken;

    private Unlinked() {}

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        Random random = new Random(1);
        int number = 0;
        for (String line; (line = in.readLine()) != null;) {
            if (line.equals("load")) {
                broken = Class.forName("Broken", false, new Loader(-1));
                System.out.println("done");
                continue;
            }
            if (line.equals("link")) {
                try {
                    System.out.println("done " + broken.getDeclaredFields().length);
                } catch (VerifyError e) {
                    System.out.println("done VerifyError");
                }
                continue;
            }
            int right = 0;
            for (int i = 0; i < Integer.parseInt(line); i++) {
                right += reach(number++, random.nextInt(10_000_000));
            }
            System.out.println("done " + right);
        }
    }

    /** The other thread begins so many nanoseconds before the root. */
    private static int reach(int number, int earlier) throws Exception {
        Loader loader = new Loader(number);
        Class<?> large = Class.forName(loader.large, false, loader);
        Class<?> calls = Class.forName(loader.calls, true, loader);
        Caller caller = (Caller) calls.getConstructor().newInstance();
        long now = System.nanoTime() + 11_000_000;
        Thread linker = new Thread(() -> {
            await(now - earlier);
            // Looking for fields has a class linked, and not initialised.
            large.getDeclaredFields();
        });
        linker.start();
        await(now);
        int right = root(caller);
        linker.join();
        return right;
    }

    private static void await(long moment) {
        while (System.nanoTime() < moment) {
            Thread.onSpinWait();
        }
    }

    static int root(Caller caller) {
        return caller.call();
    }

    /** Its implementations are found when the root first calls them, and only then what they call. */
    public interface Caller {
        int call();
    }

    /** Brings two classes with names of their own, so that nothing is known of them before. */
    private static final class Loader extends ClassLoader {
        final String large;
        final String calls;

        Loader(int number) {
            large = "Large" + number;
            calls = "Calls" + number;
        }

        @Override
        protected Class<?> findClass(String name) throws ClassNotFoundException {
            byte[] bytes;
            try {
                bytes = name.equals(large) ? large() : name.equals(calls) ? calls() : broken();
            } catch (IOException e) {
                throw new ClassNotFoundException(name, e);
            }
            return defineClass(name, bytes, 0, bytes.length);
        }

        /** {@code one()} returns 1; {@code work()} and many others call it. */
        private byte[] large() throws IOException {
            ClassWriter out = new ClassWriter(large, "java/lang/Object");
            int one = out.method(large, "one", "()I");
            ByteArrayOutputStream many = new ByteArrayOutputStream();
            for (int i = 0; i < CALLS; i++) {
                many.write(new byte[] {INVOKESTATIC, 0, (byte) one, POP});
            }
            many.write(RETURN);
            out.body(9, "one", "()I", ICONST_1, IRETURN);
            out.body(9, "work", "()I", INVOKESTATIC, (byte) 0, (byte) one, IRETURN);
            for (int i = 0; i < METHODS; i++) {
                out.body(9, "large" + i, "()V", many.toByteArray());
            }
            return out.bytes();
        }

        /** {@code call()} returns what {@code work()} of the other class returns. */
        private byte[] calls() throws IOException {
            ClassWriter out = new ClassWriter(calls, "java/lang/Object", "Unlinked$Caller");
            byte init = (byte) out.method("java/lang/Object", "<init>", "()V");
            byte work = (byte) out.method(large, "work", "()I");
            out.body(1, "<init>", "()V", ALOAD_0, INVOKESPECIAL, (byte) 0, init, RETURN);
            out.body(1, "call", "()I", INVOKESTATIC, (byte) 0, work, IRETURN);
            return out.bytes();
        }
    }

    /** A method of it returns what is not there. */
    private static byte[] broken() throws IOException {
        ClassWriter out = new ClassWriter("Broken", "java/lang/Object");
        out.body(9, "one", "()I", IRETURN);
        return out.bytes();
    }

    /** As much of a class file as is needed here. */
    private static final class ClassWriter {
        private final Map<List<Object>, Integer> constants = new HashMap<>();
        private final ByteArrayOutputStream pool = new ByteArrayOutputStream();
        private final ByteArrayOutputStream methods = new ByteArrayOutputStream();
        private final ByteArrayOutputStream head = new ByteArrayOutputStream();
        private int bodies;

        ClassWriter(String name, String superclass, String... interfaces) throws IOException {
            DataOutputStream out = new DataOutputStream(head);
            shorts(out, 0x21, type(name), type(superclass), interfaces.length);
            for (String implemented : interfaces) {
                shorts(out, type(implemented));
            }
            shorts(out, 0); // No fields.
        }

        int utf8(String text) throws IOException {
            Integer known = constants.get(List.<Object>of(text));
            if (known != null) {
                return known;
            }
            DataOutputStream out = new DataOutputStream(pool);
            out.writeByte(1);
            out.writeUTF(text);
            constants.put(List.of(text), constants.size() + 1);
            return constants.size();
        }

        int type(String name) throws IOException {
            return constant(7, utf8(name));
        }

        int method(String owner, String name, String descriptor) throws IOException {
            return constant(10, type(owner), constant(12, utf8(name), utf8(descriptor)));
        }

        private int constant(int tag, int... parts) throws IOException {
            List<Object> key = List.of(tag, Arrays.toString(parts));
            Integer known = constants.get(key);
            if (known != null) {
                return known;
            }
            pool.write(tag);
            shorts(new DataOutputStream(pool), parts);
            constants.put(key, constants.size() + 1);
            return constants.size();
        }

        void body(int flags, String name, String descriptor, byte... code) throws IOException {
            DataOutputStream out = new DataOutputStream(methods);
            shorts(out, flags, utf8(name), utf8(descriptor), 1, utf8("Code"));
            out.writeInt(12 + code.length);
            shorts(out, 1, 1);
            out.writeInt(code.length);
            out.write(code);
            shorts(out, 0, 0);
            bodies++;
        }

        byte[] bytes() throws IOException {
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            DataOutputStream out = new DataOutputStream(bytes);
            out.writeInt(0xCAFEBABE);
            out.writeInt(52);
            shorts(out, constants.size() + 1);
            pool.writeTo(out);
            head.writeTo(out);
            shorts(out, bodies);
            methods.writeTo(out);
            shorts(out, 0); // No attributes.
            return bytes.toByteArray();
        }

        private static void shorts(DataOutputStream out, int... values) throws IOException {
            for (int value : values) {
                out.writeShort(value);
            }
        }
    }
}
