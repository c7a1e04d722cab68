package weave;

import java.io.IOException;
import java.io.PrintWriter;
import java.net.URI;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Stream;

/**
 * Links classes without initialising them, and writes which of them the JVM would not have.
 *
 * <p>{@code weave.Link OUT modules [--only=MODULE,…] [MODULE/CLASS…]}: every class of the running
 * JDK's image, or of some of its modules, as the boot layer finds it (so with patches), plus classes
 * that only a patch has.
 * {@code weave.Link OUT jars JAR…}: every class of the jars, by a loader of our own.
 * {@code weave.Link OUT files DIRECTORY JAR…}: each class file of a directory by a loader of its
 * own, which has the jars too; named by the file, because several may be of one name.
 *
 * <p>OUT gets one line per class that did not link: kind, class, reason, separated by tabs; then
 * totals. Kinds: {@code verify} (a VerifyError or ClassFormatError: the bytes are bad) and
 * {@code missing} (a class that it needs is not there, or another reason outside its bytes).
 */
public final class Link {
    private final PrintWriter out;
    private int seen;
    private int linked;

    private Link(PrintWriter out) {
        this.out = out;
    }

    public static void main(String[] args) throws IOException {
        List<String> rest = List.of(args).subList(2, args.length);
        try (PrintWriter out = new PrintWriter(Files.newBufferedWriter(Path.of(args[0])))) {
            Link link = new Link(out);
            switch (args[1]) {
                case "modules" -> link.modules(rest);
                case "jars" -> link.jars(rest);
                case "files" -> link.files(Path.of(rest.get(0)), rest.subList(1, rest.size()));
                default -> throw new IllegalArgumentException(args[1]);
            }
            out.println("seen\t" + link.seen);
            out.println("linked\t" + link.linked);
            out.println("activity\t" + activity());
        }
    }

    /** How much the probes were called in this JVM; none where nothing that runs is woven. */
    private static long activity() {
        try {
            return (long) Class.forName("java.lang.TareProbe").getMethod("activity").invoke(null);
        } catch (ReflectiveOperationException e) {
            return -1;
        }
    }

    private void modules(List<String> also) throws IOException {
        List<String> names = new ArrayList<>(also);
        Set<String> only = Set.of();
        if (!names.isEmpty() && names.get(0).startsWith("--only=")) {
            only = Set.of(names.remove(0).substring("--only=".length()).split(","));
        }
        Set<String> wanted = only;
        Path modules = FileSystems.getFileSystem(URI.create("jrt:/")).getPath("/modules");
        try (Stream<Path> files = Files.walk(modules)) {
            files.map(modules::relativize)
                    .map(Path::toString)
                    .filter(f -> wanted.isEmpty() || wanted.contains(f.split("/", 2)[0]))
                    .filter(f -> f.endsWith(".class") && !f.endsWith("module-info.class"))
                    .map(f -> f.substring(0, f.length() - ".class".length()))
                    .forEach(names::add);
        }
        for (String name : names) {
            int slash = name.indexOf('/');
            String module = name.substring(0, slash);
            String type = name.substring(slash + 1).replace('/', '.');
            check(module + "/" + type, () -> {
                Optional<Module> found = ModuleLayer.boot().findModule(module);
                return found.isEmpty() ? null : Class.forName(found.get(), type);
            });
        }
    }

    private void jars(List<String> jars) throws IOException {
        Jars base = new Jars(jars, false);
        for (String name : base.names()) {
            check(name, () -> base.loadClass(name));
        }
        // What a jar holds for newer versions of Java is seen by a second loader.
        Jars newest = new Jars(jars, true);
        for (String name : newest.versioned()) {
            check(name + " (versioned)", () -> newest.loadClass(name));
        }
    }

    private void files(Path directory, List<String> jars) throws IOException {
        Jars context = new Jars(jars, false);
        List<Path> files;
        try (Stream<Path> list = Files.list(directory)) {
            files = list.sorted().toList();
        }
        for (Path file : files) {
            byte[] bytes = Files.readAllBytes(file);
            check(file.getFileName().toString(), () -> new Jars(context).define(bytes));
        }
    }

    private interface Finder {
        Class<?> find() throws ClassNotFoundException;
    }

    private void check(String name, Finder finder) {
        seen++;
        try {
            Class<?> type = finder.find();
            if (type == null) {
                note("missing", name, "not in the boot layer");
                return;
            }
            link(type);
            linked++;
        } catch (VerifyError | ClassFormatError e) {
            note("verify", name, e.toString());
        } catch (LinkageError | ClassNotFoundException | SecurityException e) {
            // Links first, then resolves signatures; so a class that is missing there has passed
            // the verifier, and one that is missing to the verifier has not. Only a comparison
            // with the same run over the untouched classes can tell what it means.
            note("missing", name, e.toString());
        } catch (Throwable e) {
            note("verify", name, "unexpected: " + e);
        }
    }

    /**
     * HotSpot links a class before it lists its members, and initialises nothing. For interfaces
     * the list of constructors is empty without a look.
     */
    private static void link(Class<?> type) {
        if (type.isInterface()) {
            type.getDeclaredMethods();
        } else {
            type.getDeclaredConstructors();
        }
    }

    private void note(String kind, String name, String reason) {
        out.println(kind + "\t" + name + "\t" + reason.replaceAll("\\s+", " "));
    }
}
