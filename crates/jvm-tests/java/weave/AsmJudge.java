package weave;

import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * A second judge beside the JVM: ASM's CheckClassAdapter, which must be on the class path.
 *
 * <p>Usage: {@code weave.AsmJudge OUT JAR… -- JAR…}: the jars to judge, then the jars that are asked
 * for superclasses (none for classes of the JDK, which the running one knows). OUT gets one line
 * per class with a fault: {@code fault}, class, first line of the reason; then the totals. What
 * ASM itself cannot judge, because a class that it wants to look at is not there, is {@code unknown}.
 */
public final class AsmJudge {
    private AsmJudge() {}

    public static void main(String[] args) throws Throwable {
        List<String> jars = new ArrayList<>(List.of(args).subList(1, args.length));
        int mark = jars.indexOf("--");
        List<String> context = jars.subList(mark + 1, jars.size());
        Jars judged = new Jars(jars.subList(0, mark), false);
        ClassLoader loader =
                context.isEmpty() ? ClassLoader.getSystemClassLoader() : new Jars(context, false);

        // Without ASM at compile time; whoever has no Maven still compiles this file.
        MethodHandles.Lookup lookup = MethodHandles.lookup();
        Class<?> readerType = Class.forName("org.objectweb.asm.ClassReader");
        Class<?> checker = Class.forName("org.objectweb.asm.util.CheckClassAdapter");
        MethodHandle reader =
                lookup.findConstructor(readerType, MethodType.methodType(void.class, byte[].class));
        MethodHandle verify = lookup.findStatic(checker, "verify", MethodType.methodType(
                void.class, readerType, ClassLoader.class, boolean.class, PrintWriter.class));

        int seen = 0;
        try (PrintWriter out = new PrintWriter(Files.newBufferedWriter(Path.of(args[0])))) {
            for (String name : judged.names()) {
                seen++;
                String fault = judge(judged.bytes(name), reader, verify, loader);
                if (fault != null) {
                    boolean missing = fault.contains("TypeNotPresentException")
                            || fault.contains("NoClassDefFoundError")
                            || fault.contains("ClassNotFoundException")
                            || fault.contains("IllegalAccessError");
                    String line = fault.lines().findFirst().orElse("").replaceAll("\\s+", " ");
                    out.println((missing ? "unknown" : "fault") + "\t" + name + "\t" + line);
                }
            }
            out.println("seen\t" + seen);
        }
    }

    private static String judge(
            byte[] bytes, MethodHandle reader, MethodHandle verify, ClassLoader loader) {
        StringWriter text = new StringWriter();
        try {
            Object parsed = reader.invoke(bytes);
            PrintWriter to = new PrintWriter(text);
            verify.invoke(parsed, loader, false, to);
            to.flush();
        } catch (Throwable e) {
            return e.toString();
        }
        return text.getBuffer().isEmpty() ? null : text.toString();
    }
}
