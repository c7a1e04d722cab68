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
     * A thread has executed that many bytecodes.
     *
     * @param stack the methods under way, the outermost first
     * @param depth how many of the array's elements that are
     * @return how many it may execute until the next time; 0 leaves that as it is
     */
    long process(Method[] stack, int depth);

    /** The recording has ended, and the program goes on. */
    default void end() {}
}
