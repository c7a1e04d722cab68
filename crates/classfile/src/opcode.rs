//! The one table of opcodes: name, operands, stack effect, whether it can throw, control flow.
//!
//! Instruction lengths, the printer, stack simulation and block analysis all derive from it.
//! What an instruction does with the constants that it names is left to those who look at them.

/// How the operands of an instruction are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    None,
    /// A signed byte.
    Byte,
    /// A signed 16-bit number.
    Short,
    /// A local-variable index (two bytes after `wide`).
    Local,
    /// A local-variable index and a signed byte (two bytes each after `wide`).
    Iinc,
    /// A one-byte constant-pool index.
    Const1,
    /// A two-byte constant-pool index.
    Const2,
    /// Constant-pool index, count, zero.
    InvokeInterface,
    /// Constant-pool index, two zeros.
    InvokeDynamic,
    /// The element type of `newarray`.
    ArrayType,
    /// Constant-pool index and number of dimensions.
    MultiNewArray,
    /// A signed 16-bit jump distance.
    Branch2,
    /// A signed 32-bit jump distance.
    Branch4,
    TableSwitch,
    LookupSwitch,
    /// The prefix that widens the next instruction's index.
    Wide,
}

/// Where control goes after an instruction that does not throw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    Next,
    /// To the target or to the next instruction.
    Branch,
    Goto,
    /// To a subroutine, which normally comes back to the next instruction.
    Jsr,
    Ret,
    Switch,
    Return,
    Throw,
}

/// One row of the table.
///
/// `pop` and `push` name stack values from the bottom up: `I`, `J`, `F`, `D` for the primitive
/// kinds, `A` for a reference, `N` for null, `R` for a return address, `L` for the reference held
/// by the local that the instruction names, `*` for any reference or return address. `?` means
/// that the effect depends on the operand or on the values, and is computed by the simulation.
#[derive(Clone, Copy, Debug)]
pub struct Opcode {
    pub mnemonic: &'static str,
    pub format: Format,
    pub pop: &'static str,
    pub push: &'static str,
    /// Whether executing it can raise an exception. `ldc` of a number never does; only the one
    /// who sees the constant can tell.
    pub may_throw: bool,
    pub flow: Flow,
}

/// The row of an opcode, `None` for bytes that are no instruction of a class file.
#[inline]
pub fn lookup(opcode: u8) -> Option<&'static Opcode> {
    TABLE_ROWS.get(usize::from(opcode))
}

/// Length of an instruction by its opcode: 0 when it varies or when there is no such opcode.
#[inline]
pub fn fixed_len(opcode: u8) -> usize {
    usize::from(LENGTHS[usize::from(opcode)])
}

/// Properties of each opcode as bits, for loops over all instructions of a program.
pub mod bits {
    /// Fixed length, no jump, no return, cannot throw: nothing that ends a block.
    pub const PLAIN: u8 = 0;
    pub const MAY_THROW: u8 = 1;
    /// A jump with a target in its operand, or a switch.
    pub const JUMP: u8 = 2;
    /// The next instruction does not follow (goto, switch, return, throw, ret).
    pub const NO_FALL: u8 = 4;
    pub const RETURN: u8 = 8;
    /// Variable length, or no such opcode.
    pub const SPECIAL: u8 = 16;
    pub const INVOKE: u8 = 32;
    /// `new`, `newarray`, `anewarray`, `multianewarray`.
    pub const ALLOCATES: u8 = 64;
}

/// See [`bits`].
#[inline]
pub fn bits_of(opcode: u8) -> u8 {
    BITS[usize::from(opcode)]
}

static LENGTHS: [u8; 256] = lengths();
static BITS: [u8; 256] = property_bits();

const fn lengths() -> [u8; 256] {
    let mut out = [0; 256];
    let mut i = 0;
    while i < TABLE.len() {
        out[i] = match TABLE[i].format {
            Format::None => 1,
            Format::Byte | Format::Local | Format::Const1 | Format::ArrayType => 2,
            Format::Short | Format::Const2 | Format::Branch2 | Format::Iinc => 3,
            Format::MultiNewArray => 4,
            Format::InvokeInterface | Format::InvokeDynamic | Format::Branch4 => 5,
            Format::TableSwitch | Format::LookupSwitch | Format::Wide => 0,
        };
        i += 1;
    }
    out
}

