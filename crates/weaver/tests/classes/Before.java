import java.util.ArrayList;
import java.util.List;
import java.util.function.IntSupplier;

/** Constructors with statements before {@code super()} or {@code this()}. */
public class Before {
    static class Base {
        final int value;

        Base(int value) {
            this.value = value;
            if (value == 13) throw new IllegalStateException("base");
            seen();
        }

        void seen() { }
    }

    static class Checked extends Base {
        final String name;
        final List<Integer> made = new ArrayList<>();

        Checked(String name, int n) {
            if (name == null) throw new IllegalArgumentException("no name");
            int sum = 0;
            for (int i = 0; i < n; i++) {
                if (i % 3 == 0) continue;
                sum += i;
            }
            int length;
            try {
                length = Integer.parseInt(name) / n;
            } catch (NumberFormatException e) {
                length = name.length();
            } catch (ArithmeticException e) {
                throw new IllegalArgumentException("none", e);
            } finally {
                total++;
            }
            this.name = name;
            super(sum + length);
            made.add(value);
            try {
                made.add(100 / (value - 4));
            } catch (ArithmeticException e) {
                made.add(-1);
            }
        }

        Checked(Object lock, int[] numbers) {
            int most = 0;
            synchronized (lock) {
                for (int number : numbers) most = Math.max(most, number);
            }
            String text = switch (most) {
                case 0 -> null;
                case 1, 2 -> "few";
                default -> {
                    if (numbers.length > 3) throw new IllegalArgumentException("many");
                    yield String.valueOf(most);
                }
            };
            this(text, numbers.length);
            made.add(most);
        }

        @Override void seen() { total += name.length(); }
    }

    class Inner extends Base {
        Inner(int n) {
            IntSupplier later = () -> Before.this.hashes + n;
            var local = new Object() { int twice() { return 2 * n; } };
            super(later.getAsInt() + local.twice());
        }
    }

    static int total;
    int hashes = 7;

    static void run(StringBuilder out) {
        String[] names = {"four", "12", null, "x", ""};
        for (String name : names) {
            for (int n : new int[] {0, 1, 5, 6}) {
                try {
                    Checked made = new Checked(name, n);
                    out.append(made.value).append(made.made);
                } catch (RuntimeException e) {
                    out.append(e.getMessage());
                }
                out.append(' ');
            }
        }
        int[][] lists = {{}, {1}, {2, 1}, {9, 8, 7}, {1, 2, 3, 4}, null, {13}};
        for (int[] numbers : lists) {
            try {
                out.append(new Checked(out, numbers).made);
            } catch (RuntimeException e) {
                out.append(e.getClass().getSimpleName());
            }
            out.append(' ');
        }
        out.append(new Before().new Inner(3).value).append(' ').append(total).append('\n');
    }

    public static void main(String[] args) {
        StringBuilder first = new StringBuilder();
        run(first);
        System.out.print(first);
        int length = 0;
        for (int i = 0; i < 500; i++) {
            StringBuilder text = new StringBuilder();
            run(text);
            length += text.length();
        }
        System.out.println(length + " end");
    }
}
