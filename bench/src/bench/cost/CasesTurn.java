package bench.cost;

import java.util.function.IntBinaryOperator;

/** The outermost method that is profiled, in a class of its own: who counts it changes no other method. */
final class CasesTurn {
    private CasesTurn() {}

    static int turn(IntBinaryOperator driver, int calls, int x) {
        return driver.applyAsInt(calls, x);
    }
}
