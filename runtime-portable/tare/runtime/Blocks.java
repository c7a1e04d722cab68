package tare.runtime;

import java.io.Closeable;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.zip.CRC32;

/** The file itself: its header, blocks, index and trailer, as crates/recording/FORMAT.md tells. */
final class Blocks implements Closeable {
    static final int RUN = 1;
    static final int LOSSES = 2;
    static final int STRINGS = 3;
    static final int METHODS = 4;
    static final int FRAMES = 5;
    static final int CONTEXTS = 6;
    static final int THREADS = 7;
    static final int SERIES = 8;
    static final int VALUES = 9;
    private static final int INDEX = 255;

    private static final byte[] MAGIC = {(byte) 0x89, 'T', 'A', 'R', 'E', '\r', '\n', 0x1a};
    private static final byte[] BLOCK = {(byte) 0xf5, 'T', 'B', 'k'};
    private static final byte[] END = {(byte) 0x89, 'T', 'A', 'R', 'E', 'E', 'N', 'D'};

    /** Of file header, block headers and trailer; the last four bytes are a checksum. */
    private static final int HEADER = 32;

    private final RandomAccessFile file;
    /** Random would take a seed that the program gets otherwise. */
    private final int number = (int) (System.nanoTime() * 0x9e37_79b9_7f4a_7c15L >>> 32);
    private final Chunk index =
            new Chunk("offset", "kind", "number", "first-row", "rows", "first-time", "last-time");
    private long position;
    private int sequence;

    Blocks(RandomAccessFile file) throws IOException {
        this.file = file;
        file.setLength(0);
        ByteBuffer header = header(MAGIC);
        header.putShort((short) 1).putShort((short) 0).putInt(number);
        put(header);
    }

    /** Writes what a chunk has and empties it. */
    void write(int kind, int series, Chunk chunk) throws IOException {
        if (chunk.rows == 0) {
            return;
        }
        if (kind != INDEX) {
            index.number(position).number(kind).number(series).number(chunk.first).number(chunk.rows);
            index.number(0).number(-1L).row();
        }
        Chunk.Bytes content = chunk.take();
        CRC32 sum = new CRC32();
        sum.update(content.data, 0, content.length);
        ByteBuffer header = header(BLOCK);
        header.put((byte) kind).put((byte) 0).putShort((short) series).putInt(sequence++);
        header.putInt(content.length).putInt(content.length).putInt((int) sum.getValue()).putInt(number);
        put(header);
        file.write(content.data, 0, content.length);
        position += content.length;
    }

    void end() throws IOException {
        long offset = position;
        write(INDEX, 0, index);
        ByteBuffer trailer = header(END);
        trailer.putLong(offset).putInt(number);
        put(trailer);
        file.getFD().sync();
    }

    private static ByteBuffer header(byte[] magic) {
        return ByteBuffer.allocate(HEADER).order(ByteOrder.LITTLE_ENDIAN).put(magic);
    }

    private void put(ByteBuffer header) throws IOException {
        CRC32 sum = new CRC32();
        sum.update(header.array(), 0, HEADER - 4);
        header.putInt(HEADER - 4, (int) sum.getValue());
        file.write(header.array());
        position += HEADER;
    }

    @Override
    public void close() throws IOException {
        file.close();
    }
}
