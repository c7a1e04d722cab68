package tare.examples;

import java.util.HashSet;
import java.util.Set;
import tare.api.Context;
import tare.api.ExactAgent;

/** Prints, once a thread, where it was when it had executed as many bytecodes as it may. */
public final class BudgetGuard implements ExactAgent {
    private static final long BUDGET = Long.getLong("tare.budget", 100_000_000);
    private static final long NEVER = Integer.MAX_VALUE;
    private final Set<String> told = new HashSet<>();

    @Override
    public long register(Context root) {
        return BUDGET;
    }

    @Override
    public long process(Context context) {
        Context root = context;
        while (root.caller() != null) {
            root = root.caller();
        }
        long executed = executed(root);
        if (executed < BUDGET) {
            return BUDGET - executed;
        }
        // What waited in the ring while the first was told of comes after it.
        if (!told.add(context.thread())) {
            return NEVER;
        }
        StringBuilder text = new StringBuilder();
        text.append(context.thread()).append(" is over its budget of ").append(BUDGET);
        text.append(" bytecodes, in:\n");
        for (Context at = context; at.method() != null; at = at.caller()) {
            text.append("    ").append(at.method()).append('\n');
        }
        System.err.print(text);
        return NEVER;
    }

    private static long executed(Context context) {
        long sum = context.bytecodes();
        for (Context callee : context.callees()) {
            sum += executed(callee);
        }
        return sum;
    }
}
