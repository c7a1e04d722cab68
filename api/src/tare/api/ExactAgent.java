package tare.api;

/**
 * An agent for recordings that count every call: {@code tare record --bytecodes --agent-jar FILE}.
 *
 * <p>It runs on a thread of its own, one call after the other, and what it does is no part of the
 * profile. The program never waits for it: when it does not keep up, calls are left out and counted.
 */
public interface ExactAgent {
    /**
     * A thread has begun. Its whole tree is below the root, and grows while the program runs.
     *
     * @return how many bytecodes it may execute until {@link #process} is called; 0 leaves that as it is
     */
    long register(Context root);

    /**
     * A thread has executed that many bytecodes.
     *
     * @param context where it was
     * @return how many it may execute until the next time; 0 leaves that as it is
     */
    long process(Context context);

    /** The recording has ended, and the program goes on. */
    default void end() {}
}
