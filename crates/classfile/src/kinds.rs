//! Kinds of bytecodes that take about the same time, for estimates of what a program costs
//! elsewhere.

use crate::opcode::op;

/// What an instruction mostly makes a JVM do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Constants, local variables, the operand stack.
    Move,
    /// Integers: sums, shifts, comparisons, conversions.
    Arithmetic,
    /// Products and quotients of integers.
    Product,
    /// Floating-point numbers.
    Float,
    Field,
    /// Elements and lengths of arrays.
    Element,
    Branch,
    Switch,
    /// A call whose target is known, and the return from it, as in the other calls.
    Call,
    VirtualCall,
    InterfaceCall,
    Object,
    Array,
    Cast,
    Monitor,
    Throw,
    /// What is part of another: returns are of calls.
    Free,
}

impl Kind {
    /// All that cost something, in the order of their numbers.
    pub const EACH: [Kind; 16] = [
        Kind::Move,
        Kind::Arithmetic,
        Kind::Product,
        Kind::Float,
        Kind::Field,
        Kind::Element,
        Kind::Branch,
        Kind::Switch,
        Kind::Call,
        Kind::VirtualCall,
        Kind::InterfaceCall,
        Kind::Object,
        Kind::Array,
        Kind::Cast,
        Kind::Monitor,
        Kind::Throw,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Kind::Move => "move",
            Kind::Arithmetic => "arithmetic",
            Kind::Product => "product",
            Kind::Float => "float",
            Kind::Field => "field",
            Kind::Element => "element",
            Kind::Branch => "branch",
            Kind::Switch => "switch",
            Kind::Call => "call",
            Kind::VirtualCall => "virtual-call",
            Kind::InterfaceCall => "interface-call",
            Kind::Object => "object",
            Kind::Array => "array",
            Kind::Cast => "cast",
            Kind::Monitor => "monitor",
            Kind::Throw => "throw",
            Kind::Free => "free",
        }
    }

    pub fn of(opcode: u8) -> Kind {
        match opcode {
            op::IALOAD..=op::SALOAD | op::IASTORE..=op::SASTORE | op::ARRAYLENGTH => Kind::Element,
            op::IMUL | op::LMUL | op::IDIV | op::LDIV | op::IREM | op::LREM => Kind::Product,
            op::FADD | op::DADD | op::FSUB | op::DSUB | op::FMUL | op::DMUL => Kind::Float,
            op::FDIV | op::DDIV | op::FREM | op::DREM | op::FNEG | op::DNEG => Kind::Float,
            op::I2F | op::I2D | op::L2F | op::L2D => Kind::Float,
            op::F2I..=op::D2F | op::FCMPL..=op::DCMPG => Kind::Float,
            op::IADD..=op::LCMP => Kind::Arithmetic,
            op::IFEQ..=op::RET | op::IFNULL | op::IFNONNULL | op::GOTO_W | op::JSR_W => {
                Kind::Branch
            }
            op::TABLESWITCH | op::LOOKUPSWITCH => Kind::Switch,
            op::IRETURN..=op::RETURN => Kind::Free,
            op::GETSTATIC..=op::PUTFIELD => Kind::Field,
            op::INVOKEVIRTUAL => Kind::VirtualCall,
            op::INVOKESPECIAL | op::INVOKESTATIC => Kind::Call,
            op::INVOKEINTERFACE | op::INVOKEDYNAMIC => Kind::InterfaceCall,
            op::NEW => Kind::Object,
            op::NEWARRAY | op::ANEWARRAY | op::MULTIANEWARRAY => Kind::Array,
            op::CHECKCAST | op::INSTANCEOF => Kind::Cast,
            op::MONITORENTER | op::MONITOREXIT => Kind::Monitor,
            op::ATHROW => Kind::Throw,
            _ => Kind::Move,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_opcode_has_its_kind() {
        let check = |opcode, kind| assert_eq!(Kind::of(opcode), kind, "{opcode}");
        check(op::NOP, Kind::Move);
        check(op::ILOAD, Kind::Move);
        check(op::IASTORE, Kind::Element);
        check(op::POP, Kind::Move);
        check(op::IADD, Kind::Arithmetic);
        check(op::IINC, Kind::Arithmetic);
        check(op::I2L, Kind::Arithmetic);
        check(op::DMUL, Kind::Float);
        check(op::D2I, Kind::Float);
        check(op::LCMP, Kind::Arithmetic);
        check(op::DCMPG, Kind::Float);
        check(op::GOTO, Kind::Branch);
        check(op::ARETURN, Kind::Free);
        check(op::WIDE, Kind::Move);
        check(op::IFNONNULL, Kind::Branch);
        for (number, kind) in Kind::EACH.into_iter().enumerate() {
            assert_eq!(kind as usize, number);
        }
    }
}
