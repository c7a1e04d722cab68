package weave;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A class file put together by hand, for code that no compiler of today makes: subroutines, wide
 * jumps, loops that begin at offset 0, and code that is wrong on purpose.
 */
final class Asm {
    static final int PUBLIC_STATIC = 0x0009;

    private final int major;
    private final Map<String, Integer> pool = new LinkedHashMap<>();
    private final List<byte[]> entries = new ArrayList<>();
    private int nextIndex = 1;
    private final int thisClass;
    private final int superClass;
    private final List<Code> methods = new ArrayList<>();
    private final List<int[]> fields = new ArrayList<>();
    final String name;

    Asm(int major, String name) {
        this.major = major;
        this.name = name;
        thisClass = type(name);
        superClass = type("java/lang/Object");
    }

    // The constant pool.

    private interface Writer {
        void write(DataOutputStream out) throws IOException;
    }

    private static byte[] bytesOf(Writer writer) {
        try {
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            writer.write(new DataOutputStream(bytes));
            return bytes.toByteArray();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private int constant(String key, int slots, Writer writer) {
        Integer known = pool.get(key);
        if (known != null) {
            return known;
        }
        int index = nextIndex;
        nextIndex += slots;
        pool.put(key, index);
        entries.add(bytesOf(writer));
        return index;
    }

    int utf8(String text) {
        return constant("u" + text, 1, out -> {
            out.writeByte(1);
            out.writeUTF(text);
        });
    }

    private int pair(int tag, int a, int b) {
        return constant(tag + ":" + a + ":" + b, 1, out -> {
            out.writeByte(tag);
            out.writeShort(a);
            out.writeShort(b);
        });
    }

    int type(String internalName) {
        int utf8 = utf8(internalName);
        return constant("c" + internalName, 1, out -> {
            out.writeByte(7);
            out.writeShort(utf8);
        });
    }

    int longConstant(long value) {
        return constant("l" + value, 2, out -> {
            out.writeByte(5);
            out.writeLong(value);
        });
    }

    private int member(int tag, String owner, String name, String descriptor) {
        return pair(tag, type(owner), pair(12, utf8(name), utf8(descriptor)));
    }

    int methodRef(String owner, String name, String descriptor) {
        return member(10, owner, name, descriptor);
    }

    int fieldRef(String owner, String name, String descriptor) {
        return member(9, owner, name, descriptor);
    }

    // Members.

    Asm field(int flags, String name, String descriptor) {
        fields.add(new int[] {flags, utf8(name), utf8(descriptor)});
        return this;
    }

    Code method(int flags, String name, String descriptor) {
        Code code = new Code(flags, utf8(name), utf8(descriptor));
        methods.add(code);
        return code;
    }

    byte[] bytes() {
        int codeName = utf8("Code");
        int frames = utf8("StackMapTable");
        List<byte[]> bodies = methods.stream().map(m -> m.bytes(codeName, frames)).toList();
        return bytesOf(out -> {
            out.writeInt(0xcafebabe);
            out.writeShort(0);
            out.writeShort(major);
            out.writeShort(nextIndex);
            for (byte[] entry : entries) {
                out.write(entry);
            }
            out.writeShort(0x0021);
            out.writeShort(thisClass);
            out.writeShort(superClass);
            out.writeShort(0);
            out.writeShort(fields.size());
            for (int[] field : fields) {
                for (int part : field) {
                    out.writeShort(part);
                }
                out.writeShort(0);
            }
            out.writeShort(bodies.size());
            for (byte[] body : bodies) {
                out.write(body);
            }
            out.writeShort(0);
        });
    }

    /** The code of one method; offsets are named by labels and filled in at the end. */
    final class Code {
        private record Hole(int at, int from, int width, String label) {}

        private record Row(String from, String to, String handler, int type) {}

        private final int flags;
        private final int name;
        private final int descriptor;
        private final ByteArrayOutputStream code = new ByteArrayOutputStream();
        private final Map<String, Integer> labels = new HashMap<>();
        private final List<Hole> holes = new ArrayList<>();
        private final List<Row> rows = new ArrayList<>();
        private int maxStack = 8;
        private int maxLocals = 8;
        private byte[] frames;

        private Code(int flags, int name, int descriptor) {
            this.flags = flags;
            this.name = name;
            this.descriptor = descriptor;
        }

        Code limits(int stack, int locals) {
            maxStack = stack;
            maxLocals = locals;
            return this;
        }

        Code op(int... bytes) {
            for (int b : bytes) {
                code.write(b);
            }
            return this;
        }

        private void u2(int value) {
            op(value >> 8 & 0xff, value & 0xff);
        }

        private void u4(int value) {
            u2(value >>> 16);
            u2(value);
        }

        /** An opcode with a two-byte operand. */
        Code ref(int opcode, int index) {
            op(opcode);
            u2(index);
            return this;
        }

        Code mark(String label) {
            labels.put(label, code.size());
            return this;
        }

        Code jump(int opcode, String label) {
            holes.add(new Hole(code.size() + 1, code.size(), 2, label));
            op(opcode);
            u2(0);
            return this;
        }

        Code farJump(int opcode, String label) {
            holes.add(new Hole(code.size() + 1, code.size(), 4, label));
            op(opcode);
            u4(0);
            return this;
        }

        private void far(int from, String label) {
            holes.add(new Hole(code.size(), from, 4, label));
            u4(0);
        }

        Code table(String otherwise, int low, String... cases) {
            int from = code.size();
            op(0xaa);
            pad();
            far(from, otherwise);
            u4(low);
            u4(low + cases.length - 1);
            for (String label : cases) {
                far(from, label);
            }
            return this;
        }

        Code lookup(String otherwise, int[] keys, String... cases) {
            int from = code.size();
            op(0xab);
            pad();
            far(from, otherwise);
            u4(keys.length);
            for (int i = 0; i < keys.length; i++) {
                u4(keys[i]);
                far(from, cases[i]);
            }
            return this;
        }

        private void pad() {
            while (code.size() % 4 != 0) {
                op(0);
            }
        }

        /** Type null catches everything. */
        Code handler(String from, String to, String handler, String type) {
            rows.add(new Row(from, to, handler, type == null ? 0 : type(type)));
            return this;
        }

        /** The content of a StackMapTable, count included. */
        Code frames(int... bytes) {
            frames = new byte[bytes.length];
            for (int i = 0; i < bytes.length; i++) {
                frames[i] = (byte) bytes[i];
            }
            return this;
        }

        private byte[] bytes(int codeName, int framesName) {
            byte[] filled = code.toByteArray();
            for (Hole hole : holes) {
                int offset = labels.get(hole.label) - hole.from;
                for (int i = 0; i < hole.width; i++) {
                    filled[hole.at + i] = (byte) (offset >> 8 * (hole.width - 1 - i));
                }
            }
            return bytesOf(out -> {
                out.writeShort(flags);
                out.writeShort(name);
                out.writeShort(descriptor);
                out.writeShort(1);
                out.writeShort(codeName);
                int attribute = frames == null ? 0 : 6 + frames.length;
                out.writeInt(12 + filled.length + 8 * rows.size() + attribute);
                out.writeShort(maxStack);
                out.writeShort(maxLocals);
                out.writeInt(filled.length);
                out.write(filled);
                out.writeShort(rows.size());
                for (Row row : rows) {
                    out.writeShort(labels.get(row.from));
                    out.writeShort(labels.get(row.to));
                    out.writeShort(labels.get(row.handler));
                    out.writeShort(row.type);
                }
                out.writeShort(frames == null ? 0 : 1);
                if (frames != null) {
                    out.writeShort(framesName);
                    out.writeInt(frames.length);
                    out.write(frames);
                }
            });
        }
    }
}
