// Virtual threads, reached by method handles, so that the program compiles for 17 and uses them on 21+.
package shop.load;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;

public final class VirtualThreads {
    private final MethodHandle ofVirtual;
    private final MethodHandle name;
    private final MethodHandle start;

    /** Throws UnsupportedOperationException where there are none. */
    public VirtualThreads() {
        try {
            MethodHandles.Lookup lookup = MethodHandles.publicLookup();
            Class<?> builder = Class.forName("java.lang.Thread$Builder");
            Class<?> ofVirtualType = Class.forName("java.lang.Thread$Builder$OfVirtual");
            ofVirtual = lookup.findStatic(Thread.class, "ofVirtual", MethodType.methodType(ofVirtualType))
                    .asType(MethodType.methodType(Object.class));
            name = lookup.findVirtual(builder, "name", MethodType.methodType(builder, String.class))
                    .asType(MethodType.methodType(Object.class, Object.class, String.class));
            start = lookup.findVirtual(builder, "start", MethodType.methodType(Thread.class, Runnable.class))
                    .asType(MethodType.methodType(Thread.class, Object.class, Runnable.class));
            Object probe = ofVirtual.invokeExact();
        } catch (Throwable missing) {
            throw new UnsupportedOperationException("virtual threads need JDK 21 or newer, this is JDK "
                    + Runtime.version().feature(), missing);
        }
    }

    public Thread start(String threadName, Runnable body) {
        try {
            Object builder = ofVirtual.invokeExact();
            Object named = name.invokeExact(builder, threadName);
            return (Thread) start.invokeExact(named, body);
        } catch (RuntimeException | Error passed) {
            throw passed;
        } catch (Throwable impossible) {
            throw new AssertionError(impossible);
        }
    }
}
