package bench;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.CountDownLatch;

/**
 * What ways of looking at all threads cost: the threads of {@link ManyThreads}, looked at in turns. Of
 * each look it prints {@code way NAME NANOS}, the processor time of the JVM's thread that does it; that
 * does not depend on what else the machine does. Arguments: threads, frames, rounds, and a library with
 * the ways that Java has not, if there is one.
 */
public final class DumpWays {
    private static final int DEEP = 512;

    private interface Look {
        void take() throws Exception;
    }

    private DumpWays() {
    }

    private static native void allStacks(int depth);

    private static native void abortedWalk();

    private static Path clock() throws IOException {
        try (DirectoryStream<Path> tasks = Files.newDirectoryStream(Path.of("/proc/self/task"))) {
            for (Path task : tasks) {
                if (Files.readString(task.resolve("comm")).startsWith("VM Thread")) {
                    return task.resolve("schedstat");
                }
            }
        }
        throw new IOException("there is no VM thread");
    }

    private static long used(Path clock) throws IOException {
        return Long.parseLong(Files.readString(clock).split(" ")[0]);
    }

    private static void look(String name, Path clock, Look look) throws Exception {
        long before = used(clock);
        look.take();
        // It may still be at the end of its work.
        Thread.sleep(5);
        System.out.println("way " + name + " " + (used(clock) - before));
    }

    public static void main(String[] arguments) throws Exception {
        int threads = Integer.parseInt(arguments[0]);
        int depth = Integer.parseInt(arguments[1]);
        int rounds = Integer.parseInt(arguments[2]);
        boolean hasNatives = arguments.length > 3;
        if (hasNatives) {
            System.load(arguments[3]);
        }
        ThreadMXBean bean = ManagementFactory.getThreadMXBean();
        Path clock = clock();
        Object held = new Object();
        CountDownLatch begun = new CountDownLatch(threads);
        synchronized (held) {
            ManyThreads.start(threads, depth, held, begun);
            begun.await();
            Thread.sleep(500);
            for (int round = 0; round < rounds; round++) {
                look("whole", clock, () -> bean.dumpAllThreads(true, false, DEEP));
                look("without-monitors", clock, () -> bean.dumpAllThreads(false, false, DEEP));
                look("with-synchronizers", clock, () -> bean.dumpAllThreads(true, true, DEEP));
                look("one-frame", clock, () -> bean.dumpAllThreads(true, false, 1));
                look("no-frames", clock, () -> bean.dumpAllThreads(true, false, 0));
                look("Thread.getAllStackTraces", clock, Thread::getAllStackTraces);
                if (hasNatives) {
                    look("jvmti-stacks", clock, () -> allStacks(DEEP));
                    look("safepoint-of-ours", clock, DumpWays::abortedWalk);
                }
            }
            System.out.println("done");
            System.out.flush();
            // Whoever waits would only complain.
            Runtime.getRuntime().halt(0);
        }
    }
}
