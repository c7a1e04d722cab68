package tare.runtime;

import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.Comparator;

/**
 * Measures what bytecodes cost on the JVM that it runs on: {@code java -cp tare-runtime.jar tare.runtime.Target}. It prints the nanoseconds
 * that one turn of each kernel takes; {@code tare calibrate-target} makes costs of kinds of bytecodes of them.
 */
public final class Target {
    /** Nanoseconds of a round at least, and rounds of a kernel: enough for compilers to come to their end. */
    private static final long ROUND = 4_000_000;
    private static final int ROUNDS = 40;

    private static volatile int sink;

    private Target() {}

    public static void main(String[] arguments) throws ReflectiveOperationException {
        System.out.println("jvm " + Settings.text("java.vm.name", "?") + " " + Settings.text("java.runtime.version", "?")
                + ", " + Settings.text("java.vm.info", "?") + ", " + Settings.text("os.arch", "?"));
        Method[] kernels = Kernels.class.getDeclaredMethods();
        Arrays.sort(kernels, new Comparator<Method>() {
            @Override
            public int compare(Method a, Method b) {
                return a.getName().compareTo(b.getName());
            }
        });
        for (Method kernel : kernels) {
            if (kernel.getParameterTypes().length == 1 && !kernel.isSynthetic()) {
                System.out.println("kernel " + kernel.getName() + " " + measure(kernel));
            }
        }
    }

    /** The least that a turn took, in nanoseconds. */
    private static double measure(Method kernel) throws ReflectiveOperationException {
        int turns = 1000;
        double least = Double.MAX_VALUE;
        for (int round = 0; round < ROUNDS;) {
            long begin = System.nanoTime();
            sink = (Integer) kernel.invoke(null, turns);
            long took = System.nanoTime() - begin;
            if (took < ROUND && turns < 1 << 30) {
                turns *= 2;
                continue;
            }
            least = Math.min(least, (double) took / turns);
            round++;
        }
        return least;
    }
}
