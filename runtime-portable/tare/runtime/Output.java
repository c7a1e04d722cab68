package tare.runtime;

import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.StandardCopyOption;
import java.util.concurrent.TimeUnit;

/**
 * When the recording is written and where: at the end of the JVM, and now and then before, for a JVM that
 * has no end of its own. It is written beside its place and renamed, so there is always a whole one.
 */
final class Output {
    /** Seconds between two writings. */
    private static final int EVERY = 30;
    /** At most this part of the time is spent with it. */
    private static final int SHARE = 20;

    private static final long BEGAN = System.nanoTime();
    private static final long STARTED = System.currentTimeMillis();
    private static String said;
    /** Once it is known. */
    private static Path place;

    private Output() {}

    static void begin() {
        try {
            Runtime.getRuntime().addShutdownHook(new Writer(0));
            int every = Settings.number("tare.flush", EVERY);
            if (every > 0) {
                Writer writer = new Writer(every);
                writer.setDaemon(true);
                writer.start();
            }
        } catch (IllegalStateException | SecurityException | OutOfMemoryError e) {
            say("the recording cannot be written at the end: " + e);
        }
    }

    /** A thread of ours; what it does is not counted. */
    static final class Writer extends Thread {
        private final long every;

        Writer(int every) {
            super("tare-runtime");
            this.every = TimeUnit.SECONDS.toNanos(every);
        }

        @Override
        public void run() {
            if (every == 0) {
                write();
                return;
            }
            long pause = every;
            try {
                for (;;) {
                    TimeUnit.NANOSECONDS.sleep(pause);
                    long begin = System.nanoTime();
                    write();
                    pause = Math.max(every, (System.nanoTime() - begin) * SHARE);
                }
            } catch (InterruptedException e) {
                // Nobody has reason to; the end is written anyway.
            }
        }
    }

    private static synchronized void write() {
        try {
            writeTo(place());
        } catch (IOException | RuntimeException | OutOfMemoryError e) {
            say("cannot make a file for the recording: " + e);
        }
    }

    private static void writeTo(Path place) {
        Path part = place.resolveSibling(place.getFileName() + ".part");
        try {
            long elapsed = System.nanoTime() - BEGAN;
            try (Recording recording = new Recording(part.toFile(), STARTED, elapsed)) {
                Trees.each(recording);
                recording.end();
            }
            Files.move(part, place, StandardCopyOption.REPLACE_EXISTING);
        } catch (IOException | RuntimeException | OutOfMemoryError e) {
            say("cannot write " + place + ": " + e);
            part.toFile().delete();
        }
    }

    /**
     * Where the user says, with %p for the pid; otherwise named after program and pid, and with a number if
     * there is such a file: in a container every run may have the same pid.
     */
    private static Path place() throws IOException {
        if (place != null) {
            return place;
        }
        String asked = Settings.text("tare.output", null);
        if (asked != null) {
            place = Paths.get(asked.replace("%p", Program.pid())).toAbsolutePath();
            return place;
        }
        String name = Program.name() + "-" + Program.pid();
        for (int number = 1; ; number++) {
            String end = number == 1 ? ".tare" : "-" + number + ".tare";
            Path wanted = Paths.get(name + end).toAbsolutePath();
            try {
                // Whoever makes it has it.
                place = Files.createFile(wanted);
                return place;
            } catch (FileAlreadyExistsException e) {
                // Of an earlier run, or of another one at this moment.
            }
        }
    }

    /** Once for each thing. */
    private static void say(String what) {
        if (!what.equals(said)) {
            said = what;
            System.err.println("tare: " + what);
        }
    }
}
