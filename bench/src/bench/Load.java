package bench;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Load on a server, from another JVM: {@code Load PORT CONNECTIONS}. For each line
 * {@code phase SECONDS} every connection asks and pauses in turn for that long; then a line says
 * {@code phase REQUESTS ERRORS P50 P99 WORST}, times in nanoseconds. An answer is wrong that does not say
 * what the first one to the same question said.
 */
public final class Load {
    private static final int QUESTIONS = 64;

    private Load() {}

    public static void main(String[] args) throws Exception {
        int port = Integer.parseInt(args[0]);
        int connections = Integer.parseInt(args[1]);
        long[] right = new long[QUESTIONS];
        try (WebClient client = new WebClient(port)) {
            for (int i = 0; i < QUESTIONS; i++) {
                right[i] = client.ask(i);
            }
        }
        System.out.println("ready");
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            long end = System.nanoTime() + (long) (Double.parseDouble(line.split(" ")[1]) * 1e9);
            List<Connection> all = new ArrayList<>();
            for (int i = 0; i < connections; i++) {
                Connection connection = new Connection(port, right, end);
                all.add(connection);
                connection.start();
            }
            long errors = 0;
            int count = 0;
            for (Connection connection : all) {
                connection.join();
                errors += connection.errors;
                count += connection.count;
            }
            long[] times = new long[count];
            int at = 0;
            for (Connection connection : all) {
                System.arraycopy(connection.times, 0, times, at, connection.count);
                at += connection.count;
            }
            Arrays.sort(times);
            System.out.println("phase " + count + " " + errors + " " + quantile(times, 0.5) + " "
                    + quantile(times, 0.99) + " " + quantile(times, 1));
        }
    }

    private static long quantile(long[] sorted, double share) {
        return sorted.length == 0 ? 0 : sorted[(int) Math.max(0, Math.ceil(sorted.length * share) - 1)];
    }

    private static final class Connection extends Thread {
        private final int port;
        private final long[] right;
        private final long end;
        private long[] times = new long[1024];
        private int count;
        private long errors;

        Connection(int port, long[] right, long end) {
            this.port = port;
            this.right = right;
            this.end = end;
        }

        @Override
        public void run() {
            try (WebClient client = new WebClient(port)) {
                for (int i = 0; System.nanoTime() < end; i = (i + 1) % QUESTIONS) {
                    long begin = System.nanoTime();
                    long answer = client.ask(i);
                    if (answer != right[i]) {
                        errors++;
                    }
                    if (count == times.length) {
                        times = Arrays.copyOf(times, 2 * count);
                    }
                    times[count++] = System.nanoTime() - begin;
                    Thread.sleep(2);
                }
            } catch (Exception failed) {
                errors++;
                System.err.println(failed);
            }
        }
    }
}
