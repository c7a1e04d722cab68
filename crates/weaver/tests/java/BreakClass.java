import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Makes one class of a directory fail verification: {@code BreakClass FILE} replaces the
 * {@code areturn} of accessors by {@code ireturn}. A run of {@link LinkAll} that does not
 * reject it proves nothing about the other classes.
 */
public final class BreakClass {
    public static void main(String[] args) throws Exception {
        Path file = Path.of(args[0]);
        byte[] b = Files.readAllBytes(file);
        int changed = 0;
        // aload_0, getfield x x, perhaps a probe, areturn: an accessor, whatever stands around it.
        for (int i = 0; i + 64 < b.length; i++) {
            if (b[i] == 0x2a && b[i + 1] == (byte) 0xb4) {
                for (int at = i + 4; at < i + 64; at++) {
                    if (b[at] == (byte) 0xb0) {
                        b[at] = (byte) 0xac;
                        changed++;
                        break;
                    }
                }
            }
        }
        if (changed == 0) throw new IllegalStateException("no accessor in " + file);
        Files.write(file, b);
    }
}
