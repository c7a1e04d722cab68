import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.Scanner;

/** Work that is done through a proxy, whose class the JVM makes up with a number in its name. */
public final class Proxied {
    /** Not public, so that its proxies are classes of the program's own package. */
    interface Work {
        int burn(int x);
    }

    /** What burns the time; left out of recordings, so that it is the time of the proxy's method. */
    static final class Burner implements InvocationHandler {
        @Override
        public Object invoke(Object proxy, Method method, Object[] args) {
            int x = (Integer) args[0];
            for (int i = 0; i < 200_000; i++) {
                x = x * 31 + i;
            }
            return x;
        }
    }

    private static int sink;

    private Proxied() {}

    static int round(Work work, int x) {
        return work.burn(x) + 1;
    }

    public static void main(String[] args) {
        Class<?>[] types = {Work.class};
        Work work = (Work) Proxy.newProxyInstance(Proxied.class.getClassLoader(), types, new Burner());
        System.out.println("proxy " + work.getClass().getName());
        System.out.println("ready");
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine()) {
            String line = lines.nextLine();
            if (!line.startsWith("for ")) {
                break;
            }
            long end = System.nanoTime() + Long.parseLong(line.substring(4)) * 1_000_000;
            while (System.nanoTime() < end) {
                sink = round(work, sink);
            }
            System.out.println("done " + line);
        }
    }
}
