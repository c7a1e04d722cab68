package programs;

/** A small LZ77: finds repetitions, writes them as distances and lengths, and reads them back. */
public final class Compression {
    private Compression() {}

    public static int run() {
        byte[] text = new byte[1500];
        for (int i = 0; i < text.length; i++) {
            text[i] = (byte) ("abcabdabe".charAt(i * i % 9) + (i >> 9));
        }
        int[] packed = new int[text.length * 2];
        int length = pack(text, packed);
        byte[] back = unpack(packed, length, text.length);
        for (int i = 0; i < text.length; i++) {
            if (back[i] != text[i]) {
                return -1;
            }
        }
        return length;
    }

    private static int pack(byte[] text, int[] out) {
        int at = 0;
        int to = 0;
        while (at < text.length) {
            int best = 0;
            int distance = 0;
            for (int back = 1; back <= 40 && back <= at; back++) {
                int same = matching(text, at - back, at);
                if (same > best) {
                    best = same;
                    distance = back;
                }
            }
            if (best < 3) {
                out[to++] = text[at++];
            } else {
                out[to++] = -distance;
                out[to++] = best;
                at += best;
            }
        }
        return to;
    }

    private static int matching(byte[] text, int from, int at) {
        int n = 0;
        while (at + n < text.length && n < 60 && text[from + n] == text[at + n]) {
            n++;
        }
        return n;
    }

    private static byte[] unpack(int[] packed, int length, int size) {
        byte[] out = new byte[size];
        int to = 0;
        for (int i = 0; i < length; i++) {
            if (packed[i] >= 0) {
                out[to++] = (byte) packed[i];
            } else {
                int from = to + packed[i];
                for (int n = packed[++i]; n > 0; n--) {
                    out[to++] = out[from++];
                }
            }
        }
        return out;
    }
}
