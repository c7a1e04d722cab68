package weave;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Writes {@code weave/counted/Hand.class}, whose methods no compiler of today would make. All take
 * an int and return one; {@link Count} calls them with several values.
 *
 * <p>Version 48 has subroutines and needs no frames. Opcodes are numbers here; the comments name
 * them.
 */
public final class Hand {
    static final String NAME = "weave/counted/Hand";
    private static final int ICONST_0 = 0x03;
    private static final int ILOAD_0 = 0x1a;
    private static final int ILOAD_1 = 0x1b;
    private static final int ISTORE_1 = 0x3c;
    private static final int IINC = 0x84;
    private static final int IFEQ = 0x99;
    private static final int IFGT = 0x9d;
    private static final int IFLE = 0x9e;
    private static final int GOTO = 0xa7;
    private static final int JSR = 0xa8;
    private static final int RET = 0xa9;
    private static final int IRETURN = 0xac;
    private static final int WIDE = 0xc4;
    private static final int GOTO_W = 0xc8;
    private static final int JSR_W = 0xc9;
    private static final int ASTORE_2 = 0x4d;
    private static final int ASTORE_3 = 0x4e;
    private static final int IDIV = 0x6c;
    private static final int IADD = 0x60;
    private static final int POP = 0x57;
    private static final int MINUS_1 = 0xff;
    private static final String ARITHMETIC = "java/lang/ArithmeticException";

    private final Asm asm = new Asm(48, NAME);

    private Hand() {}

    public static void main(String[] args) throws IOException {
        Path file = Path.of(args[0]).resolve(NAME + ".class");
        Files.createDirectories(file.getParent());
        Files.write(file, new Hand().make());
    }

    private Asm.Code method(String name) {
        return asm.method(Asm.PUBLIC_STATIC, name, "(I)I");
    }

    private byte[] make() {
        lock();
        subroutine();
        nestedSubroutines();
        subroutineThatThrows();
        wideLocals();
        farJumps();
        for (int locals : new int[] {252, 253, 254, 255, 256, 257}) {
            edgeLocals(locals);
        }
        longsAtTheEdge();
        loopAtZero();
        switches();
        divides();
        throwsOut();
        handlerCoversItself();
        handlerReachedByFalling();
        deadCode();
        uninitialisedAcrossBranch();
        monitors();
        big();
        return asm.bytes();
    }

    private void lock() {
        asm.field(0x0009, "LOCK", "Ljava/lang/Object;");
        asm.method(Asm.PUBLIC_STATIC, "<clinit>", "()V")
                .ref(0xbb, asm.type("java/lang/Object")) // new
                .op(0x59) // dup
                .ref(0xb7, asm.methodRef("java/lang/Object", "<init>", "()V"))
                .ref(0xb3, asm.fieldRef(NAME, "LOCK", "Ljava/lang/Object;"))
                .op(0xb1);
    }

    private void subroutine() {
        method("subroutine")
                .op(ICONST_0, ISTORE_1)
                .mark("loop")
                .jump(JSR, "sub")
                .op(ILOAD_0)
                .jump(IFLE, "end")
                .op(IINC, 0, MINUS_1)
                .jump(GOTO, "loop")
                .mark("end")
                .op(ILOAD_1, IRETURN)
                .mark("sub")
                .op(ASTORE_2, IINC, 1, 1, RET, 2);
    }

    private void nestedSubroutines() {
        method("nestedSubroutines")
                .op(ICONST_0, ISTORE_1)
                .jump(JSR, "outer")
                .jump(JSR, "outer")
                .op(ILOAD_1, IRETURN)
                .mark("outer")
                .op(ASTORE_2)
                .mark("again")
                .jump(JSR, "inner")
                .op(IINC, 0, MINUS_1, ILOAD_0)
                .jump(IFGT, "again")
                .op(RET, 2)
                .mark("inner")
                .op(ASTORE_3, IINC, 1, 3, ILOAD_0)
                .jump(IFEQ, "zero")
                .op(IINC, 1, 1)
                .mark("zero")
                .op(RET, 3);
    }

