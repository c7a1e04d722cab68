import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;
import javax.tools.JavaCompiler;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;

/**
 * A real program that stops with its memory full of something, dumps its heap, says "ready" and
 * waits for the end of its input: {@code Subject shop|javac|loaders DUMP SOURCES CLASSES}.
 */
final class Subject {
    private static final List<Object> kept = new ArrayList<>();

    public static void main(String[] words) throws Exception {
        Path sources = Path.of(words[2]);
        Path classes = Path.of(words[3]);
        switch (words[0]) {
            case "shop" -> shop(classes);
            case "javac" -> javac(sources);
            case "loaders" -> loaders(classes);
            default -> throw new IllegalArgumentException(words[0]);
        }
        Files.deleteIfExists(Path.of(words[1]));
        var type = Class.forName("com.sun.management.HotSpotDiagnosticMXBean")
                .asSubclass(java.lang.management.PlatformManagedObject.class);
        Object bean = ManagementFactory.getPlatformMXBean(type);
        type.getMethod("dumpHeap", String.class, boolean.class).invoke(bean, words[1], false);
        System.out.println("ready");
        while (System.in.read() >= 0) {
            // The next one.
        }
        Runtime.getRuntime().halt(0);
    }

    /** The demo with its leak, stopped after a number of orders that is the same in every run. */
    private static void shop(Path classes) throws Exception {
        ClassLoader loader = new URLClassLoader(new URL[] {classes.toUri().toURL()});
        kept.add(loader);
        String[] switches = {"--orders", "30000", "--leak", "fast", "--quiet", "--threads", "2"};
        Thread main = new Thread(() -> {
            try {
                Class<?> program = loader.loadClass("shop.Main");
                program.getMethod("main", String[].class).invoke(null, (Object) switches);
            } catch (ReflectiveOperationException e) {
                throw new IllegalStateException(e);
            }
        });
        main.setContextClassLoader(loader);
        main.start();
        main.join();
    }

    /** The compiler, with the trees and symbols of the demo's sources still there. */
    private static void javac(Path sources) throws Exception {
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        StandardJavaFileManager files =
                compiler.getStandardFileManager(null, Locale.ROOT, null);
        List<File> all;
        try (Stream<Path> found = Files.walk(sources)) {
            all = found.filter(path -> path.toString().endsWith(".java")).map(Path::toFile).toList();
        }
        var units = files.getJavaFileObjectsFromFiles(all);
        var task = compiler.getTask(null, files, null, List.of("-proc:none"), null, units);
        kept.add(task);
        // Of the module jdk.compiler, and so not named here.
        Class<?> type = Class.forName("com.sun.source.util.JavacTask");
        kept.add(type.getMethod("parse").invoke(task));
        kept.add(type.getMethod("analyze").invoke(task));
    }

    /** The demo's classes, loaded and initialised by each of many loaders; every third is let go. */
    private static void loaders(Path classes) throws Exception {
        List<String> names;
        try (Stream<Path> found = Files.walk(classes)) {
            names = found.map(path -> classes.relativize(path).toString())
                    .filter(name -> name.endsWith(".class"))
                    .map(name -> name.substring(0, name.length() - 6).replace('/', '.'))
                    .toList();
        }
        for (int i = 0; i < 120; i++) {
            ClassLoader loader = new URLClassLoader(new URL[] {classes.toUri().toURL()}, null);
            for (String name : names) {
                try {
                    Class<?> type = Class.forName(name, true, loader);
                    if (i % 3 != 0) {
                        kept.add(type);
                    }
                } catch (LinkageError | ClassNotFoundException e) {
                    // One that cannot be initialised here is left out.
                } catch (UncheckedIOException e) {
                    throw new IOException(e);
                }
            }
        }
    }
}
