package tare.api;

/**
 * A method, called along one chain of callers, in one thread; or the root above them all. It shows the
 * figures of the moment in which it is asked. Of a recording that has ended it knows nothing more.
 */
public final class Context {
    private final Bridge bridge;
    private final long node;

    Context(Bridge bridge, long node) {
        this.bridge = bridge;
        this.node = node;
    }

    /** Null for the root. */
    public Method method() {
        return bridge.method(node);
    }

    /** How often it was entered. */
    public long calls() {
        return bridge.number(Bridge.CALLS, node);
    }

    /** What it executed itself. */
    public long bytecodes() {
        return bridge.number(Bridge.BYTECODES, node);
    }

    /** Null for the root. */
    public Context caller() {
        Object caller = bridge.ask(Bridge.CALLER, node);
        return caller == null ? null : new Context(bridge, (Long) caller);
    }

    /** Those whose figures lie in a rest, for lack of memory, are not among them. */
    public Context[] callees() {
        Object found = bridge.ask(Bridge.CALLEES, node);
        long[] nodes = found == null ? new long[0] : (long[]) found;
        Context[] callees = new Context[nodes.length];
        for (int i = 0; i < nodes.length; i++) {
            callees[i] = new Context(bridge, nodes[i]);
        }
        return callees;
    }

    /** The name of its thread. */
    public String thread() {
        return String.valueOf(bridge.ask(Bridge.THREAD, node));
    }

    /** The number of its thread. */
    public long threadId() {
        return bridge.number(Bridge.THREAD_ID, node);
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Context && ((Context) other).node == node;
    }

    @Override
    public int hashCode() {
        return Long.hashCode(node);
    }

    /** The methods from the outermost on. */
    @Override
    public String toString() {
        Context caller = caller();
        Method method = method();
        String before = caller == null ? "" : caller.toString();
        return method == null ? before : before.isEmpty() ? method.toString() : before + " > " + method;
    }
}
