package tare.api;

/**
 * An agent for recordings that count every call: {@code tare record --bytecodes --agent-jar FILE}.
 *
 * <p>It runs on a thread of its own, one call after the other, and what it does is no part of the
 * profile. The program does not wait for it: when it does not keep up, calls are left out and
 * counted. Only before the program begins and when it ends it is waited for, for some seconds at
 * most.
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

    /**
     * The recording has ended, by itself or with the program; nothing is told after it. Called
     * once, unless the agent has thrown or hangs, or the JVM is killed. It may take two seconds:
     * then it is left behind, and a program that is about to end does so.
     */
    default void end() {}
}
