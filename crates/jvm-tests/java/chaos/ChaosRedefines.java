/** Another agent redefines a class and has others loaded again, whatever is done to them meanwhile. */
final class ChaosRedefines implements Chaos.Work {
    private static final class TwoFaced {
        static String face() {
            return "face-one";
        }

        static int length(int times) {
            int sum = 0;
            for (int i = 0; i < times; i++) {
                sum += face().length();
            }
            return sum;
        }
    }

    @Override
    public void round(long number) throws Exception {
        boolean second = number % 2 == 1;
        Meddler.redefine(TwoFaced.class, "face-one", second ? "face-two" : "face-one");
        for (int i = 0; i < 100; i++) {
            Chaos.expect("a redefined class", 1, TwoFaced.face().equals(second ? "face-two" : "face-one") ? 1 : 0);
            Chaos.expect("its other method", 80, TwoFaced.length(10));
        }
        Meddler.retransform(number % 3 == 0 ? ChaosLocks.class : number % 3 == 1 ? ChaosComputes.class : java.util.ArrayList.class);
        // The JVM keeps what was changed while threads run it.
        Thread.sleep(150);
    }
}