const fn property_bits() -> [u8; 256] {
    let lens = lengths();
    let mut out = [bits::SPECIAL; 256];
    let mut i = 0;
    while i < TABLE.len() {
        let row = &TABLE[i];
        let mut b = match row.flow {
            Flow::Next => 0,
            Flow::Branch | Flow::Jsr => bits::JUMP,
            Flow::Goto | Flow::Switch => bits::JUMP | bits::NO_FALL,
            Flow::Ret | Flow::Throw => bits::NO_FALL,
            Flow::Return => bits::RETURN | bits::NO_FALL,
        };
        if row.may_throw {
            b |= bits::MAY_THROW;
        }
        if lens[i] == 0 {
            b |= bits::SPECIAL;
        }
        out[i] = b;
        i += 1;
    }
    let mut i = op::INVOKEVIRTUAL;
    while i <= op::INVOKEDYNAMIC {
        out[i as usize] |= bits::INVOKE;
        i += 1;
    }
    out[op::NEW as usize] |= bits::ALLOCATES;
    out[op::NEWARRAY as usize] |= bits::ALLOCATES;
    out[op::ANEWARRAY as usize] |= bits::ALLOCATES;
    out[op::MULTIANEWARRAY as usize] |= bits::ALLOCATES;
    out
}

const fn op(
    mnemonic: &'static str,
    format: Format,
    pop: &'static str,
    push: &'static str,
    may_throw: bool,
    flow: Flow,
) -> Opcode {
    Opcode { mnemonic, format, pop, push, may_throw, flow }
}

const SAFE: bool = false;
const MAY_THROW: bool = true;

use Flow::*;
use Format::*;

/// The table at one address; the constant below serves the computations at compile time.
static TABLE_ROWS: [Opcode; 202] = TABLE;

