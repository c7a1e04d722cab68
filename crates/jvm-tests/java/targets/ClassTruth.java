// Loads classes as it is told on standard input, one line at a time, each for a reason that is known, and
// ends with the input. Words on the command line are done first.

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.lang.ref.WeakReference;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

public final class ClassTruth {
    private static final List<Class<?>> kept = new ArrayList<>();
    private static byte[] plugin;

    private ClassTruth() {
    }

    public static void main(String[] args) throws Exception {
        try (InputStream in = ClassTruth.class.getResourceAsStream("ClassTruth$Plugin.class")) {
            plugin = in.readAllBytes();
        }
        for (String line : args) {
            System.out.println(line + ": " + obey(line.split(" ")));
        }
        System.out.println("ready");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            System.out.println(line.strip() + ": " + obey(line.strip().split(" ")));
        }
    }

    private static String obey(String[] words) throws Exception {
        int number = words.length > 1 && words[1].chars().allMatch(Character::isDigit) ? Integer.parseInt(words[1]) : 0;
        switch (words[0]) {
            case "nested":
                return nested();
            case "initialiser":
                return initialiser();
            case "named":
                return named();
            case "lambda":
                return lambda();
            case "verified":
                return verified();
            case "drop":
                return drop(number);
            case "keep":
                return keep(number);
            case "flood":
                return flood(number, Integer.parseInt(words[2]));
            case "file":
                while (!Files.exists(Path.of(words[1]))) {
                    Thread.sleep(5);
                }
                return "there";
            default:
                return "unknown";
        }
    }

    interface Face {
    }

    static class Base {
    }

    static class Middle extends Base implements Face {
    }

    static class Leaf extends Middle {
    }

    /** Loads a class, and for it its superclasses and their interface. */
    static String nested() {
        return "made " + new Leaf().getClass().getSimpleName();
    }

    static class Init {
        static final Object made = new FromInit();
    }

    static class FromInit {
    }

    /** Loads a class whose static initialiser loads another. */
    static String initialiser() {
        return "made " + Init.made.getClass().getSimpleName();
    }

    static class Named {
    }

    static String named() throws ClassNotFoundException {
        return "found " + Class.forName("ClassTruth$Named").getSimpleName();
    }

    interface Work {
        int work(int of);
    }

    /** Makes a hidden class. */
    static String lambda() {
        Work work = of -> of + 1;
        return "worked " + work.work(1);
    }

    static class Wide {
    }

    static class Narrow extends Wide {
    }

    static class Judged {
        /** Whoever verifies this must know what Narrow is. */
        Wide made(boolean narrow) {
            return narrow ? new Narrow() : new Wide();
        }
    }

    static String verified() {
        return "made " + (new Judged().made(false) == null);
    }

    /** Of this class a copy is made by each loader. */
    public static final class Plugin implements Runnable {
        @Override
        public void run() {
        }
    }

    static final class Own extends ClassLoader {
        private final byte[] bytes;

        Own(byte[] bytes, String name) {
            super(name, ClassTruth.class.getClassLoader());
            this.bytes = bytes;
        }

        @Override
        protected Class<?> loadClass(String name, boolean link) throws ClassNotFoundException {
            if (!name.equals("ClassTruth$Plugin")) {
                return super.loadClass(name, link);
            }
            synchronized (getClassLoadingLock(name)) {
                Class<?> known = findLoadedClass(name);
                return known != null ? known : defineClass(name, bytes, 0, bytes.length);
            }
        }
    }

    /** A class of a loader of its own, which has run. */
    private static Class<?> made() throws Exception {
        Class<?> made = Class.forName("ClassTruth$Plugin", true, new Own(plugin, null));
        ((Runnable) made.getDeclaredConstructor().newInstance()).run();
        return made;
    }

    private static List<WeakReference<ClassLoader>> loaders(int number) throws Exception {
        List<WeakReference<ClassLoader>> loaders = new ArrayList<>();
        for (int i = 0; i < number; i++) {
            loaders.add(new WeakReference<>(made().getClassLoader()));
        }
        return loaders;
    }

    /** Loaders with a class each, all of which are gone when it answers. */
    static String drop(int number) throws Exception {
        List<WeakReference<ClassLoader>> loaders = loaders(number);
        while (loaders.stream().anyMatch(loader -> loader.get() != null)) {
            System.gc();
            Thread.sleep(10);
        }
        return "dropped " + number;
    }

    static String keep(int number) throws Exception {
        for (int i = 0; i < number; i++) {
            Class<?> made = Class.forName("ClassTruth$Plugin", true, new Own(plugin, "kept"));
            kept.add(made);
        }
        return "kept " + number;
    }

    /** Many loads by several threads at once. */
    static String flood(int threads, int number) throws Exception {
        List<Thread> all = new ArrayList<>();
        List<Throwable> failed = new ArrayList<>();
        for (int i = 0; i < threads; i++) {
            Thread thread = new Thread(() -> {
                try {
                    for (int n = 0; n < number; n++) {
                        made();
                    }
                } catch (Exception e) {
                    synchronized (failed) {
                        failed.add(e);
                    }
                }
            }, "flood " + i);
            thread.start();
            all.add(thread);
        }
        for (Thread thread : all) {
            thread.join();
        }
        if (!failed.isEmpty()) {
            throw new IOException(failed.get(0));
        }
        return "loaded " + threads * number;
    }
}
