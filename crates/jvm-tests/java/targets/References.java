// Has native code make global references to objects, as it is told on standard input, one line at a time, and
// ends with it.

import java.io.BufferedReader;
import java.io.InputStreamReader;

public final class References {
    private static final Object held = new Held();

    private References() {
    }

    static final class Held {
    }

    public static void main(String[] args) throws Exception {
        System.out.println("ready");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.strip().split(" ");
            int number = words.length > 1 ? Integer.parseInt(words[1]) : 0;
            System.out.println(line.strip() + ": " + obey(words[0], number));
        }
    }

    private static String obey(String word, int number) throws Exception {
        switch (word) {
            case "leak":
                return leak(number);
            case "weak":
                Natives.leakReferences(held, number, true);
                return "done";
            case "tidy":
                return tidy(number);
            case "crowd":
                return crowd(number);
            case "function":
                return Long.toHexString(Natives.referenceFunction());
            case "over":
                return "called " + Natives.countReferences(true);
            case "under":
                return "called " + Natives.countReferences(false);
            default:
                return "unknown";
        }
    }

    static String leak(int number) {
        Natives.leakReferences(held, number, false);
        return "done";
    }

    static String tidy(int number) {
        Natives.tidyReferences(held, number);
        return "done";
    }

    /** From several threads at once. */
    static String crowd(int number) throws Exception {
        Thread[] threads = new Thread[4];
        for (int i = 0; i < threads.length; i++) {
            threads[i] = new Thread(() -> tidy(number), "crowd " + i);
            threads[i].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        return "done";
    }
}
