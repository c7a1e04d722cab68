import java.io.BufferedReader;
import java.io.InputStreamReader;

/**
 * A program with another agent, {@link Meddler}, that changes it while it runs. Commands:
 * {@code work} calls {@link Subject} a thousand times and prints what it said last;
 * {@code redefine FROM TO} has the agent replace a constant of it; {@code thread} has it load
 * java.lang.Thread again, and tries that threads still work; {@code hold} and {@code release} have it
 * keep everybody waiting who loads a class again.
 */
public final class Meddled {
    private Meddled() {
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        for (String line; (line = in.readLine()) != null; ) {
            String[] words = line.split(" ");
            switch (words[0]) {
                case "work":
                    System.out.println("work: " + work());
                    break;
                case "redefine":
                    Meddler.redefine(Subject.class, words[1], words[2]);
                    System.out.println("redefine: done");
                    break;
                case "thread":
                    Meddler.retransform(Thread.class);
                    System.out.println("thread: " + Meddler.seen() + " " + onAnotherThread());
                    break;
                case "hold":
                case "release":
                    Meddler.hold(words[0].equals("hold"));
                    System.out.println(words[0] + ": done");
                    break;
                default:
                    throw new IllegalArgumentException(line);
            }
        }
    }

    private static String work() {
        String last = "";
        for (int i = 0; i < 1000; i++) {
            last = new Subject().say(i % 3);
        }
        return last;
    }

    private static String onAnotherThread() throws InterruptedException {
        String[] said = new String[1];
        Thread thread = new Thread(() -> said[0] = work(), "another");
        thread.start();
        thread.join();
        return said[0];
    }

    static final class Subject {
        String say(int depth) {
            return depth == 0 ? word() : say(depth - 1);
        }

        private String word() {
            return "as-it-was";
        }
    }
}
