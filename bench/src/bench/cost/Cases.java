package bench.cost;

/**
 * The methods that are profiled. Each case has methods of its own, so that what the JVM learns of
 * one says nothing of another; drivers repeat a case and hand its results on, so that nothing can
 * be left out or done ahead.
 */
final class Cases {
    private Cases() {}

    /** A driver without its case; what it takes is the driver's own. */
    static int runNothing(int calls, int x) {
        for (int i = 0; i < calls; i++) {
            x += i;
        }
        return x;
    }

    // ---- methods of one length, called in a loop ----

    static int leaf5(int x) {
        return Work.spin(Work.n5, x);
    }

    static int leaf12(int x) {
        return Work.spin(Work.n12, x);
    }

    static int leaf50(int x) {
        return Work.spin(Work.n50, x);
    }

    static int leaf100(int x) {
        return Work.spin(Work.n100, x);
    }

    static int leaf400(int x) {
        return Work.spin(Work.n400, x);
    }

    static int leaf2us(int x) {
        return Work.spin(Work.n2k, x);
    }

    static int leaf20us(int x) {
        return Work.spin(Work.n20k, x);
    }

    static int runLeaf5(int calls, int x) {
        for (int i = 0; i < calls; i++) {
            x = leaf5(x);
        }
        return x;
    }

    static int runLeaf12(int calls, int x) {
        for (int i = 0; i < calls; i++) {
            x = leaf12(x);
        }
        return x;
    }

    static int runLeaf50(int calls, int x) {
        for (int i = 0; i < calls; i++) {
            x = leaf50(x);
        }
        return x;
    }

    static int runLeaf100(int calls, int x) {
        for (int i = 0; i < calls; i++) {
            x = leaf100(x);
        }
        return x;
    }

    static int runLeaf400(int calls, int x) {
        for (int i = 0; i < calls; i++) {
            x = leaf400(x);
        }
        return x;
    }

    static int runLeaf2us(int calls, int x) {
        for (int i = 0; i < calls; i++) {
            x = leaf2us(x);
        }
        return x;
    }

    static int runLeaf20us(int calls, int x) {
        for (int i = 0; i < calls; i++) {
            x = leaf20us(x);
        }
        return x;
    }

    // ---- work of another kind ----

    static int sum12(int x) {
        return Work.sum(Work.sum12, x);
    }

    static int runSum12(int calls, int x) {
        for (int i = 0; i < calls; i++) {
            x = sum12(x);
        }
        return x;
    }

    static int sum100(int x) {
        return Work.sum(Work.sum100, x);
    }

    static int runSum100(int calls, int x) {
        for (int i = 0; i < calls; i++) {
            x = sum100(x);
        }
        return x;
    }

    static int sum400(int x) {
        return Work.sum(Work.sum400, x);
    }

    static int runSum400(int calls, int x) {
        for (int i = 0; i < calls; i++) {
            x = sum400(x);
        }
        return x;
    }

    // ---- a chain: each calls the next, once ----

    static int chain100(int x) {
        return chain12(Work.spin(Work.n100, x));
    }

    static int chain12(int x) {
        return chain50(Work.spin(Work.n12, x));
    }

    static int chain50(int x) {
        return chain5(Work.spin(Work.n50, x));
    }

    static int chain5(int x) {
        return Work.spin(Work.n5, x);
    }

    static int runChain100(int calls, int x) {
        for (int i = 0; i < calls; i++) {
            x = chain100(x);
        }
        return x;
    }

    static int runChain12(int calls, int x) {
        for (int i = 0; i < calls; i++) {
            x = chain12(x);
        }
        return x;
    }

    static int runChain50(int calls, int x) {
        for (int i = 0; i < calls; i++) {
            x = chain50(x);
        }
        return x;
    }

    static int runChain5(int calls, int x) {
        for (int i = 0; i < calls; i++) {
            x = chain5(x);
        }
        return x;
    }

    // ---- a fan: one calls many ----

