//! What the portable runtime's kernels are made of: how many bytecodes of which kind one turn of
//! each has, read off their class files. What a turn takes is measured on a JVM; what follows is
//! for others.

use std::collections::BTreeMap;
use tare_classfile::kinds::Kind;
use tare_classfile::opcode::{bits, bits_of, op};
use tare_classfile::{ClassFile, Code, Error, ErrorKind, ExceptionEntry, insn};

/// How many of each kind, by its number.
pub type Mix = [f64; Kind::EACH.len()];

const KERNELS: &str = "tare/runtime/Kernels";

/// Calls go no deeper than this, and no way is longer.
const DEEPEST: u32 = 8;
const LONGEST: usize = 10_000;

/// The kernels by name.
pub fn mixes(classes: &[(&str, &[u8])]) -> Result<BTreeMap<String, Mix>, Error> {
    let mut methods: BTreeMap<(Vec<u8>, Vec<u8>), Body<'_>> = BTreeMap::new();
    let ours: Vec<ClassFile<'_>> = classes
        .iter()
        .filter(|(name, _)| name.starts_with(KERNELS))
        .map(|(_, bytes)| ClassFile::parse(bytes))
        .collect::<Result<_, _>>()?;
    for class in &ours {
        for member in &class.methods {
            let Some(code) = member.attributes.find(&class.pool, "Code") else { continue };
            let name = class.pool.utf8(member.name_index)?.to_vec();
            let code = Code::parse(&code)?;
            // Constructors are told apart by what they are of, the rest by their names alone.
            let owner = if name == b"<init>" { class.name()?.to_vec() } else { Vec::new() };
            methods.insert((owner, name), Body { class, code });
        }
    }
    let mut mixes = BTreeMap::new();
    for ((owner, name), body) in &methods {
        let Some(head) = body.loop_head() else { continue };
        if owner.is_empty() && name != b"<clinit>" {
            let mut mix = Mix::default();
            body.walk(&methods, head, Some(head), DEEPEST, &mut mix)?;
            mixes.insert(String::from_utf8_lossy(name).into_owned(), mix);
        }
    }
    Ok(mixes)
}

struct Body<'a> {
    class: &'a ClassFile<'a>,
    code: Code<'a>,
}

impl Body<'_> {
    /// Where the loop begins: what the last jump backwards leads to.
    fn loop_head(&self) -> Option<usize> {
        let insns = tare_classfile::Insns::from(self.code.code, 0).flatten();
        let back = insns.filter_map(|insn| {
            let target = insn.target()?;
            (target <= i64::from(insn.offset)).then_some(target)
        });
        back.last().and_then(|target| usize::try_from(target).ok())
    }

    /// Adds what runs from an instruction on until the method ends or comes back to `end`.
    fn walk(
        &self,
        methods: &BTreeMap<(Vec<u8>, Vec<u8>), Body<'_>>,
        from: usize,
        end: Option<usize>,
        depth: u32,
        mix: &mut Mix,
    ) -> Result<(), Error> {
        let code = self.code.code;
        let mut pc = from;
        for _ in 0..LONGEST {
            let insn = insn::insn_at(code, pc)?;
            if let Some(count) = mix.get_mut(Kind::of(insn.opcode) as usize) {
                *count += 1.0;
            }
            let flow = bits_of(insn.opcode);
            if flow & bits::RETURN != 0 {
                return Ok(());
            }
            if let (true, Some(index)) = (flow & bits::INVOKE != 0, insn.constant()) {
                let called = self.class.pool.member(index)?;
                let owner =
                    if called.name == b"<init>" { called.owner.to_vec() } else { Vec::new() };
                let body = methods.get(&(owner, called.name.to_vec()));
                if let (Some(body), Some(depth)) = (body, depth.checked_sub(1)) {
                    body.walk(methods, 0, None, depth, mix)?;
                }
            }
            let next = pc + insn.bytes.len();
            let jump = insn.switch().and_then(|s| s.targets().next()).or_else(|| insn.target());
            pc = match jump.and_then(|target| usize::try_from(target).ok()) {
                // The loop's own condition leaves it.
                Some(target) if insn.opcode != op::GOTO && self.leaves(target) => next,
                Some(target) => target,
                None if insn.opcode == op::ATHROW => self.handler(pc)?,
                None => next,
            };
            if Some(pc) == end {
                return Ok(());
            }
        }
        Err(Error::new(from, ErrorKind::LengthTooLarge))
    }

    /// Whether a place lies behind the last jump backwards.
    fn leaves(&self, target: usize) -> bool {
        let insns = tare_classfile::Insns::from(self.code.code, 0).flatten();
        let back = insns.filter(|insn| insn.target().is_some_and(|t| t <= i64::from(insn.offset)));
        back.last().is_some_and(|last| target > last.offset as usize)
    }

    fn handler(&self, pc: usize) -> Result<usize, Error> {
        let covers = |entry: &ExceptionEntry| (entry.start..entry.end).contains(&(pc as u16));
        let found = self.code.exceptions().find(covers);
        found
            .map(|entry| usize::from(entry.handler))
            .ok_or(Error::new(pc, ErrorKind::UnexpectedEnd))
    }
}
