package programs;

/** The same numbers sorted in three ways. */
public final class Sorting {
    private Sorting() {}

    public static int run() {
        int[] numbers = new int[400];
        int state = 42;
        for (int i = 0; i < numbers.length; i++) {
            state = state * 1_103_515_245 + 12_345;
            numbers[i] = state >>> 16;
        }
        int[] quick = numbers.clone();
        quick(quick, 0, quick.length - 1);
        int[] merged = numbers.clone();
        merge(merged, new int[merged.length], 0, merged.length);
        int[] heaped = numbers.clone();
        heap(heaped);
        int hash = 0;
        for (int i = 0; i < numbers.length; i++) {
            if (quick[i] != merged[i] || quick[i] != heaped[i]) {
                return -i;
            }
            hash = hash * 31 + quick[i];
        }
        return hash;
    }

    private static int quick(int[] a, int low, int high) {
        int i = low;
        int j = high;
        int pivot = a[low + high >>> 1];
        while (i <= j) {
            while (a[i] < pivot) {
                i++;
            }
            while (a[j] > pivot) {
                j--;
            }
            if (i <= j) {
                swap(a, i++, j--);
            }
        }
        int sorted = 0;
        if (low < j) {
            sorted += quick(a, low, j);
        }
        if (i < high) {
            sorted += quick(a, i, high);
        }
        return sorted + 1;
    }

    private static void merge(int[] a, int[] room, int from, int to) {
        if (to - from < 2) {
            return;
        }
        int middle = from + to >>> 1;
        merge(a, room, from, middle);
        merge(a, room, middle, to);
        System.arraycopy(a, from, room, from, to - from);
        int i = from;
        int j = middle;
        for (int k = from; k < to; k++) {
            a[k] = j >= to || i < middle && room[i] <= room[j] ? room[i++] : room[j++];
        }
    }

    private static void heap(int[] a) {
        for (int i = a.length / 2; i >= 0; i--) {
            sink(a, i, a.length);
        }
        for (int end = a.length - 1; end > 0; end--) {
            swap(a, 0, end);
            sink(a, 0, end);
        }
    }

    private static void sink(int[] a, int at, int end) {
        for (int child = 2 * at + 1; child < end; child = 2 * at + 1) {
            if (child + 1 < end && a[child + 1] > a[child]) {
                child++;
            }
            if (a[at] >= a[child]) {
                return;
            }
            swap(a, at, child);
            at = child;
        }
    }

    private static void swap(int[] a, int i, int j) {
        int t = a[i];
        a[i] = a[j];
        a[j] = t;
    }
}