    static int fan400(int x) {
        x = Work.spin(Work.n400, x);
        for (int i = 0; i < 20; i++) {
            x = fanned12(x);
        }
        return x;
    }

    static int fanned12(int x) {
        return Work.spin(Work.n12, x);
    }

    static int runFan400(int calls, int x) {
        for (int i = 0; i < calls; i++) {
            x = fan400(x);
        }
        return x;
    }

    static int runFanned12(int calls, int x) {
        for (int i = 0; i < calls; i++) {
            x = fanned12(x);
        }
        return x;
    }

    // ---- a mix: for one call of 20 µs, 16 of 400 ns and 2,000 of 5 ns ----

    static int mixed5(int x) {
        return Work.spin(Work.n5, x);
    }

    static int mixed400(int x) {
        return Work.spin(Work.n400, x);
    }

    static int mixed20us(int x) {
        return Work.spin(Work.n20k, x);
    }

    static int runMix(int calls, int x) {
        for (int i = 0; i < calls; i++) {
            x = mixed20us(x);
            for (int j = 0; j < 16; j++) {
                x = mixed400(x);
                for (int k = 0; k < 125; k++) {
                    x = mixed5(x);
                }
            }
        }
        return x;
    }

    static int runMixed5(int calls, int x) {
        for (int i = 0; i < calls; i++) {
            x = mixed5(x);
        }
        return x;
    }

    static int runMixed400(int calls, int x) {
        for (int i = 0; i < calls; i++) {
            x = mixed400(x);
        }
        return x;
    }

    static int runMixed20us(int calls, int x) {
        for (int i = 0; i < calls; i++) {
            x = mixed20us(x);
        }
        return x;
    }

    // ---- one call site, three implementations ----

    interface Shape {
        int area(int x);
    }

    static final class Shape12 implements Shape {
        public int area(int x) {
            return Work.spin(Work.n12, x);
        }
    }

    static final class Shape50 implements Shape {
        public int area(int x) {
            return Work.spin(Work.n50, x);
        }
    }

    static final class Shape100 implements Shape {
        public int area(int x) {
            return Work.spin(Work.n100, x);
        }
    }

    static final Shape[] ALL = {new Shape12(), new Shape50(), new Shape100()};
    static final Shape[] ONLY12 = {ALL[0], ALL[0], ALL[0]};
    static final Shape[] ONLY50 = {ALL[1], ALL[1], ALL[1]};
    static final Shape[] ONLY100 = {ALL[2], ALL[2], ALL[2]};

    static int runShapes(Shape[] shapes, int calls, int x) {
        for (int i = 0; i < calls; i++) {
            for (Shape shape : shapes) {
                x = shape.area(x);
            }
        }
        return x;
    }

    // ---- every fourth call ends by an exception ----

    static final class Signal extends RuntimeException {
        Signal() {
            super(null, null, false, false);
        }
    }

    static final Signal SIGNAL = new Signal();
    private static int passed;

    static int thrower100(int x, int i) {
        x = Work.spin(Work.n100, x);
        if ((i & 3) == 3) {
            passed = x;
            throw SIGNAL;
        }
        return x;
    }

    static int catcher400(int x, int i) {
        x = Work.spin(Work.n400, x);
        try {
            return thrower100(x, i);
        } catch (Signal signal) {
            return passed;
        }
    }

    static int runCatcher400(int calls, int x) {
        for (int i = 0; i < calls; i++) {
            x = catcher400(x, i);
        }
        return x;
    }

    /** What the catcher does alone: as its truth, this and nothing else. */
    static int runCatcherAlone(int calls, int x) {
        for (int i = 0; i < calls; i++) {
            x = Work.spin(Work.n400, x);
        }
        return x;
    }

    // ---- two threads ----

    static int paired100(int x) {
        return Work.spin(Work.n100, x);
    }

    static int runPaired100(int calls, int x) {
        for (int i = 0; i < calls; i++) {
            x = paired100(x);
        }
        return x;
    }
}
