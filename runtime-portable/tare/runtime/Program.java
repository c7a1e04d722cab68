package tare.runtime;

import java.io.File;
import java.io.IOException;

/** What is known of the program that runs. */
final class Program {
    private Program() {}

    /** The main class or jar, as the JVM was told. */
    static String main() {
        String command = Settings.text("sun.java.command", "");
        int end = command.indexOf(' ');
        return end < 0 ? command : command.substring(0, end);
    }

    /** The last part of it, fit for the name of a file. */
    static String name() {
        String main = main();
        if (main.endsWith(".jar")) {
            return new File(main).getName().replace(".jar", "");
        }
        String name = main.substring(Math.max(main.lastIndexOf('.'), main.lastIndexOf('/')) + 1);
        return name.isEmpty() ? "java" : name;
    }

    static String pid() {
        try {
            Class<?> handle = Class.forName("java.lang.ProcessHandle");
            Object own = handle.getMethod("current").invoke(null);
            return handle.getMethod("pid").invoke(own).toString();
        } catch (ReflectiveOperationException e) {
            return pidOfLinux();
        }
    }

    /** Java 8 has no word for it. */
    private static String pidOfLinux() {
        try {
            String pid = new File("/proc/self").getCanonicalFile().getName();
            return pid.matches("\\d+") ? pid : "0";
        } catch (IOException e) {
            return "0";
        }
    }
}
