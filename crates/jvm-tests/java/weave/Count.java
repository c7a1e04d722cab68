package weave;

import java.io.IOException;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Comparator;

/**
 * Runs the counted methods, and says what came out of them.
 *
 * <p>Usage: {@code weave.Count [MAP]}. With the map that {@code tare class weave} wrote, the counts
 * of the probe runtime follow: {@code count}, class, method, descriptor, then how often it was
 * entered, returned and threw, and its bytecodes.
 */
public final class Count {
    private Count() {}

    public static void main(String[] args) throws ReflectiveOperationException, IOException {
        PrintStream out = System.out;
        Class<?> subjects = Class.forName("weave.counted.Subjects");
        // HotSpot steps through no initialiser that runs because a bytecode needs the class.
        for (Class<?> inner : subjects.getDeclaredClasses()) {
            Class.forName(inner.getName());
        }
        out.println("subjects: " + subjects.getMethod("run").invoke(null));
        Method[] methods = Class.forName("weave.counted.Hand").getMethods();
        Arrays.sort(methods, Comparator.comparing(Method::getName));
        for (Method method : methods) {
            if (method.getDeclaringClass().getName().endsWith("Hand")) {
                out.println(method.getName() + ":" + values(method));
            }
        }
        if (args.length > 0) {
            report(Path.of(args[0]), out);
        }
    }

    private static String values(Method method) throws IllegalAccessException {
        StringBuilder text = new StringBuilder();
        for (int n : new int[] {0, 1, 2, 3, 7, 100}) {
            if (n == 100 && method.getName().equals("big")) {
                continue; // A million steps say no more than seventy thousand.
            }
            try {
                text.append(' ').append(method.invoke(null, n));
            } catch (InvocationTargetException e) {
                text.append(' ').append(e.getCause());
            }
        }
        return text.toString();
    }

    private static void report(Path map, PrintStream out)
            throws ReflectiveOperationException, IOException {
        Class<?> probe = Class.forName("java.lang.TareProbe");
        Method method = probe.getMethod("method", int.class);
        for (String line : Files.readAllLines(map)) {
            String[] parts = line.split("\t");
            long[] counts = (long[]) method.invoke(null, Integer.parseInt(parts[0]));
            out.println("count\t" + parts[1] + "\t" + parts[2] + "\t" + parts[3] + "\t" + parts[4]
                    + "\t" + counts[0] + "\t" + counts[1] + "\t" + counts[2] + "\t" + counts[3]);
        }
        Object[] totals = (Object[]) probe.getMethod("totals").invoke(null);
        for (int i = 0; i < totals.length; i += 2) {
            out.println("total\t" + totals[i] + "\t" + totals[i + 1]);
        }
    }
}
