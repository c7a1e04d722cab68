package weave;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;

/**
 * Writes classes that no verifier may accept, to prove that a run has one.
 *
 * <p>Usage: {@code weave.Broken DIRECTORY PACKAGE [JAR]}. One class for each way in which HotSpot
 * verifies: 49 by inference, 52 by its frames, and 50 by frames too, where a JVM that falls back
 * to inference would let wrong frames pass.
 */
public final class Broken {
    static final List<String> NAMES = List.of("TareBroken49", "TareBroken50", "TareBroken52");

    private Broken() {}

    public static void main(String[] args) throws IOException {
        Path directory = Path.of(args[0]).resolve(args[1]);
        Files.createDirectories(directory);
        try (ZipOutputStream jar = args.length < 3
                ? null
                : new ZipOutputStream(Files.newOutputStream(Path.of(args[2])))) {
            write(directory, args[1], jar);
        }
    }

    private static void write(Path directory, String inPackage, ZipOutputStream jar)
            throws IOException {
        for (String name : NAMES) {
            int major = Integer.parseInt(name.substring(name.length() - 2));
            byte[] bytes = make(major, inPackage + "/" + name);
            Files.write(directory.resolve(name + ".class"), bytes);
            if (jar != null) {
                jar.putNextEntry(new ZipEntry(inPackage + "/" + name + ".class"));
                jar.write(bytes);
            }
        }
    }

    private static byte[] make(int major, String name) {
        Asm asm = new Asm(major, name);
        if (major == 50) {
            // The frame at the target calls the int in local 0 a float; inference finds no fault.
            asm.method(Asm.PUBLIC_STATIC, "wrongFrame", "(I)V")
                    .op(0x1a) // iload_0
                    .jump(0x99, "end") // ifeq
                    .op(0x00)
                    .mark("end")
                    .op(0xb1)
                    .frames(0, 1, 255, 0, 5, 0, 1, 2, 0, 0);
        } else {
            // Returns an int where an object is promised.
            asm.method(Asm.PUBLIC_STATIC, "wrongReturn", "()Ljava/lang/Object;").op(0x03, 0xb0);
        }
        return asm.bytes();
    }
}