    private void subroutineThatThrows() {
        method("subroutineThatThrows")
                .op(ICONST_0, ISTORE_1)
                .mark("try")
                .jump(JSR, "sub")
                .jump(JSR, "sub")
                .mark("tried")
                .op(ILOAD_1, IRETURN)
                .mark("sub")
                .op(ASTORE_2, IINC, 1, 1)
                .op(0x08, ILOAD_0, IDIV, POP) // iconst_5
                .op(RET, 2)
                .mark("sub end")
                .mark("handler")
                .op(POP, IINC, 1, 100, ILOAD_1, IRETURN)
                .handler("try", "sub end", "handler", ARITHMETIC);
    }

    private void wideLocals() {
        method("wideLocals")
                .limits(4, 310)
                .op(ICONST_0, WIDE, 0x36, 1, 44) // wide istore 300
                .mark("loop")
                .op(WIDE, IINC, 1, 44, 3, 232) // wide iinc 300 1000
                .farJump(JSR_W, "sub")
                .op(IINC, 0, MINUS_1, ILOAD_0)
                .jump(IFGT, "loop")
                .op(WIDE, 0x15, 1, 44, IRETURN) // wide iload 300
                .mark("sub")
                .op(WIDE, 0x3a, 1, 46) // wide astore 302
                .op(WIDE, IINC, 1, 44, 0xff, 0xff)
                .op(WIDE, RET, 1, 46);
    }

    private void farJumps() {
        method("farJumps")
                .op(ICONST_0, ISTORE_1)
                .farJump(GOTO_W, "check")
                .mark("loop")
                .op(IINC, 1, 2, IINC, 0, MINUS_1)
                .mark("check")
                .op(ILOAD_0)
                .jump(IFLE, "end")
                .farJump(GOTO_W, "loop")
                .mark("end")
                .op(ILOAD_1, IRETURN);
    }

    /** The locals of the probes come after these, on both sides of what one byte can name. */
    private void edgeLocals(int locals) {
        method("edgeLocals" + locals)
                .limits(4, locals)
                .op(ICONST_0, ISTORE_1)
                .mark("loop")
                .op(IINC, 1, 1, IINC, 0, MINUS_1, ILOAD_0)
                .jump(IFGT, "loop")
                .op(ILOAD_1, IRETURN);
    }

    private void longsAtTheEdge() {
        int big = asm.longConstant(0x1_0000_0000L);
        method("longsAtTheEdge")
                .limits(8, 259)
                .op(0x09, 0x37, 253) // lconst_0, lstore 253
                .ref(0x14, big) // ldc2_w
                .op(0x37, 255) // lstore 255, which takes 256 too
                .op(0x0e, WIDE, 0x39, 1, 1) // dconst_0, wide dstore 257
                .mark("loop")
                .op(0x16, 253, 0x16, 255, 0x61, 0x37, 253) // lload, lload, ladd, lstore
                .op(WIDE, 0x18, 1, 1, 0x0f, 0x63, WIDE, 0x39, 1, 1) // + 1.0
                .op(IINC, 0, MINUS_1, ILOAD_0)
                .jump(IFGT, "loop")
                .op(0x16, 253, 0x10, 32, 0x7b, 0x88) // bipush 32, lshr, l2i
                .op(WIDE, 0x18, 1, 1, 0x8e, IADD, IRETURN); // d2i
    }

    private void loopAtZero() {
        method("loopAtZero")
                .mark("loop")
                .op(IINC, 0, MINUS_1, ILOAD_0)
                .jump(IFGT, "loop")
                .op(ILOAD_0, IRETURN);
    }

    private void switches() {
        method("switches")
                .op(ICONST_0, ISTORE_1)
                .mark("loop")
                .op(ILOAD_0)
                .table("other", 0, "zero", "one", "two", "one")
                .mark("two")
                .op(IINC, 1, 2)
                .mark("one")
                .op(IINC, 1, 1)
                .jump(GOTO, "next")
                .mark("other")
                .op(ILOAD_0)
                .lookup("far", new int[] {-5, 7, 100}, "zero", "seven", "hundred")
                .mark("seven")
                .op(IINC, 1, 7)
                .mark("far")
                .op(IINC, 1, 1)
                .mark("next")
                .op(IINC, 0, MINUS_1)
                .jump(GOTO, "loop")
                .mark("hundred")
                .op(0x10, 6, 0x3b) // bipush 6, istore_0
                .jump(GOTO, "loop")
                .mark("zero")
                .op(ILOAD_1, IRETURN);
    }

