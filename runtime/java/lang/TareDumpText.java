package java.lang;

import java.util.HashMap;

/**
 * What a dump of threads is written into: lines of text, their fields set apart by tabs. A frame and a
 * stack that come again are written once, and referred to by their numbers.
 *
 * <p>Only the agent's control thread is ever in here, so nothing is locked.
 */
final class TareDumpText {
    /** Characters of a dump; threads beyond that are counted and left out. */
    private static final int MOST = 16 << 20;
    private static final int LEAST = 256 << 10;

    private static long most;
    private static StringBuilder out;
    private static HashMap<StackTraceElement, Integer> frames;
    private static HashMap<String, Integer> stacks;

    private TareDumpText() {}

    /** Begins; the text, and copies of it on its way out, take a part of what is free of the heap. */
    static void begin(long free) {
        most = Math.max(LEAST, Math.min(MOST, free / 16));
        out = new StringBuilder(1 << 16);
        frames = new HashMap<>();
        stacks = new HashMap<>();
    }

    /** All that was written; nothing is kept. */
    static byte[] end() {
        String text = out.toString();
        forget();
        return text.getBytes(java.nio.charset.StandardCharsets.UTF_8);
    }

    static void forget() {
        out = null;
        frames = null;
        stacks = null;
    }

    static boolean isFull() {
        return out.length() > most;
    }

    /** Begins a line of a kind. */
    static void line(String kind) {
        if (out.length() > 0) {
            out.append('\n');
        }
        out.append(kind);
    }

    static void number(long value) {
        out.append('\t').append(value);
    }

    static void hex(int value) {
        out.append('\t').append(Integer.toHexString(value));
    }

    /** A text that is a field; what would end it is written as an escape. */
    static void field(String text) {
        out.append('\t');
        if (text == null) {
            return;
        }
        for (int at = 0; at < text.length(); at++) {
            char c = text.charAt(at);
            switch (c) {
                case '\\' -> out.append("\\\\");
                case '\t' -> out.append("\\t");
                case '\n' -> out.append("\\n");
                default -> out.append(c);
            }
        }
    }

    /** A line by itself: something that whoever reads the dump should know. */
    static void note(String key, String text) {
        line("N");
        field(key);
        field(text);
    }

    /** The number of a stack, of which at most so many frames are written. */
    static int stack(StackTraceElement[] trace, int depth) {
        StringBuilder key = new StringBuilder();
        int length = trace.length < depth ? trace.length : depth;
        for (int at = 0; at < length; at++) {
            key.append(at == 0 ? "" : " ").append(frame(trace[at]));
        }
        if (length < trace.length) {
            key.append(" +").append(trace.length - length);
        }
        String text = key.toString();
        Integer known = stacks.get(text);
        if (known != null) {
            return known;
        }
        line("S");
        field(text);
        stacks.put(text, stacks.size());
        return stacks.size() - 1;
    }

    private static int frame(StackTraceElement frame) {
        Integer known = frames.get(frame);
        if (known != null) {
            return known;
        }
        line("F");
        field(frame.getClassName());
        field(frame.getMethodName());
        field(frame.getFileName());
        number(frame.getLineNumber());
        frames.put(frame, frames.size());
        return frames.size() - 1;
    }
}