#[rustfmt::skip]
const TABLE: [Opcode; 202] = [
    op("nop", None, "", "", SAFE, Next), // 0x00
    op("aconst_null", None, "", "N", SAFE, Next), // 0x01
    op("iconst_m1", None, "", "I", SAFE, Next), // 0x02
    op("iconst_0", None, "", "I", SAFE, Next), // 0x03
    op("iconst_1", None, "", "I", SAFE, Next), // 0x04
    op("iconst_2", None, "", "I", SAFE, Next), // 0x05
    op("iconst_3", None, "", "I", SAFE, Next), // 0x06
    op("iconst_4", None, "", "I", SAFE, Next), // 0x07
    op("iconst_5", None, "", "I", SAFE, Next), // 0x08
    op("lconst_0", None, "", "J", SAFE, Next), // 0x09
    op("lconst_1", None, "", "J", SAFE, Next), // 0x0a
    op("fconst_0", None, "", "F", SAFE, Next), // 0x0b
    op("fconst_1", None, "", "F", SAFE, Next), // 0x0c
    op("fconst_2", None, "", "F", SAFE, Next), // 0x0d
    op("dconst_0", None, "", "D", SAFE, Next), // 0x0e
    op("dconst_1", None, "", "D", SAFE, Next), // 0x0f
    op("bipush", Byte, "", "I", SAFE, Next), // 0x10
    op("sipush", Short, "", "I", SAFE, Next), // 0x11
    op("ldc", Const1, "", "?", MAY_THROW, Next), // 0x12
    op("ldc_w", Const2, "", "?", MAY_THROW, Next), // 0x13
    op("ldc2_w", Const2, "", "?", MAY_THROW, Next), // 0x14
    op("iload", Local, "", "I", SAFE, Next), // 0x15
    op("lload", Local, "", "J", SAFE, Next), // 0x16
    op("fload", Local, "", "F", SAFE, Next), // 0x17
    op("dload", Local, "", "D", SAFE, Next), // 0x18
    op("aload", Local, "", "L", SAFE, Next), // 0x19
    op("iload_0", None, "", "I", SAFE, Next), // 0x1a
    op("iload_1", None, "", "I", SAFE, Next), // 0x1b
    op("iload_2", None, "", "I", SAFE, Next), // 0x1c
    op("iload_3", None, "", "I", SAFE, Next), // 0x1d
    op("lload_0", None, "", "J", SAFE, Next), // 0x1e
    op("lload_1", None, "", "J", SAFE, Next), // 0x1f
    op("lload_2", None, "", "J", SAFE, Next), // 0x20
    op("lload_3", None, "", "J", SAFE, Next), // 0x21
    op("fload_0", None, "", "F", SAFE, Next), // 0x22
    op("fload_1", None, "", "F", SAFE, Next), // 0x23
    op("fload_2", None, "", "F", SAFE, Next), // 0x24
    op("fload_3", None, "", "F", SAFE, Next), // 0x25
    op("dload_0", None, "", "D", SAFE, Next), // 0x26
    op("dload_1", None, "", "D", SAFE, Next), // 0x27
    op("dload_2", None, "", "D", SAFE, Next), // 0x28
    op("dload_3", None, "", "D", SAFE, Next), // 0x29
    op("aload_0", None, "", "L", SAFE, Next), // 0x2a
    op("aload_1", None, "", "L", SAFE, Next), // 0x2b
    op("aload_2", None, "", "L", SAFE, Next), // 0x2c
    op("aload_3", None, "", "L", SAFE, Next), // 0x2d
    op("iaload", None, "AI", "I", MAY_THROW, Next), // 0x2e
    op("laload", None, "AI", "J", MAY_THROW, Next), // 0x2f
    op("faload", None, "AI", "F", MAY_THROW, Next), // 0x30
    op("daload", None, "AI", "D", MAY_THROW, Next), // 0x31
    op("aaload", None, "AI", "?", MAY_THROW, Next), // 0x32
    op("baload", None, "AI", "I", MAY_THROW, Next), // 0x33
    op("caload", None, "AI", "I", MAY_THROW, Next), // 0x34
    op("saload", None, "AI", "I", MAY_THROW, Next), // 0x35
    op("istore", Local, "I", "", SAFE, Next), // 0x36
    op("lstore", Local, "J", "", SAFE, Next), // 0x37
    op("fstore", Local, "F", "", SAFE, Next), // 0x38
    op("dstore", Local, "D", "", SAFE, Next), // 0x39
    op("astore", Local, "*", "", SAFE, Next), // 0x3a
    op("istore_0", None, "I", "", SAFE, Next), // 0x3b
    op("istore_1", None, "I", "", SAFE, Next), // 0x3c
    op("istore_2", None, "I", "", SAFE, Next), // 0x3d
    op("istore_3", None, "I", "", SAFE, Next), // 0x3e
    op("lstore_0", None, "J", "", SAFE, Next), // 0x3f
    op("lstore_1", None, "J", "", SAFE, Next), // 0x40
    op("lstore_2", None, "J", "", SAFE, Next), // 0x41
    op("lstore_3", None, "J", "", SAFE, Next), // 0x42
    op("fstore_0", None, "F", "", SAFE, Next), // 0x43
    op("fstore_1", None, "F", "", SAFE, Next), // 0x44
    op("fstore_2", None, "F", "", SAFE, Next), // 0x45
    op("fstore_3", None, "F", "", SAFE, Next), // 0x46
    op("dstore_0", None, "D", "", SAFE, Next), // 0x47
    op("dstore_1", None, "D", "", SAFE, Next), // 0x48
    op("dstore_2", None, "D", "", SAFE, Next), // 0x49
    op("dstore_3", None, "D", "", SAFE, Next), // 0x4a
    op("astore_0", None, "*", "", SAFE, Next), // 0x4b
    op("astore_1", None, "*", "", SAFE, Next), // 0x4c
    op("astore_2", None, "*", "", SAFE, Next), // 0x4d
    op("astore_3", None, "*", "", SAFE, Next), // 0x4e
    op("iastore", None, "AII", "", MAY_THROW, Next), // 0x4f
    op("lastore", None, "AIJ", "", MAY_THROW, Next), // 0x50
    op("fastore", None, "AIF", "", MAY_THROW, Next), // 0x51
    op("dastore", None, "AID", "", MAY_THROW, Next), // 0x52
    op("aastore", None, "AIA", "", MAY_THROW, Next), // 0x53
    op("bastore", None, "AII", "", MAY_THROW, Next), // 0x54
    op("castore", None, "AII", "", MAY_THROW, Next), // 0x55
    op("sastore", None, "AII", "", MAY_THROW, Next), // 0x56
    op("pop", None, "?", "?", SAFE, Next), // 0x57
    op("pop2", None, "?", "?", SAFE, Next), // 0x58
    op("dup", None, "?", "?", SAFE, Next), // 0x59
    op("dup_x1", None, "?", "?", SAFE, Next), // 0x5a
    op("dup_x2", None, "?", "?", SAFE, Next), // 0x5b
    op("dup2", None, "?", "?", SAFE, Next), // 0x5c
    op("dup2_x1", None, "?", "?", SAFE, Next), // 0x5d
    op("dup2_x2", None, "?", "?", SAFE, Next), // 0x5e
    op("swap", None, "?", "?", SAFE, Next), // 0x5f
    op("iadd", None, "II", "I", SAFE, Next), // 0x60
    op("ladd", None, "JJ", "J", SAFE, Next), // 0x61
    op("fadd", None, "FF", "F", SAFE, Next), // 0x62
    op("dadd", None, "DD", "D", SAFE, Next), // 0x63
    op("isub", None, "II", "I", SAFE, Next), // 0x64
    op("lsub", None, "JJ", "J", SAFE, Next), // 0x65
    op("fsub", None, "FF", "F", SAFE, Next), // 0x66
    op("dsub", None, "DD", "D", SAFE, Next), // 0x67
    op("imul", None, "II", "I", SAFE, Next), // 0x68
    op("lmul", None, "JJ", "J", SAFE, Next), // 0x69
    op("fmul", None, "FF", "F", SAFE, Next), // 0x6a
    op("dmul", None, "DD", "D", SAFE, Next), // 0x6b
    op("idiv", None, "II", "I", MAY_THROW, Next), // 0x6c
    op("ldiv", None, "JJ", "J", MAY_THROW, Next), // 0x6d
    op("fdiv", None, "FF", "F", SAFE, Next), // 0x6e
    op("ddiv", None, "DD", "D", SAFE, Next), // 0x6f
    op("irem", None, "II", "I", MAY_THROW, Next), // 0x70
    op("lrem", None, "JJ", "J", MAY_THROW, Next), // 0x71
    op("frem", None, "FF", "F", SAFE, Next), // 0x72
    op("drem", None, "DD", "D", SAFE, Next), // 0x73
    op("ineg", None, "I", "I", SAFE, Next), // 0x74
    op("lneg", None, "J", "J", SAFE, Next), // 0x75
    op("fneg", None, "F", "F", SAFE, Next), // 0x76
    op("dneg", None, "D", "D", SAFE, Next), // 0x77
    op("ishl", None, "II", "I", SAFE, Next), // 0x78
    op("lshl", None, "JI", "J", SAFE, Next), // 0x79
    op("ishr", None, "II", "I", SAFE, Next), // 0x7a
    op("lshr", None, "JI", "J", SAFE, Next), // 0x7b
    op("iushr", None, "II", "I", SAFE, Next), // 0x7c
    op("lushr", None, "JI", "J", SAFE, Next), // 0x7d
    op("iand", None, "II", "I", SAFE, Next), // 0x7e
    op("land", None, "JJ", "J", SAFE, Next), // 0x7f
    op("ior", None, "II", "I", SAFE, Next), // 0x80
    op("lor", None, "JJ", "J", SAFE, Next), // 0x81
    op("ixor", None, "II", "I", SAFE, Next), // 0x82
    op("lxor", None, "JJ", "J", SAFE, Next), // 0x83
    op("iinc", Iinc, "", "", SAFE, Next), // 0x84
    op("i2l", None, "I", "J", SAFE, Next), // 0x85
    op("i2f", None, "I", "F", SAFE, Next), // 0x86
    op("i2d", None, "I", "D", SAFE, Next), // 0x87
    op("l2i", None, "J", "I", SAFE, Next), // 0x88
    op("l2f", None, "J", "F", SAFE, Next), // 0x89
    op("l2d", None, "J", "D", SAFE, Next), // 0x8a
    op("f2i", None, "F", "I", SAFE, Next), // 0x8b
    op("f2l", None, "F", "J", SAFE, Next), // 0x8c
    op("f2d", None, "F", "D", SAFE, Next), // 0x8d
    op("d2i", None, "D", "I", SAFE, Next), // 0x8e
    op("d2l", None, "D", "J", SAFE, Next), // 0x8f
    op("d2f", None, "D", "F", SAFE, Next), // 0x90
    op("i2b", None, "I", "I", SAFE, Next), // 0x91
    op("i2c", None, "I", "I", SAFE, Next), // 0x92
    op("i2s", None, "I", "I", SAFE, Next), // 0x93
    op("lcmp", None, "JJ", "I", SAFE, Next), // 0x94
    op("fcmpl", None, "FF", "I", SAFE, Next), // 0x95
    op("fcmpg", None, "FF", "I", SAFE, Next), // 0x96
    op("dcmpl", None, "DD", "I", SAFE, Next), // 0x97
    op("dcmpg", None, "DD", "I", SAFE, Next), // 0x98
    op("ifeq", Branch2, "I", "", SAFE, Branch), // 0x99
    op("ifne", Branch2, "I", "", SAFE, Branch), // 0x9a
    op("iflt", Branch2, "I", "", SAFE, Branch), // 0x9b
    op("ifge", Branch2, "I", "", SAFE, Branch), // 0x9c
    op("ifgt", Branch2, "I", "", SAFE, Branch), // 0x9d
    op("ifle", Branch2, "I", "", SAFE, Branch), // 0x9e
    op("if_icmpeq", Branch2, "II", "", SAFE, Branch), // 0x9f
    op("if_icmpne", Branch2, "II", "", SAFE, Branch), // 0xa0
    op("if_icmplt", Branch2, "II", "", SAFE, Branch), // 0xa1
    op("if_icmpge", Branch2, "II", "", SAFE, Branch), // 0xa2
    op("if_icmpgt", Branch2, "II", "", SAFE, Branch), // 0xa3
    op("if_icmple", Branch2, "II", "", SAFE, Branch), // 0xa4
    op("if_acmpeq", Branch2, "AA", "", SAFE, Branch), // 0xa5
    op("if_acmpne", Branch2, "AA", "", SAFE, Branch), // 0xa6
    op("goto", Branch2, "", "", SAFE, Goto), // 0xa7
    op("jsr", Branch2, "", "R", SAFE, Jsr), // 0xa8
    op("ret", Local, "", "", SAFE, Ret), // 0xa9
    op("tableswitch", TableSwitch, "I", "", SAFE, Switch), // 0xaa
    op("lookupswitch", LookupSwitch, "I", "", SAFE, Switch), // 0xab
    op("ireturn", None, "I", "", MAY_THROW, Return), // 0xac
    op("lreturn", None, "J", "", MAY_THROW, Return), // 0xad
    op("freturn", None, "F", "", MAY_THROW, Return), // 0xae
    op("dreturn", None, "D", "", MAY_THROW, Return), // 0xaf
    op("areturn", None, "A", "", MAY_THROW, Return), // 0xb0
    op("return", None, "", "", MAY_THROW, Return), // 0xb1
    op("getstatic", Const2, "", "?", MAY_THROW, Next), // 0xb2
    op("putstatic", Const2, "?", "", MAY_THROW, Next), // 0xb3
    op("getfield", Const2, "?", "?", MAY_THROW, Next), // 0xb4
    op("putfield", Const2, "?", "", MAY_THROW, Next), // 0xb5
    op("invokevirtual", Const2, "?", "?", MAY_THROW, Next), // 0xb6
    op("invokespecial", Const2, "?", "?", MAY_THROW, Next), // 0xb7
    op("invokestatic", Const2, "?", "?", MAY_THROW, Next), // 0xb8
    op("invokeinterface", InvokeInterface, "?", "?", MAY_THROW, Next), // 0xb9
    op("invokedynamic", InvokeDynamic, "?", "?", MAY_THROW, Next), // 0xba
    op("new", Const2, "", "?", MAY_THROW, Next), // 0xbb
    op("newarray", ArrayType, "I", "?", MAY_THROW, Next), // 0xbc
    op("anewarray", Const2, "I", "?", MAY_THROW, Next), // 0xbd
    op("arraylength", None, "A", "I", MAY_THROW, Next), // 0xbe
    op("athrow", None, "A", "", MAY_THROW, Throw), // 0xbf
    op("checkcast", Const2, "A", "?", MAY_THROW, Next), // 0xc0
    op("instanceof", Const2, "A", "I", MAY_THROW, Next), // 0xc1
    op("monitorenter", None, "A", "", MAY_THROW, Next), // 0xc2
    op("monitorexit", None, "A", "", MAY_THROW, Next), // 0xc3
    op("wide", Wide, "?", "?", SAFE, Next), // 0xc4
    op("multianewarray", MultiNewArray, "?", "?", MAY_THROW, Next), // 0xc5
    op("ifnull", Branch2, "A", "", SAFE, Branch), // 0xc6
    op("ifnonnull", Branch2, "A", "", SAFE, Branch), // 0xc7
    op("goto_w", Branch4, "", "", SAFE, Goto), // 0xc8
    op("jsr_w", Branch4, "", "R", SAFE, Jsr), // 0xc9
];

