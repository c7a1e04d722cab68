package tare.api;

import java.util.HashMap;
import java.util.Map;
import java.util.function.BiFunction;
import java.util.function.LongBinaryOperator;

/**
 * Between Tare inside the JVM and an agent. Not for agents: they are given contexts and methods.
 *
 * <p>Tare's own classes and these see no type of each other; what passes between them are numbers, texts
 * and interfaces of the JDK.
 */
public final class Bridge implements LongBinaryOperator {
    static final int NAME = 0;
    static final int CALLS = 1;
    static final int BYTECODES = 2;
    static final int CALLER = 3;
    static final int CALLEES = 4;
    static final int THREAD = 5;
    static final int THREAD_ID = 6;

    private static final int REGISTER = 0;
    private static final int PROCESS = 1;

    private final Object agent;
    private final BiFunction<Integer, Long, Object> answers;
    private final Map<String, Method> methods = new HashMap<>();
    private Method[] stack = new Method[256];

    private Bridge(Object agent, BiFunction<Integer, Long, Object> answers) {
        this.agent = agent;
        this.answers = answers;
    }

    /** Called by Tare. */
    public static LongBinaryOperator open(
            String agent, boolean samples, BiFunction<Integer, Long, Object> answers)
            throws ReflectiveOperationException {
        Class<?> type = Class.forName(agent, true, Bridge.class.getClassLoader());
        Object made = type.getDeclaredConstructor().newInstance();
        Class<?> wanted = samples ? SamplingAgent.class : ExactAgent.class;
        if (!wanted.isInstance(made)) {
            String how = samples ? "with --every" : "without --every";
            throw new ClassCastException(agent + " is no " + wanted.getSimpleName() + ", which is needed " + how);
        }
        return new Bridge(made, answers);
    }

    /** Called by Tare: what has happened, and where. */
    @Override
    public long applyAsLong(long what, long node) {
        if (agent instanceof SamplingAgent) {
            SamplingAgent sampling = (SamplingAgent) agent;
            if (what == REGISTER) {
                return sampling.register(new Context(this, node).thread());
            }
            if (what == PROCESS) {
                int depth = fill(node);
                return sampling.process(stack, depth);
            }
            sampling.end();
            return 0;
        }
        ExactAgent exact = (ExactAgent) agent;
        if (what == REGISTER) {
            return exact.register(new Context(this, node));
        }
        if (what == PROCESS) {
            return exact.process(new Context(this, node));
        }
        exact.end();
        return 0;
    }

    /** Puts the methods under way into the stack; how many there are. */
    private int fill(long node) {
        int depth = 0;
        for (Object at = node; at != null && method((Long) at) != null; at = ask(CALLER, (Long) at)) {
            if (depth == stack.length) {
                stack = java.util.Arrays.copyOf(stack, 2 * depth);
            }
            stack[depth++] = method((Long) at);
        }
        for (int i = 0; i < depth / 2; i++) {
            Method inner = stack[i];
            stack[i] = stack[depth - 1 - i];
            stack[depth - 1 - i] = inner;
        }
        return depth;
    }

    Object ask(int question, long node) {
        return answers.apply(question, node);
    }

    long number(int question, long node) {
        Object number = ask(question, node);
        return number == null ? 0 : (Long) number;
    }

    Method method(long node) {
        Object name = ask(NAME, node);
        return name == null ? null : methods.computeIfAbsent((String) name, Bridge::parse);
    }

    /** Class, method and descriptor. */
    private static Method parse(String name) {
        String[] parts = name.split(" ");
        return new Method(parts[0].replace('/', '.'), parts[1], parts[2]);
    }
}
