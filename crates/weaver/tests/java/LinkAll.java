import java.io.IOException;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Links every class below directories, with the verification that the JVM was told to do.
 *
 * <p>Arguments: {@code modules DIR} for a directory with one subdirectory per module of the running
 * JDK (patched by {@code --patch-module}), or {@code classes DIR...} for directories that a loader
 * of our own reads. {@code Class.forName(n, false, l)} only loads; asking for the declared
 * constructors is what makes HotSpot link, and thereby verify, without initialising.
 */
public final class LinkAll {
    private static final Map<String, Integer> failures = new TreeMap<>();
    private static int linked;

    public static void main(String[] args) throws Exception {
        int broken = 0;
        if (args[0].equals("modules")) {
            Path root = Path.of(args[1]);
            try (var modules = Files.list(root)) {
                for (Path module : modules.sorted().toList()) {
                    Module m = ModuleLayer.boot().findModule(module.getFileName().toString()).orElse(null);
                    if (m == null) {
                        System.out.println("no module " + module.getFileName());
                        continue;
                    }
                    for (String name : names(module)) {
                        link(name, () -> Class.forName(m, name));
                    }
                }
            }
        } else {
            for (int i = 1; i < args.length; i++) {
                Path root = Path.of(args[i]);
                var loader = new DirLoader(root);
                for (String name : names(root)) {
                    link(name, () -> Class.forName(name, false, loader));
                }
            }
        }
        System.out.println("linked: " + linked);
        failures.forEach((k, v) -> System.out.println(k + ": " + v));
    }

    interface Load { Class<?> load() throws Exception; }

    private static void link(String name, Load load) {
        try {
            Class<?> c = load.load();
            if (c == null) {
                count("not found");
                return;
            }
            c.getDeclaredConstructors();
            linked++;
        } catch (VerifyError | ClassFormatError e) {
            System.out.println("FAILED " + name + ": " + e);
            count(e.getClass().getSimpleName());
        } catch (NoClassDefFoundError | IncompatibleClassChangeError | ClassNotFoundException e) {
            count("unresolved: " + e.getClass().getSimpleName());
        } catch (Throwable t) {
            if (t instanceof LinkageError) count("other linkage error: " + t.getClass().getSimpleName());
            else System.out.println("FAILED " + name + ": " + t);
            count(t.getClass().getSimpleName());
        }
    }

    private static void count(String key) { failures.merge(key, 1, Integer::sum); }

    private static List<String> names(Path root) throws IOException {
        try (var files = Files.walk(root)) {
            return files.map(f -> root.relativize(f).toString())
                .filter(f -> f.endsWith(".class") && !f.endsWith("module-info.class"))
                .map(f -> f.substring(0, f.length() - 6).replace(FileSystems.getDefault().getSeparator(), "."))
                .sorted().toList();
        }
    }

    /** Reads a directory; what it does not have comes from the system loader. */
    static final class DirLoader extends ClassLoader {
        private final Path root;

        DirLoader(Path root) { this.root = root; }

        @Override protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            synchronized (getClassLoadingLock(name)) {
                Class<?> c = findLoadedClass(name);
                Path file = root.resolve(name.replace('.', '/') + ".class");
                if (c == null && !name.startsWith("java.") && Files.isRegularFile(file)) {
                    try {
                        byte[] b = Files.readAllBytes(file);
                        c = defineClass(name, b, 0, b.length);
                    } catch (IOException e) {
                        throw new ClassNotFoundException(name, e);
                    }
                }
                return c != null ? c : super.loadClass(name, resolve);
            }
        }
    }
}
