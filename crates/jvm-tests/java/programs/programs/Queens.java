package programs;

/** The queens' puzzle by recursion, and two functions that call each other. */
public final class Queens {
    private Queens() {}

    public static int run() {
        return place(7, 0, 0, 0, 0) * 10000 + hofstadterFemale(14) * 10 + ackermann(2, 4) % 10;
    }

    private static int place(int size, int row, int columns, int left, int right) {
        if (row == size) {
            return 1;
        }
        int found = 0;
        for (int free = (1 << size) - 1 & ~(columns | left | right); free != 0; free &= free - 1) {
            int bit = free & -free;
            found += place(size, row + 1, columns | bit, (left | bit) << 1, (right | bit) >> 1);
        }
        return found;
    }

    private static int hofstadterFemale(int n) {
        return n == 0 ? 1 : n - hofstadterMale(hofstadterFemale(n - 1));
    }

    private static int hofstadterMale(int n) {
        return n == 0 ? 0 : n - hofstadterFemale(hofstadterMale(n - 1));
    }

    private static int ackermann(int m, int n) {
        if (m == 0) {
            return n + 1;
        }
        int result = ackermann(m - 1, n == 0 ? 1 : ackermann(m, n - 1));
        return result;
    }
}
