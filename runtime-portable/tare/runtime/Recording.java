package tare.runtime;

import java.io.Closeable;
import java.io.File;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.Map;

/**
 * Trees as a recording of Tare. The same context of several threads becomes one; memory is a few bytes for
 * each, and what is ready goes to the file.
 */
final class Recording implements Closeable {
    /** Rows of a block. */
    private static final int ROWS = 1 << 16;
    /** Bytes of text in a block, about. */
    private static final int TEXT = 1 << 20;

    private static final int CALLS = 0;
    private static final int BYTECODES = 1;

    private final Blocks file;
    private final Map<String, Integer> strings = new HashMap<>();
    private final Map<String, Integer> frames = new HashMap<>();
    private final Contexts contexts = new Contexts();
    private int threads;
    /** The row of all virtual threads. */
    private int virtual;
    private long refused;
    private long lost;

    private final Chunk texts = new Chunk("text");
    private final Chunk methods = new Chunk("kind", "class", "name", "descriptor");
    private final Chunk frameRows = new Chunk("method");
    private final Chunk contextRows = new Chunk("parent", "frame");
    private final Chunk threadRows = new Chunk("row", "kind", "name", "java-id");
    private final Chunk[] values = {
        new Chunk("context", "thread", "value"), new Chunk("context", "thread", "value")
    };

    Recording(File file, long started, long elapsed) throws IOException {
        this.file = new Blocks(new RandomAccessFile(file, "rw"));
        texts.first = 1; // Row 0 is the empty text.
        contextRows.first = 1; // Row 0 is the root.
        strings.put("", 0);
        run(started, elapsed);
        Chunk series = new Chunk("name", "kind", "unit");
        for (String kind : new String[] {"invocations", "bytecodes"}) {
            series.text("exact").text(kind).number(0).row();
        }
        this.file.write(Blocks.SERIES, 0, series);
    }

    private void run(long started, long elapsed) throws IOException {
        Chunk run = new Chunk("key", "value");
        String version = Recording.class.getPackage().getImplementationVersion();
        run.text("tool").text("tare-runtime" + (version == null ? "" : " " + version)).row();
        run.text("main-class").text(Program.main()).row();
        String jdk = Settings.text("java.runtime.version", Settings.text("java.version", ""));
        run.text("jdk").text(jdk).row();
        run.text("vm").text(Settings.text("java.vm.name", "")).row();
        run.text("os").text(Settings.text("os.name", "") + " " + Settings.text("os.version", "")).row();
        run.text("option").text("woven=offline").row();
        run.text("pid").text(Program.pid()).row();
        run.text("cpus").text(Integer.toString(Runtime.getRuntime().availableProcessors())).row();
        run.text("started").text(started + "000000").row();
        run.text("duration").text(Long.toString(elapsed)).row();
        file.write(Blocks.RUN, 0, run);
    }

    /** Adds a thread's tree, as it is now. */
    void add(Tree tree) throws IOException {
        refused += tree.refused;
        lost += tree.lost;
        if (tree.root.newest == null) {
            return;
        }
        int thread = thread(tree);
        // A node and, before it, the number of its parent's context.
        ArrayDeque<Node> nodes = new ArrayDeque<>();
        ArrayDeque<Integer> parents = new ArrayDeque<>();
        nodes.push(tree.root);
        parents.push(0);
        while (!nodes.isEmpty()) {
            Node node = nodes.pop();
            int context = parents.pop();
            if (node.parent != null) {
                context = context(context, node.method);
                value(CALLS, context, thread, node.calls);
                value(BYTECODES, context, thread, node.bytecodes);
            }
            for (Node child = node.newest; child != null; child = child.sibling) {
                nodes.push(child);
                parents.push(context);
            }
        }
    }

    /** Virtual threads are one. */
    private int thread(Tree tree) {
        if (tree.virtual && virtual != 0) {
            return virtual;
        }
        int thread = ++threads;
        if (tree.virtual) {
            virtual = thread;
        }
        threadRows.number(thread).number(tree.virtual ? 1 : 0).number(string(tree.name));
        threadRows.number(tree.id == 0 ? 0 : tree.id + 1).row();
        return thread;
    }

