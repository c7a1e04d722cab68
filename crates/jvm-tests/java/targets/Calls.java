/** Calls itself as often as it is told to, and says how often that was. */
public class Calls {
    private static long calls;

    private int fib(int n) {
        calls++;
        return n < 2 ? n : fib(n - 1) + fib(n - 2);
    }

    public static void main(String[] arguments) {
        System.out.println("result " + new Calls().fib(Integer.parseInt(arguments[0])));
        System.out.println("count Calls.fib " + calls);
    }
}
