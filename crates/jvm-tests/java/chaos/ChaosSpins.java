import java.lang.invoke.CallSite;
import java.lang.invoke.LambdaMetafactory;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.function.IntUnaryOperator;
import java.util.function.LongUnaryOperator;

/** Hidden classes: of class files, and those that the JDK makes of lambdas, anew in each round. */
final class ChaosSpins implements Chaos.Work {
    private static final MethodHandles.Lookup LOOKUP = MethodHandles.lookup();
    private final byte[] bytes = ChaosLoads.classFile("ChaosHidden");

    private static int twice(int value) {
        return value * 2;
    }

    @Override
    public void round(long number) throws Throwable {
        MethodHandle twice =
                LOOKUP.findStatic(ChaosSpins.class, "twice", MethodType.methodType(int.class, int.class));
        MethodType erased = MethodType.methodType(int.class, int.class);
        for (int i = 0; i < 6; i++) {
            CallSite site = LambdaMetafactory.metafactory(
                    LOOKUP, "applyAsInt", MethodType.methodType(IntUnaryOperator.class), erased, twice, erased);
            IntUnaryOperator lambda = (IntUnaryOperator) site.getTarget().invokeExact();
            Chaos.expect("a lambda", 14 + 2 * i, lambda.applyAsInt(7 + i));
        }
        for (int i = 0; i < 4; i++) {
            MethodHandles.Lookup hidden = LOOKUP.defineHiddenClass(bytes, true);
            LongUnaryOperator guest = (LongUnaryOperator) hidden.findConstructor(
                    hidden.lookupClass(), MethodType.methodType(void.class)).invoke();
            Chaos.expect("a hidden class", 328_350, guest.applyAsLong(100));
        }
        long captured = number;
        java.util.function.LongSupplier supplier = () -> captured + 1;
        Chaos.expect("a captured value", number + 1, supplier.getAsLong());
        String text = "round " + number + ", " + captured + '.';
        Chaos.expect("a text", 1, text.endsWith(", " + number + ".") ? 1 : 0);
    }
}
