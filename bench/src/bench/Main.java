package bench;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;

/**
 * Runs one workload as the lines on standard input ask for it, and says on standard output how long
 * each iteration took.
 *
 * <p>Times are taken here, inside the program, so that the start of the JVM is no part of them. The
 * lines are {@code run ITERATIONS SECONDS}, which runs at least so many iterations and for at least
 * that time, and {@code quit}. None of these classes is ever profiled, only the workload is, and
 * {@link Between} where the workload is to be outside.
 */
public final class Main {
    private Main() {}

    public static void main(String[] args) throws Exception {
        System.out.println("bench main");
        Workload workload = workload(args[0], Arrays.copyOfRange(args, 1, args.length));
        System.out.println("bench ready");
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            if (words[0].equals("quit")) {
                break;
            }
            run(workload, Integer.parseInt(words[1]), Double.parseDouble(words[2]));
        }
        System.out.println("bench memory " + peakMemory());
        // A server's threads would go on.
        System.exit(0);
    }

    private static void run(Workload workload, int iterations, double seconds) throws Exception {
        long begin = System.nanoTime();
        for (int i = 0; i < iterations || System.nanoTime() - begin < seconds * 1e9; i++) {
            long onProcessor = onProcessor();
            long start = System.nanoTime();
            long result = workload.iterate();
            long time = System.nanoTime() - start;
            onProcessor = onProcessor() - onProcessor;
            System.out.println("bench iteration " + time + " " + onProcessor + " " + result);
            Between.iterations();
        }
        System.out.println("bench done");
    }

    /** The class has the workload's name; some are compiled apart, with their libraries. */
    private static Workload workload(String name, String[] args) throws Exception {
        String type = "bench." + Character.toUpperCase(name.charAt(0)) + name.substring(1);
        var constructor = Class.forName(type).getDeclaredConstructor(String[].class);
        return (Workload) constructor.newInstance((Object) args);
    }

    /**
     * How long this thread has been on a processor, in nanoseconds; zero where the kernel does not
     * tell. Read from a file, because the JVM's own way loads a few hundred classes.
     */
    private static long onProcessor() throws IOException {
        Path file = Path.of("/proc/thread-self/schedstat");
        return Files.exists(file) ? Long.parseLong(Files.readString(file).split(" ")[0]) : 0;
    }

    /** The most memory that this process ever had, in KiB, as the kernel counts it. */
    private static long peakMemory() throws IOException {
        for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
            if (line.startsWith("VmHWM:")) {
                return Long.parseLong(line.replaceAll("[^0-9]", ""));
            }
        }
        return 0;
    }
}
