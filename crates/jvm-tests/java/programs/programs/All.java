package programs;

import java.io.PrintStream;

/**
 * Twelve small programs, one after the other, or those that are named: {@code programs.All
 * [NAME…]}. Each does the same in every run (but {@link Chance}, which only runs by name), and says
 * what came out.
 *
 * <p>HotSpot posts no step at the same bytecode of the same method twice in a row, so no method
 * here calls itself and then returns at once: its caller's return would not be seen.
 */
public final class All {
    private static final String[] NAMES = {
        "Compression", "Exceptions", "Expressions", "Json", "Lambdas", "Machine", "Matching",
        "Matrices", "Monitors", "Queens", "Sorting", "Threads",
    };

    private All() {}

    public static void main(String[] args) throws ReflectiveOperationException {
        PrintStream out = System.out;
        for (String name : args.length > 0 ? args : NAMES) {
            Class<?> program = Class.forName("programs." + name);
            // HotSpot steps through no initialiser that runs because a bytecode needs the class.
            for (Class<?> inner : program.getDeclaredClasses()) {
                Class.forName(inner.getName());
            }
            out.println(name + ": " + program.getMethod("run").invoke(null));
        }
    }
}