    /** The exception ends the block after three of seven instructions. */
    private void divides() {
        method("divides")
                .mark("try")
                .op(0x10, 100, ILOAD_0, IDIV, 0x04, IADD, 0x05, IRETURN)
                .mark("handler")
                .op(POP, 0x02, IRETURN)
                .handler("try", "handler", "handler", ARITHMETIC);
    }

    private void throwsOut() {
        method("throwsOut").op(0x10, 100, ILOAD_0, IDIV, 0x04, IADD, IRETURN);
    }

    private void handlerCoversItself() {
        method("handlerCoversItself")
                .op(0x06, ISTORE_1) // iconst_3
                .mark("try")
                .op(ILOAD_1, ILOAD_0, IDIV, IRETURN)
                .mark("handler")
                .op(POP, IINC, 1, MINUS_1, ILOAD_1)
                .jump(IFLE, "out")
                .op(0x04, ICONST_0, IDIV, IRETURN)
                .mark("out")
                .op(ILOAD_1, IRETURN)
                .handler("try", "out", "handler", ARITHMETIC);
    }

    /** Ordinary code runs into the handler with a null on the stack. */
    private void handlerReachedByFalling() {
        method("handlerReachedByFalling")
                .op(ICONST_0, ISTORE_1)
                .mark("try")
                .op(0x04, ILOAD_0, IDIV, ISTORE_1)
                .mark("tried")
                .op(0x01) // aconst_null
                .mark("handler")
                .op(POP, IINC, 1, 1, ILOAD_1, IRETURN)
                .handler("try", "tried", "handler", null);
    }

    private void deadCode() {
        method("deadCode")
                .op(ILOAD_0)
                .jump(GOTO, "end")
                .op(0x01, 0xbf, 0x00) // aconst_null, athrow, nop
                .mark("end")
                .op(IRETURN);
    }

    private void uninitialisedAcrossBranch() {
        String type = "java/lang/StringBuilder";
        method("uninitialisedAcrossBranch")
                .ref(0xbb, asm.type(type)) // new
                .op(0x59, ILOAD_0) // dup
                .jump(IFEQ, "zero")
                .op(0x10, 10)
                .jump(GOTO, "both")
                .mark("zero")
                .op(0x10, 20)
                .mark("both")
                .ref(0xb7, asm.methodRef(type, "<init>", "(I)V"))
                .ref(0xb6, asm.methodRef(type, "capacity", "()I"))
                .op(IRETURN);
    }

    private void monitors() {
        int lock = asm.fieldRef(NAME, "LOCK", "Ljava/lang/Object;");
        method("monitors")
                .ref(0xb2, lock)
                .op(0x59, ASTORE_2, 0xc2) // dup, astore_2, monitorenter
                .mark("try")
                .op(0x10, 100, ILOAD_0, IDIV, ISTORE_1)
                .op(0x2c, 0xc3) // aload_2, monitorexit
                .mark("tried")
                .op(ILOAD_1, IRETURN)
                .mark("handler")
                .op(ASTORE_3, 0x2c, 0xc3) // aload_2, monitorexit
                .mark("handled")
                .op(0x2d, 0xbf) // aload_3, athrow
                .handler("try", "tried", "handler", null)
                .handler("handler", "handled", "handler", null);
    }

    /** Jumps that fit two bytes before weaving and do not after it, both ways, with a condition. */
    private void big() {
        Asm.Code code = method("big").op(ICONST_0, ISTORE_1, ILOAD_0).jump(IFLE, "end").mark("loop");
        for (int i = 0; i < 3500; i++) {
            code.op(IINC, 1, 1, ILOAD_0).jump(IFEQ, "skip" + i).mark("skip" + i);
        }
        code.op(IINC, 0, MINUS_1, ILOAD_0)
                .jump(IFGT, "loop")
                .mark("end")
                .op(ILOAD_1, IRETURN);
    }
}
