import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;

/**
 * Makes what it is told, on its input or by its arguments, of classes of its own: objects that it keeps
 * or drops, with constructors of subclasses, of parameters that are made on the way, and some that throw.
 */
public final class Watches {
    static class Base {
        long number;

        Base() {}

        Base(long number) {
            this.number = number;
        }
    }

    static final class Sub extends Base {
        Object more;

        Sub(Object more) {
            super(7);
            this.more = more;
        }
    }

    /** Is kept before its constructor throws. */
    static final class Fails {
        Fails(List<Object> all) {
            all.add(this);
            throw new IllegalStateException("on purpose");
        }
    }

    static final class Copied implements Cloneable {
        long one, two;

        Copied copy() throws CloneNotSupportedException {
            return (Copied) super.clone();
        }
    }

    private static List<Object> kept = new ArrayList<>();
    private static List<Object> others = new ArrayList<>();
    private static Object[] many;
    private static Object last;

    private Watches() {}

    public static void main(String[] args) throws Exception {
        if (args.length > 0) {
            for (String command : args) {
                run(command);
            }
            return;
        }
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        for (String line; (line = in.readLine()) != null;) {
            run(line);
            System.out.println(line + ": done");
        }
    }

    private static void run(String command) throws Exception {
        String[] words = command.split(" ");
        int count = words.length > 1 ? Integer.parseInt(words[1]) : 0;
        switch (words[0]) {
            case "keep" -> keep(count);
            case "subs" -> subs(count);
            case "fails" -> fails(count);
            case "waste" -> waste(count);
            case "arrays" -> arrays(count);
            case "copies" -> copies(count);
            case "boxes" -> boxes(count);
            case "threads" -> threads(count);
            case "many" -> many(count);
            case "drop" -> kept = new ArrayList<>();
            case "sleep" -> Thread.sleep(count);
            case "gc" -> {
                for (int i = 0; i < count; i++) {
                    System.gc();
                }
            }
            default -> throw new IllegalArgumentException(command);
        }
    }

    private static void keep(int count) {
        for (int i = 0; i < count; i++) {
            kept.add(new Base());
        }
    }

    /** With a jump between the object's making and its constructor, and another object. */
    private static void subs(int count) {
        for (int i = 0; i < count; i++) {
            others.add(new Sub(i % 2 == 0 ? new Base(i) : null));
        }
    }

    private static void fails(int count) {
        for (int i = 0; i < count; i++) {
            try {
                last = new Fails(others);
            } catch (IllegalStateException expected) {
                last = null;
            }
        }
    }

    private static void waste(int count) {
        for (int i = 0; i < count; i++) {
            last = new Base();
        }
        last = null;
    }

    /** Each an array of two arrays. */
    private static void arrays(int count) {
        for (int i = 0; i < count; i++) {
            others.add(new int[2][i % 3]);
        }
    }

    private static void copies(int count) throws CloneNotSupportedException {
        Copied first = new Copied();
        for (int i = 0; i < count; i++) {
            others.add(first.copy());
        }
        last = null;
    }

    /** One of two is new. */
    private static void boxes(int count) {
        for (int i = 0; i < count; i++) {
            others.add(Long.valueOf(i % 2 == 0 ? 5 : 5000 + i));
        }
    }

    private static synchronized void keepOne() {
        others.add(new Base());
    }

    /** Virtual ones if there are any. */
    private static void threads(int count) throws Exception {
        Method start = null;
        try {
            start = Thread.class.getMethod("startVirtualThread", Runnable.class);
        } catch (NoSuchMethodException before21) {
            // Platform threads, then.
        }
        CountDownLatch done = new CountDownLatch(count);
        for (int i = 0; i < count; i++) {
            Runnable work = () -> {
                keepOne();
                done.countDown();
            };
            if (start == null) {
                new Thread(work).start();
            } else {
                start.invoke(null, work);
            }
        }
        done.await();
    }

    private static void many(int count) {
        many = new Object[count];
        for (int i = 0; i < count; i++) {
            many[i] = new Base();
        }
    }
}
