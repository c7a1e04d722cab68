package programs;

/** Loops in loops over arrays of arrays, with longs and doubles. */
public final class Matrices {
    private Matrices() {}

    public static double run() {
        double[][] a = made(14, 3);
        double[][] b = made(14, 5);
        double[][] product = multiply(a, b);
        long hash = 0;
        for (double[] row : product) {
            for (double cell : row) {
                hash = hash * 31 + Math.round(cell);
            }
        }
        return hash + determinant(a);
    }

    private static double[][] made(int size, int seed) {
        double[][] out = new double[size][size];
        for (int i = 0; i < size; i++) {
            for (int j = 0; j < size; j++) {
                out[i][j] = (i * seed + j * j) % 11 + (i == j ? 20 : 0);
            }
        }
        return out;
    }

    private static double[][] multiply(double[][] a, double[][] b) {
        int size = a.length;
        double[][] out = new double[size][size];
        for (int i = 0; i < size; i++) {
            for (int j = 0; j < size; j++) {
                double sum = 0;
                for (int k = 0; k < size; k++) {
                    sum += a[i][k] * b[k][j];
                }
                out[i][j] = sum;
            }
        }
        return out;
    }

    private static double determinant(double[][] m) {
        double[][] a = new double[m.length][];
        for (int i = 0; i < m.length; i++) {
            a[i] = m[i].clone();
        }
        double product = 1;
        for (int i = 0; i < a.length; i++) {
            product *= a[i][i] / 20;
            for (int j = i + 1; j < a.length; j++) {
                double factor = a[j][i] / a[i][i];
                for (int k = i; k < a.length; k++) {
                    a[j][k] -= factor * a[i][k];
                }
            }
        }
        return product;
    }
}
