package tare.runtime;

import java.nio.charset.StandardCharsets;

/** Rows of a table, column by column, as the file has them. A row is given value by value, in the columns' order. */
final class Chunk {
    private static final int UNSIGNED = 1;
    private static final int SIGNED = 2;
    private static final int TEXT = 4;

    /** Texts are cut here; names are not that long. */
    private static final int LONGEST = 1 << 16;

    /** Number of the first row in its table. */
    long first;
    int rows;

    private final String[] names;
    private final int[] types;
    private final Bytes[] columns;
    private int column;

    Chunk(String... names) {
        this.names = names;
        types = new int[names.length];
        columns = new Bytes[names.length];
        for (int i = 0; i < names.length; i++) {
            columns[i] = new Bytes();
        }
    }

    Chunk number(long value) {
        return next(UNSIGNED, value);
    }

    Chunk signed(long value) {
        return next(SIGNED, value << 1 ^ value >> 63);
    }

    private Chunk next(int type, long value) {
        types[column] = type;
        columns[column++].varint(value);
        return this;
    }

    Chunk text(String text) {
        types[column] = TEXT;
        columns[column++].text(text.length() > LONGEST ? text.substring(0, LONGEST) : text);
        return this;
    }

    void row() {
        column = 0;
        rows++;
    }

    int length() {
        int length = 0;
        for (Bytes bytes : columns) {
            length += bytes.length;
        }
        return length;
    }

    /** The content of a block; begins anew after the last row. */
    Bytes take() {
        Bytes out = new Bytes();
        out.varint(first);
        out.varint(rows);
        out.varint(names.length);
        for (int i = 0; i < names.length; i++) {
            out.text(names[i]);
            out.raw(types[i]);
            out.raw(0); // Each value in turn.
            out.varint(columns[i].length);
            out.raw(columns[i].data, columns[i].length);
            columns[i].length = 0;
        }
        first += rows;
        rows = 0;
        return out;
    }

    /** Bytes that grow. */
    static final class Bytes {
        byte[] data = new byte[64];
        int length;

        private void room(int more) {
            if (length + more > data.length) {
                data = java.util.Arrays.copyOf(data, Math.max(length + more, data.length * 2));
            }
        }

        void raw(int value) {
            room(1);
            data[length++] = (byte) value;
        }

        void raw(byte[] bytes, int count) {
            room(count);
            System.arraycopy(bytes, 0, data, length, count);
            length += count;
        }

        /** Seven bits a byte, lowest first. */
        void varint(long value) {
            for (; (value & ~0x7fL) != 0; value >>>= 7) {
                raw((int) value | 0x80);
            }
            raw((int) value);
        }

        void text(String text) {
            byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
            varint(bytes.length);
            raw(bytes, bytes.length);
        }
    }
}
