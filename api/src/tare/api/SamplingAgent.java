package tare.api;

/**
 * An agent for recordings that take samples: {@code tare record --bytecodes --every N --agent-jar FILE}.
 * It runs as an {@link ExactAgent} does.
 */
public interface SamplingAgent {
    /**
     * A thread has begun.
     *
     * @return how many bytecodes it may execute from one sample to the next; 0 leaves that as it is
     */
    long register(String thread);

    /**
     * A thread has executed that many bytecodes: a sample of the recording, each of which is told.
     *
     * @param stack the methods under way, the outermost first
     * @param depth how many of the array's elements that are
     * @return how many it may execute until the next time; 0 leaves that as it is
     */
    long process(Method[] stack, int depth);

    /**
     * The recording has ended, by itself or with the program; nothing is told after it. Called
     * once, unless the agent has thrown or hangs, or the JVM is killed. It may take two seconds:
     * then it is left behind, and a program that is about to end does so.
     */
    default void end() {}
}