/// Names for the opcode bytes.
#[rustfmt::skip]
pub mod op {
    pub const NOP: u8 = 0x00;
    pub const ACONST_NULL: u8 = 0x01;
    pub const ICONST_M1: u8 = 0x02;
    pub const ICONST_0: u8 = 0x03;
    pub const ICONST_1: u8 = 0x04;
    pub const ICONST_2: u8 = 0x05;
    pub const ICONST_3: u8 = 0x06;
    pub const ICONST_4: u8 = 0x07;
    pub const ICONST_5: u8 = 0x08;
    pub const LCONST_0: u8 = 0x09;
    pub const LCONST_1: u8 = 0x0a;
    pub const FCONST_0: u8 = 0x0b;
    pub const FCONST_1: u8 = 0x0c;
    pub const FCONST_2: u8 = 0x0d;
    pub const DCONST_0: u8 = 0x0e;
    pub const DCONST_1: u8 = 0x0f;
    pub const BIPUSH: u8 = 0x10;
    pub const SIPUSH: u8 = 0x11;
    pub const LDC: u8 = 0x12;
    pub const LDC_W: u8 = 0x13;
    pub const LDC2_W: u8 = 0x14;
    pub const ILOAD: u8 = 0x15;
    pub const LLOAD: u8 = 0x16;
    pub const FLOAD: u8 = 0x17;
    pub const DLOAD: u8 = 0x18;
    pub const ALOAD: u8 = 0x19;
    pub const ILOAD_0: u8 = 0x1a;
    pub const ILOAD_1: u8 = 0x1b;
    pub const ILOAD_2: u8 = 0x1c;
    pub const ILOAD_3: u8 = 0x1d;
    pub const LLOAD_0: u8 = 0x1e;
    pub const LLOAD_1: u8 = 0x1f;
    pub const LLOAD_2: u8 = 0x20;
    pub const LLOAD_3: u8 = 0x21;
    pub const FLOAD_0: u8 = 0x22;
    pub const FLOAD_1: u8 = 0x23;
    pub const FLOAD_2: u8 = 0x24;
    pub const FLOAD_3: u8 = 0x25;
    pub const DLOAD_0: u8 = 0x26;
    pub const DLOAD_1: u8 = 0x27;
    pub const DLOAD_2: u8 = 0x28;
    pub const DLOAD_3: u8 = 0x29;
    pub const ALOAD_0: u8 = 0x2a;
    pub const ALOAD_1: u8 = 0x2b;
    pub const ALOAD_2: u8 = 0x2c;
    pub const ALOAD_3: u8 = 0x2d;
    pub const IALOAD: u8 = 0x2e;
    pub const LALOAD: u8 = 0x2f;
    pub const FALOAD: u8 = 0x30;
    pub const DALOAD: u8 = 0x31;
    pub const AALOAD: u8 = 0x32;
    pub const BALOAD: u8 = 0x33;
    pub const CALOAD: u8 = 0x34;
    pub const SALOAD: u8 = 0x35;
    pub const ISTORE: u8 = 0x36;
    pub const LSTORE: u8 = 0x37;
    pub const FSTORE: u8 = 0x38;
    pub const DSTORE: u8 = 0x39;
    pub const ASTORE: u8 = 0x3a;
    pub const ISTORE_0: u8 = 0x3b;
    pub const ISTORE_1: u8 = 0x3c;
    pub const ISTORE_2: u8 = 0x3d;
    pub const ISTORE_3: u8 = 0x3e;
    pub const LSTORE_0: u8 = 0x3f;
    pub const LSTORE_1: u8 = 0x40;
    pub const LSTORE_2: u8 = 0x41;
    pub const LSTORE_3: u8 = 0x42;
    pub const FSTORE_0: u8 = 0x43;
    pub const FSTORE_1: u8 = 0x44;
    pub const FSTORE_2: u8 = 0x45;
    pub const FSTORE_3: u8 = 0x46;
    pub const DSTORE_0: u8 = 0x47;
    pub const DSTORE_1: u8 = 0x48;
    pub const DSTORE_2: u8 = 0x49;
    pub const DSTORE_3: u8 = 0x4a;
    pub const ASTORE_0: u8 = 0x4b;
    pub const ASTORE_1: u8 = 0x4c;
    pub const ASTORE_2: u8 = 0x4d;
    pub const ASTORE_3: u8 = 0x4e;
    pub const IASTORE: u8 = 0x4f;
    pub const LASTORE: u8 = 0x50;
    pub const FASTORE: u8 = 0x51;
    pub const DASTORE: u8 = 0x52;
    pub const AASTORE: u8 = 0x53;
    pub const BASTORE: u8 = 0x54;
    pub const CASTORE: u8 = 0x55;
    pub const SASTORE: u8 = 0x56;
    pub const POP: u8 = 0x57;
    pub const POP2: u8 = 0x58;
    pub const DUP: u8 = 0x59;
    pub const DUP_X1: u8 = 0x5a;
    pub const DUP_X2: u8 = 0x5b;
    pub const DUP2: u8 = 0x5c;
    pub const DUP2_X1: u8 = 0x5d;
    pub const DUP2_X2: u8 = 0x5e;
    pub const SWAP: u8 = 0x5f;
    pub const IADD: u8 = 0x60;
    pub const LADD: u8 = 0x61;
    pub const FADD: u8 = 0x62;
    pub const DADD: u8 = 0x63;
    pub const ISUB: u8 = 0x64;
    pub const LSUB: u8 = 0x65;
    pub const FSUB: u8 = 0x66;
    pub const DSUB: u8 = 0x67;
    pub const IMUL: u8 = 0x68;
    pub const LMUL: u8 = 0x69;
    pub const FMUL: u8 = 0x6a;
    pub const DMUL: u8 = 0x6b;
    pub const IDIV: u8 = 0x6c;
    pub const LDIV: u8 = 0x6d;
    pub const FDIV: u8 = 0x6e;
    pub const DDIV: u8 = 0x6f;
    pub const IREM: u8 = 0x70;
    pub const LREM: u8 = 0x71;
    pub const FREM: u8 = 0x72;
    pub const DREM: u8 = 0x73;
    pub const INEG: u8 = 0x74;
    pub const LNEG: u8 = 0x75;
    pub const FNEG: u8 = 0x76;
    pub const DNEG: u8 = 0x77;
    pub const ISHL: u8 = 0x78;
    pub const LSHL: u8 = 0x79;
    pub const ISHR: u8 = 0x7a;
    pub const LSHR: u8 = 0x7b;
    pub const IUSHR: u8 = 0x7c;
    pub const LUSHR: u8 = 0x7d;
    pub const IAND: u8 = 0x7e;
    pub const LAND: u8 = 0x7f;
    pub const IOR: u8 = 0x80;
    pub const LOR: u8 = 0x81;
    pub const IXOR: u8 = 0x82;
    pub const LXOR: u8 = 0x83;
    pub const IINC: u8 = 0x84;
    pub const I2L: u8 = 0x85;
    pub const I2F: u8 = 0x86;
    pub const I2D: u8 = 0x87;
    pub const L2I: u8 = 0x88;
    pub const L2F: u8 = 0x89;
    pub const L2D: u8 = 0x8a;
    pub const F2I: u8 = 0x8b;
    pub const F2L: u8 = 0x8c;
    pub const F2D: u8 = 0x8d;
    pub const D2I: u8 = 0x8e;
    pub const D2L: u8 = 0x8f;
    pub const D2F: u8 = 0x90;
    pub const I2B: u8 = 0x91;
    pub const I2C: u8 = 0x92;
    pub const I2S: u8 = 0x93;
    pub const LCMP: u8 = 0x94;
    pub const FCMPL: u8 = 0x95;
    pub const FCMPG: u8 = 0x96;
    pub const DCMPL: u8 = 0x97;
    pub const DCMPG: u8 = 0x98;
    pub const IFEQ: u8 = 0x99;
    pub const IFNE: u8 = 0x9a;
    pub const IFLT: u8 = 0x9b;
    pub const IFGE: u8 = 0x9c;
    pub const IFGT: u8 = 0x9d;
    pub const IFLE: u8 = 0x9e;
    pub const IF_ICMPEQ: u8 = 0x9f;
    pub const IF_ICMPNE: u8 = 0xa0;
    pub const IF_ICMPLT: u8 = 0xa1;
    pub const IF_ICMPGE: u8 = 0xa2;
    pub const IF_ICMPGT: u8 = 0xa3;
    pub const IF_ICMPLE: u8 = 0xa4;
    pub const IF_ACMPEQ: u8 = 0xa5;
    pub const IF_ACMPNE: u8 = 0xa6;
    pub const GOTO: u8 = 0xa7;
    pub const JSR: u8 = 0xa8;
    pub const RET: u8 = 0xa9;
    pub const TABLESWITCH: u8 = 0xaa;
    pub const LOOKUPSWITCH: u8 = 0xab;
    pub const IRETURN: u8 = 0xac;
    pub const LRETURN: u8 = 0xad;
    pub const FRETURN: u8 = 0xae;
    pub const DRETURN: u8 = 0xaf;
    pub const ARETURN: u8 = 0xb0;
    pub const RETURN: u8 = 0xb1;
    pub const GETSTATIC: u8 = 0xb2;
    pub const PUTSTATIC: u8 = 0xb3;
    pub const GETFIELD: u8 = 0xb4;
    pub const PUTFIELD: u8 = 0xb5;
    pub const INVOKEVIRTUAL: u8 = 0xb6;
    pub const INVOKESPECIAL: u8 = 0xb7;
    pub const INVOKESTATIC: u8 = 0xb8;
    pub const INVOKEINTERFACE: u8 = 0xb9;
    pub const INVOKEDYNAMIC: u8 = 0xba;
    pub const NEW: u8 = 0xbb;
    pub const NEWARRAY: u8 = 0xbc;
    pub const ANEWARRAY: u8 = 0xbd;
    pub const ARRAYLENGTH: u8 = 0xbe;
    pub const ATHROW: u8 = 0xbf;
    pub const CHECKCAST: u8 = 0xc0;
    pub const INSTANCEOF: u8 = 0xc1;
    pub const MONITORENTER: u8 = 0xc2;
    pub const MONITOREXIT: u8 = 0xc3;
    pub const WIDE: u8 = 0xc4;
    pub const MULTIANEWARRAY: u8 = 0xc5;
    pub const IFNULL: u8 = 0xc6;
    pub const IFNONNULL: u8 = 0xc7;
    pub const GOTO_W: u8 = 0xc8;
    pub const JSR_W: u8 = 0xc9;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(opcode: u8, expected: &str) {
        let o = lookup(opcode).unwrap();
        let text = format!(
            "{} {:?} {}>{} {} {:?} len {}",
            o.mnemonic,
            o.format,
            o.pop,
            o.push,
            if o.may_throw { "throws" } else { "safe" },
            o.flow,
            fixed_len(opcode)
        );
        assert_eq!(text, expected);
    }

    #[test]
    fn known_rows() {
        check(0x00, "nop None > safe Next len 1");
        check(0x3a, "astore Local *> safe Next len 2");
        check(0x6d, "ldiv None JJ>J throws Next len 1");
        check(0x84, "iinc Iinc > safe Next len 3");
        check(0x99, "ifeq Branch2 I> safe Branch len 3");
        check(0xaa, "tableswitch TableSwitch I> safe Switch len 0");
        check(0xb9, "invokeinterface InvokeInterface ?>? throws Next len 5");
        check(0xc5, "multianewarray MultiNewArray ?>? throws Next len 4");
        check(0xc9, "jsr_w Branch4 >R safe Jsr len 5");
        assert!(lookup(0xca).is_none());
        assert_eq!(bits_of(0xff), bits::SPECIAL);
    }
}
