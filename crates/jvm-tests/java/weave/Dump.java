package weave;

import java.io.BufferedOutputStream;
import java.io.IOException;
import java.net.URI;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;
import java.util.zip.CRC32;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;

/**
 * Writes the classes of the running JDK into a directory, one jar per module.
 *
 * <p>Usage: {@code weave.Dump DIRECTORY [MODULE…]}; without names, every module of the image.
 */
public final class Dump {
    private Dump() {}

    public static void main(String[] args) throws IOException {
        Path into = Path.of(args[0]);
        Set<String> wanted = new HashSet<>(List.of(args).subList(1, args.length));
        Files.createDirectories(into);
        Path modules = FileSystems.getFileSystem(URI.create("jrt:/")).getPath("/modules");
        try (Stream<Path> list = Files.list(modules)) {
            for (Path module : list.sorted().toList()) {
                String name = module.getFileName().toString();
                if (wanted.isEmpty() || wanted.contains(name)) {
                    dump(module, into.resolve(name + ".jar"));
                }
            }
        }
    }

    private static void dump(Path module, Path jar) throws IOException {
        List<Path> classes;
        try (Stream<Path> files = Files.walk(module)) {
            // A module descriptor has no code, and a patch must not bring one.
            classes = files.filter(f -> f.toString().endsWith(".class"))
                    .filter(f -> !f.getFileName().toString().equals("module-info.class"))
                    .sorted()
                    .toList();
        }
        if (classes.isEmpty()) {
            return;
        }
        try (ZipOutputStream zip = new ZipOutputStream(
                new BufferedOutputStream(Files.newOutputStream(jar), 1 << 16))) {
            zip.setMethod(ZipOutputStream.STORED);
            for (Path file : classes) {
                byte[] bytes = Files.readAllBytes(file);
                ZipEntry entry = new ZipEntry(module.relativize(file).toString());
                CRC32 crc = new CRC32();
                crc.update(bytes);
                entry.setCrc(crc.getValue());
                entry.setSize(bytes.length);
                // The same bytes for the same classes, whenever they are written.
                entry.setTime(0);
                zip.putNextEntry(entry);
                zip.write(bytes);
            }
        }
    }
}
