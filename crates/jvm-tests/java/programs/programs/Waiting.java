package programs;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;

/** Runs two of the programs for each line that it is given, until its input ends. */
public final class Waiting {
    private Waiting() {}

    public static void main(String[] args) throws IOException, ReflectiveOperationException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        while (in.readLine() != null) {
            All.main(new String[] {"Exceptions", "Sorting"});
            System.out.println("done");
        }
    }
}
