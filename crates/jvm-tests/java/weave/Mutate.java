package weave;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Random;

/**
 * Writes real classes with a few bytes changed: most are broken, some are only odd, and those that
 * a JVM still accepts must be accepted woven too.
 *
 * <p>Usage: {@code weave.Mutate DIRECTORY SEED COUNT JAR…}. The same seed gives the same files.
 */
public final class Mutate {
    private Mutate() {}

    public static void main(String[] args) throws IOException {
        Path into = Path.of(args[0]);
        Random random = new Random(Long.parseLong(args[1]));
        int count = Integer.parseInt(args[2]);
        Jars jars = new Jars(List.of(args).subList(3, args.length), false);
        List<String> names = jars.names();
        Files.createDirectories(into);
        for (int i = 0; i < count; i++) {
            byte[] bytes = jars.bytes(names.get(random.nextInt(names.size())));
            int changes = 1 + random.nextInt(3);
            for (int c = 0; c < changes; c++) {
                change(bytes, random);
            }
            Files.write(into.resolve(String.format("%06d.class", i)), bytes);
        }
    }

    /** Mostly behind the constant pool, where the code is. */
    private static void change(byte[] bytes, Random random) {
        int from = random.nextInt(10) == 0 ? 10 : bytes.length * 2 / 5;
        int at = from + random.nextInt(Math.max(1, bytes.length - from));
        if (at >= bytes.length) {
            return;
        }
        switch (random.nextInt(4)) {
            case 0 -> bytes[at] ^= (byte) (1 << random.nextInt(8));
            case 1 -> bytes[at] = (byte) random.nextInt(256);
            case 2 -> bytes[at]++;
            default -> bytes[at] = bytes[from + random.nextInt(bytes.length - from)];
        }
    }
}
