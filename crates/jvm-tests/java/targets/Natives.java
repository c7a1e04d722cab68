/** What the tests' native library does (crates/test-natives), which is loaded as an agent. */
final class Natives {
    private Natives() {
    }

    /** Makes an exception appear in a thread wherever it is; false if it has ended. */
    static native boolean stop(Thread thread, Throwable exception);

    /** Runs a task from a native frame, through which exceptions pass. */
    static native void call(Runnable task);

    /** Runs a task from a native frame that ends exceptions; true if there was one. */
    static native boolean callAndCatch(Runnable task);

    /** Runs a task on a thread that the JVM did not start. */
    static native void callOnNewThread(Runnable task);

    /** Makes so many global references to an object, or weak ones, and deletes none of them. */
    static native void leakReferences(Object object, int number, boolean weak);

    /** Makes so many global references to an object, and deletes each. */
    static native void tidyReferences(Object object, int number);

    /** Puts a function over whatever makes global references now, or takes it out again; how often it was called. */
    static native long countReferences(boolean on);

    /** The address of the function that makes global references now. */
    static native long referenceFunction();

    /** Puts the calling thread, and those that it starts, under a filter that ends the process for perf events. */
    static native void filter();
}