    private int context(int parent, String method) throws IOException {
        int frame = frame(method);
        int known = contexts.find(parent, frame);
        if (known > 0) {
            return known;
        }
        contextRows.number(parent).number(frame).row();
        if (contextRows.rows == ROWS) {
            flush();
        }
        return contexts.put(parent, frame);
    }

    private void value(int series, int context, int thread, long value) throws IOException {
        if (value != 0) {
            Chunk rows = values[series];
            rows.number(context).number(thread).signed(value).row();
            if (rows.rows == ROWS) {
                flush();
            }
        }
    }

    private int frame(String method) throws IOException {
        Integer known = frames.get(method);
        if (known != null) {
            return known;
        }
        int parenthesis = method.indexOf('(');
        if (parenthesis < 0) {
            methods.number(4).number(0).number(string(method)).number(0).row();
        } else {
            int dot = method.lastIndexOf('.', parenthesis);
            methods.number(0).number(string(method.substring(0, dot).replace('/', '.')));
            methods.number(string(method.substring(dot + 1, parenthesis)));
            methods.number(string(method.substring(parenthesis))).row();
        }
        int number = frames.size();
        frames.put(method, number);
        frameRows.number(number).row();
        if (texts.length() > TEXT || methods.rows >= ROWS) {
            flush();
        }
        return number;
    }

    private int string(String text) {
        Integer known = strings.get(text);
        if (known != null) {
            return known;
        }
        int number = strings.size();
        strings.put(text, number);
        texts.text(text).row();
        return number;
    }

    /** What a row names must come before it. */
    private void flush() throws IOException {
        file.write(Blocks.STRINGS, 0, texts);
        file.write(Blocks.METHODS, 0, methods);
        file.write(Blocks.FRAMES, 0, frameRows);
        file.write(Blocks.CONTEXTS, 0, contextRows);
        file.write(Blocks.THREADS, 0, threadRows);
        file.write(Blocks.VALUES, CALLS, values[CALLS]);
        file.write(Blocks.VALUES, BYTECODES, values[BYTECODES]);
    }

    /** Nothing more comes. */
    void end() throws IOException {
        flush();
        Chunk losses = new Chunk("kind", "name", "count", "reason");
        if (refused > 0) {
            losses.text("folded").text("calls in new contexts").number(refused);
            losses.text("there were as many contexts as -Dtare.contexts allows; " + Node.REST + " has the calls");
            losses.row();
        }
        if (lost > 0) {
            losses.text("dropped").text("calls").number(lost);
            losses.text("there was no memory or no stack left to count them").row();
        }
        file.write(Blocks.LOSSES, 0, losses);
        file.end();
    }

    @Override
    public void close() throws IOException {
        file.close();
    }

    /** Numbers of contexts by parent and frame: open addressing, because boxes take too much memory. */
    private static final class Contexts {
        private long[] keys = new long[1 << 12];
        private int[] numbers = new int[1 << 12];
        private int count;

        /** The context's number; zero if there is none. */
        int find(int parent, int frame) {
            return numbers[slot(keys, numbers, key(parent, frame))];
        }

        int put(int parent, int frame) {
            if (count * 2 >= keys.length) {
                widen();
            }
            long key = key(parent, frame);
            int slot = slot(keys, numbers, key);
            keys[slot] = key;
            return numbers[slot] = ++count;
        }

        private void widen() {
            long[] wider = new long[keys.length * 2];
            int[] in = new int[wider.length];
            for (int i = 0; i < keys.length; i++) {
                if (numbers[i] != 0) {
                    int slot = slot(wider, in, keys[i]);
                    wider[slot] = keys[i];
                    in[slot] = numbers[i];
                }
            }
            keys = wider;
            numbers = in;
        }

        private static long key(int parent, int frame) {
            return (long) parent << 32 | frame;
        }

        private static int slot(long[] keys, int[] numbers, long key) {
            int mask = keys.length - 1;
            int slot = (int) (key * 0x9e37_79b9_7f4a_7c15L >>> 33) & mask;
            while (numbers[slot] != 0 && keys[slot] != key) {
                slot = slot + 1 & mask;
            }
            return slot;
        }
    }
}
