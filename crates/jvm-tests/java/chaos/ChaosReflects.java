import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.invoke.VarHandle;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.function.IntBinaryOperator;

/** Reflection, proxies, method handles and var handles. */
final class ChaosReflects implements Chaos.Work {
    private static final MethodHandles.Lookup LOOKUP = MethodHandles.lookup();
    private volatile long counter;

    int add(int a, int b) {
        return a + b;
    }

    static int fail(int code) {
        throw new IllegalStateException(Integer.toString(code));
    }

    @Override
    public void round(long number) throws Throwable {
        Method add = ChaosReflects.class.getDeclaredMethod("add", int.class, int.class);
        Method fail = ChaosReflects.class.getDeclaredMethod("fail", int.class);
        for (int i = 0; i < 50; i++) {
            Chaos.expect("a method", i + 5, (int) add.invoke(this, i, 5));
            try {
                fail.invoke(null, i);
                Chaos.wrong("a method that fails did not");
            } catch (InvocationTargetException e) {
                Chaos.expect("a failure", i, Integer.parseInt(e.getCause().getMessage()));
            }
        }
        InvocationHandler handler = (proxy, method, words) ->
                method.getName().equals("applyAsInt") ? (int) words[0] * (int) words[1] : 0;
        IntBinaryOperator proxy = (IntBinaryOperator) Proxy.newProxyInstance(
                ChaosReflects.class.getClassLoader(), new Class<?>[] {IntBinaryOperator.class}, handler);
        MethodType type = MethodType.methodType(int.class, int.class, int.class);
        MethodHandle handle = LOOKUP.findVirtual(ChaosReflects.class, "add", type).bindTo(this);
        MethodHandle five = MethodHandles.insertArguments(handle, 1, 5);
        MethodHandle throwing = LOOKUP.findStatic(
                ChaosReflects.class, "fail", MethodType.methodType(int.class, int.class));
        MethodHandle caught = MethodHandles.catchException(throwing, IllegalStateException.class,
                MethodHandles.dropArguments(MethodHandles.constant(int.class, 9), 0, IllegalStateException.class));
        VarHandle count = LOOKUP.findVarHandle(ChaosReflects.class, "counter", long.class);
        long before = counter;
        for (int i = 0; i < 200; i++) {
            Chaos.expect("a proxy", 3 * i, proxy.applyAsInt(3, i));
            Chaos.expect("a handle", i + 5, (int) five.invokeExact(i));
            Chaos.expect("a handler", 9, (int) caught.invokeExact(i));
            count.getAndAdd(this, 1L);
        }
        Chaos.expect("a counter", before + 200, counter);
    }
}
