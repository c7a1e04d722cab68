//! What code calls, read from instructions and constant pools.

use tare_classfile::insn::Insns;
use tare_classfile::opcode::op;
use tare_classfile::pool::MemberRef;
use tare_classfile::{Constant, ConstantPool};

/// A place in code that can lead to another method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Site<'a> {
    /// Calls the method that is found by looking upwards from the owner: static methods,
    /// constructors, private methods, `super.m()`.
    Exact(MemberRef<'a>),
    /// Calls the method of the receiver's class, whichever below the owner that is.
    Virtual(MemberRef<'a>),
    /// May run the static initialiser of a class.
    Use(&'a [u8]),
    /// Makes callable what handles in the class's constant pool name, which [`handles`] lists;
    /// which of them, instructions do not tell.
    Dynamic,
}

/// Calls `found` for each site of a method's code. What is no legal instruction ends it.
pub fn sites<'a>(pool: &ConstantPool<'a>, code: &'a [u8], mut found: impl FnMut(Site<'a>)) {
    for insn in Insns::new(code) {
        let Ok(insn) = insn else { return };
        let member = || insn.constant().and_then(|index| pool.member(index).ok());
        match insn.opcode {
            op::INVOKEVIRTUAL | op::INVOKEINTERFACE => {
                if let Some(member) = member() {
                    found(Site::Virtual(member));
                }
            }
            op::INVOKESPECIAL => {
                if let Some(member) = member() {
                    found(Site::Exact(member));
                }
            }
            op::INVOKESTATIC => {
                if let Some(member) = member() {
                    found(Site::Use(member.owner));
                    found(Site::Exact(member));
                }
            }
            op::GETSTATIC | op::PUTSTATIC => {
                if let Some(member) = member() {
                    found(Site::Use(member.owner));
                }
            }
            op::NEW => {
                if let Some(name) = insn.constant().and_then(|index| pool.class_name(index).ok()) {
                    found(Site::Use(name));
                }
            }
            op::INVOKEDYNAMIC | op::LDC..=op::LDC2_W
                if insn.constant().is_some_and(|index| needs_handles(pool, index)) =>
            {
                found(Site::Dynamic);
            }
            _ => {}
        }
    }
}

/// Whether a constant is a method handle, or made with some. A call site that joins strings or is a
/// switch over patterns names no method of the program; one that makes an object to call a method
/// of returns neither a string nor a number.
fn needs_handles(pool: &ConstantPool<'_>, index: u16) -> bool {
    const PLAIN: [&[u8]; 4] =
        [b"makeConcat", b"makeConcatWithConstants", b"typeSwitch", b"enumSwitch"];
    match pool.get(index) {
        Ok(Constant::MethodHandle { .. } | Constant::Dynamic { .. }) => true,
        Ok(Constant::InvokeDynamic { .. }) => {
            !pool.dynamic(index).is_ok_and(|(name, descriptor)| {
                let returned = descriptor.rsplit(|&b| b == b')').next();
                PLAIN.contains(&name)
                    && returned.is_some_and(|ty| ty == b"I" || ty == b"Ljava/lang/String;")
            })
        }
        _ => false,
    }
}

/// Calls `found` for each method that a handle in the pool names.
pub fn handles<'a>(pool: &ConstantPool<'a>, mut found: impl FnMut(Site<'a>)) {
    for (_, constant) in pool.iter() {
        let Constant::MethodHandle { kind, reference } = constant else { continue };
        let Ok(member) = pool.member(reference) else { continue };
        match kind {
            5 | 9 => found(Site::Virtual(member)),
            6..=8 => found(Site::Exact(member)),
            _ => {} // Fields.
        }
    }
}

/// Calls `found` for each method that the pool names at all.
pub fn references<'a>(pool: &ConstantPool<'a>, mut found: impl FnMut(MemberRef<'a>)) {
    for (index, constant) in pool.iter() {
        if matches!(constant, Constant::Method { .. } | Constant::InterfaceMethod { .. })
            && let Ok(member) = pool.member(index)
        {
            found(member);
        }
    }
}

/// A method with more instructions than this is not trivial.
const TRIVIAL_INSTRUCTIONS: usize = 6;

/// Whether a method is empty, hands out a field, a constant or an argument, or stores an argument
/// in a field: so short that a probe would be most of it. It calls nothing, except that the
/// constructor of a class without superclass is taken for empty.
pub fn is_trivial(pool: &ConstantPool<'_>, name: &[u8], code: &[u8]) -> bool {
    let mut count = 0;
    let mut called = false;
    for insn in Insns::new(code) {
        let Ok(insn) = insn else { return false };
        count += 1;
        let plain = match insn.opcode {
            op::ACONST_NULL..=op::SIPUSH => true,
            op::LDC..=op::LDC2_W => insn
                .constant()
                .is_some_and(|index| !matches!(pool.get(index), Ok(Constant::Dynamic { .. }))),
            op::ILOAD..=op::ALOAD_3 | op::IRETURN..=op::RETURN => true,
            op::GETFIELD | op::PUTFIELD | op::GETSTATIC => true,
            op::INVOKESPECIAL => {
                called = true;
                let member = insn.constant().and_then(|index| pool.member(index).ok());
                member.is_some_and(|m| m.owner == b"java/lang/Object" && m.name == b"<init>")
            }
            _ => false,
        };
        if !plain || count > TRIVIAL_INSTRUCTIONS {
            return false;
        }
    }
    match name {
        b"<clinit>" => false,
        b"<init>" => called && count == 3,
        _ => !called,
    }
}
