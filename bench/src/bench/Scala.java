package bench;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;

/** The Scala compiler on real sources; what it writes is counted and thrown away. */
final class Scala implements Workload {
    private final List<String> arguments = new ArrayList<>();
    private final Path output = Files.createTempDirectory("tare-bench-scala");

    /** A directory of sources, and the library as a class path. */
    Scala(String[] args) throws IOException {
        arguments.addAll(List.of("-d", output.toString(), "-classpath", args[1], "-nowarn"));
        try (Stream<Path> files = Files.walk(Path.of(args[0]))) {
            files.filter(file -> file.toString().endsWith(".scala"))
                    .sorted()
                    .forEach(file -> arguments.add(file.toString()));
        }
    }

    @Override
    public long iterate() throws Exception {
        Class<?> compiler = Class.forName("scala.tools.nsc.MainClass");
        Object main = compiler.getDeclaredConstructor().newInstance();
        Object done = compiler.getMethod("process", String[].class)
                .invoke(main, (Object) arguments.toArray(String[]::new));
        if (!Boolean.TRUE.equals(done)) {
            throw new IllegalStateException("the Scala compiler failed");
        }
        long written = 0;
        try (Stream<Path> files = Files.walk(output)) {
            for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
                if (!file.equals(output)) {
                    written += Files.isRegularFile(file) ? 1 : 0;
                    Files.delete(file);
                }
            }
        }
        return written;
    }
}
