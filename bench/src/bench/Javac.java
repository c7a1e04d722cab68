package bench;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;
import javax.tools.FileObject;
import javax.tools.ForwardingJavaFileManager;
import javax.tools.JavaCompiler;
import javax.tools.JavaFileManager;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.ToolProvider;

/**
 * The JDK's own compiler on real sources: those below one directory. What they need of others is
 * found below the root, and no class file is written for it. Nothing is kept.
 */
final class Javac implements Workload {
    private final JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
    private final List<JavaFileObject> sources = new ArrayList<>();
    private final List<String> options;

    Javac(String[] args) throws IOException {
        Path root = Path.of(args[0]);
        Path directory = Path.of(args[1]);
        if (compiler == null) {
            throw new IllegalStateException("this Java has no compiler");
        }
        options =
                List.of(
                        "-proc:none",
                        "-implicit:none",
                        "-nowarn",
                        "-g",
                        "-sourcepath",
                        root.toString());
        try (Stream<Path> files = Files.walk(directory)) {
            for (Path file : files.sorted().toList()) {
                String name = file.getFileName().toString();
                if (name.endsWith(".java") && !name.equals("module-info.java")) {
                    sources.add(new Source(file, Files.readString(file)));
                }
            }
        }
    }

    @Override
    public long iterate() throws IOException {
        try (Classes classes =
                new Classes(compiler.getStandardFileManager(null, Locale.ROOT, null))) {
            boolean good =
                    compiler.getTask(null, classes, problem -> {}, options, null, sources).call();
            if (!good) {
                throw new IllegalStateException("the sources do not compile");
            }
            return classes.size;
        }
    }

    /** A source file that was read once. */
    private static final class Source extends SimpleJavaFileObject {
        private final String text;

        Source(Path file, String text) {
            super(file.toUri(), Kind.SOURCE);
            this.text = text;
        }

        @Override
        public CharSequence getCharContent(boolean ignoreEncodingErrors) {
            return text;
        }
    }

    /** Counts the bytes of the class files and keeps none of them. */
    private static final class Classes extends ForwardingJavaFileManager<JavaFileManager> {
        long size;

        Classes(JavaFileManager manager) {
            super(manager);
        }

        @Override
        public JavaFileObject getJavaFileForOutput(
                Location location, String name, JavaFileObject.Kind kind, FileObject sibling) {
            URI uri = URI.create("memory:///" + name.replace('.', '/') + kind.extension);
            return new SimpleJavaFileObject(uri, kind) {
                @Override
                public OutputStream openOutputStream() {
                    return new ByteArrayOutputStream() {
                        @Override
                        public void close() {
                            size += count;
                        }
                    };
                }
            };
        }
    }
}
