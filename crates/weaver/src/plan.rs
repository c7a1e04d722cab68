//! What is asked for per method, and what came of it.

use crate::probes::Probes;
use std::fmt;
use tare_classfile::opcode::{bits, bits_of, op};
use tare_classfile::{ClassFile, Constant, Insns, access};

/// Bytes of straight code that take less than reading a clock.
const SHORT: usize = 64;

/// What a plan sees of a method when it decides.
#[derive(Clone, Copy, Debug)]
pub struct MethodInfo<'a> {
    /// Internal name of the class.
    pub class: &'a [u8],
    pub name: &'a [u8],
    pub descriptor: &'a [u8],
    pub access_flags: u16,
    /// Position among the methods of the class.
    pub index: usize,
    /// Length of its code; 0 for abstract and native methods.
    pub code_len: usize,
    pub(crate) file: &'a ClassFile<'a>,
    pub(crate) code: &'a [u8],
}

impl MethodInfo<'_> {
    /// Whether no other Java code can run while this method does, but what the JVM runs to make
    /// an exception of its own. Calls say that, and so does whatever may load or initialise
    /// another class. The constructor of `Object` is nothing.
    pub fn calls_nothing(&self) -> bool {
        Insns::from(self.code, 0).all(|insn| {
            let Ok(insn) = insn else { return false };
            let pool = &self.file.pool;
            let of_this_class = |index| pool.member(index).is_ok_and(|m| m.owner == self.class);
            match (insn.opcode, insn.constant()) {
                (op::GETFIELD | op::PUTFIELD | op::GETSTATIC | op::PUTSTATIC, Some(index)) => {
                    of_this_class(index)
                }
                (op::INVOKESPECIAL, Some(index)) => pool
                    .member(index)
                    .is_ok_and(|m| m.owner == b"java/lang/Object" && m.name == b"<init>"),
                (op::LDC | op::LDC_W | op::LDC2_W, Some(index)) => matches!(
                    pool.get(index),
                    Ok(Constant::Integer(_)
                        | Constant::Float(_)
                        | Constant::Long(_)
                        | Constant::Double(_)
                        | Constant::String { .. })
                ),
                (op::NEWARRAY, _) => true,
                // Casts, tests and arrays of other classes may load them.
                (_, Some(_)) => false,
                (opcode, None) => bits_of(opcode) & (bits::INVOKE | bits::ALLOCATES) == 0,
            }
        })
    }
}

impl MethodInfo<'_> {
    /// Version of the class file.
    pub fn major(&self) -> u16 {
        self.file.major
    }

    /// Whether it is over sooner than a clock can be read: it calls nothing, has no loop, allocates
    /// no array, waits for no lock, and is not long.
    pub fn is_short(&self) -> bool {
        let waits = |opcode| matches!(opcode, op::NEWARRAY | op::MONITORENTER);
        self.code.len() <= SHORT
            && self.access_flags & access::SYNCHRONIZED == 0
            && self.has_no_loops()
            && self.calls_nothing()
            && !Insns::from(self.code, 0).flatten().any(|insn| waits(insn.opcode))
    }

    /// Whether no jump leads backwards, so that no stretch of the code runs twice in a call.
    pub fn has_no_loops(&self) -> bool {
        Insns::from(self.code, 0).all(|insn| {
            let Ok(insn) = insn else { return false };
            let here = i64::from(insn.offset);
            insn.target().is_none_or(|target| target > here)
                && insn.switch().is_none_or(|switch| switch.targets().all(|t| t > here))
                // The end of a subroutine leads back to behind its call.
                && !matches!(insn.opcode, op::JSR | op::JSR_W | op::RET | op::WIDE)
        })
    }
}

/// The probes that one method gets.
#[derive(Clone, Debug)]
pub struct MethodPlan<'p> {
    pub id: u32,
    pub probes: &'p Probes,
    /// Ranges of source lines to time, when the probes can.
    pub regions: Vec<RegionPlan>,
    /// The id of the method's first allocation site; the others count up from it.
    pub first_site: u32,
}

impl<'p> MethodPlan<'p> {
    pub fn new(id: u32, probes: &'p Probes) -> Self {
        Self { id, probes, regions: Vec::new(), first_site: 0 }
    }
}

/// A source line, from 1.
pub type Line = u16;

/// Source lines `first..=last` as one region; from line 0 on it is the whole method, also of a
/// class that has no table of lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionPlan {
    pub id: u32,
    pub first: Line,
    pub last: Line,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Weave methods that pass 8,000 bytes by it. HotSpot does not compile those.
    pub allow_huge: bool,
}

/// Why a method was left as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The code is malformed, or not understood.
    BadCode(tare_classfile::Error),
    /// The woven code would pass 65,535 bytes.
    TooLarge,
    /// The woven code would pass 8,000 bytes and the original does not.
    Huge,
    TooManyLocals,
    TooDeepStack,
    TooManyExceptionEntries,
    /// An attribute of the woven code would not fit its length or count field.
    TableOverflow,
    /// An empty `finalize()`: HotSpot treats a class as finalizable when it is not empty, and one
    /// of `Object` would make all objects so.
    EmptyFinalizer,
    /// The JDK marks it so, for its own compilers: entry and exit would be on two threads.
    ChangesThread,
    /// `jsr` or `ret` in a class file whose version does not allow them.
    SubroutineInModernClass,
    /// Code that no frame describes, where types are needed.
    NoFrame(u32),
    /// The types of the stack or of the locals do not work out.
    BadTypes(u32),
    /// No code of the method stands on the lines of a region.
    NoSuchLines(u32),
    /// Sizes do not settle when jumps are widened.
    JumpsDoNotSettle,
    /// The woven constructor does not pass the weaver's own check, so that a JVM might reject it:
    /// the offset in the woven code, and what is wrong there.
    DoesNotVerify(u32, &'static str),
}

impl Refusal {
    /// A short fixed name, for counting.
    pub fn name(&self) -> &'static str {
        match self {
            Self::BadCode(_) => "bad-code",
            Self::TooLarge => "too-large",
            Self::Huge => "huge",
            Self::TooManyLocals => "too-many-locals",
            Self::TooDeepStack => "too-deep-stack",
            Self::TooManyExceptionEntries => "too-many-exception-entries",
            Self::TableOverflow => "table-overflow",
            Self::EmptyFinalizer => "empty-finalizer",
            Self::ChangesThread => "changes-thread",
            Self::SubroutineInModernClass => "subroutine-in-modern-class",
            Self::NoFrame(_) => "no-frame",
            Self::BadTypes(_) => "bad-types",
            Self::NoSuchLines(_) => "no-such-lines",
            Self::JumpsDoNotSettle => "jumps-do-not-settle",
            Self::DoesNotVerify(..) => "does-not-verify",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadCode(e) => write!(f, "the code is malformed: {e}"),
            Self::TooLarge => write!(f, "the woven code would pass 65,535 bytes"),
            Self::Huge => write!(
                f,
                "the woven code would pass 8,000 bytes; HotSpot would no longer compile it"
            ),
            Self::TooManyLocals => write!(f, "no room for another local variable"),
            Self::TooDeepStack => write!(f, "no room on the operand stack"),
            Self::TooManyExceptionEntries => write!(f, "the exception table would overflow"),
            Self::TableOverflow => write!(f, "a table of the woven code would overflow"),
            Self::EmptyFinalizer => write!(f, "an empty finalize() must stay empty"),
            Self::ChangesThread => {
                write!(f, "it changes which thread is the current one")
            }
            Self::SubroutineInModernClass => {
                write!(f, "jsr or ret in a class file of version 51 or later")
            }
            Self::NoFrame(o) => write!(f, "no frame describes the code at offset {o}"),
            Self::BadTypes(o) => write!(f, "the types at offset {o} do not work out"),
            Self::NoSuchLines(id) => write!(f, "no code stands on the lines of region {id}"),
            Self::JumpsDoNotSettle => write!(f, "jump sizes do not settle"),
            Self::DoesNotVerify(o, what) => {
                write!(f, "the woven code does not pass the check at offset {o}: {what}")
            }
        }
    }
}

/// Why nothing of a class was woven.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClassError {
    Malformed(tare_classfile::Error),
    /// The constant pool has no room for what the probes need.
    PoolFull,
}

impl fmt::Display for ClassError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(e) => write!(f, "malformed class file: {e}"),
            Self::PoolFull => write!(f, "the constant pool is full"),
        }
    }
}

impl std::error::Error for ClassError {}

impl From<tare_classfile::Error> for ClassError {
    fn from(e: tare_classfile::Error) -> Self {
        Self::Malformed(e)
    }
}

/// What an allocation site makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SiteKind {
    Object,
    Array,
    Clone,
    /// The object of a lambda or method reference that captures something.
    Capture,
    /// A string joined of others.
    Concat,
    /// What the maker at this position returned.
    Made(u16),
}

/// An allocation site that got a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site {
    pub id: u32,
    pub kind: SiteKind,
    /// Offset of the instruction in the original code.
    pub offset: u32,
    /// The `Class` entry of what it makes, as far as it can be known; the element type of
    /// `newarray`; the entry that other instructions name.
    pub operand: u16,
    /// How many ids it has.
    pub ids: u32,
    /// Which of them are of classes that are watched, as bits.
    pub watched: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MethodOutcome {
    Woven {
        old_len: u32,
        new_len: u32,
        sites: Vec<Site>,
        call_sites: u32,
        /// Constructor calls of watched objects that nothing could be handed over at.
        unwatched: u32,
    },
    Refused(Refusal),
    /// Abstract or native.
    NoCode,
    /// None of the probes has a place in this method.
    NothingToDo,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MethodReport {
    /// Position among the methods of the class.
    pub index: usize,
    pub id: u32,
    pub outcome: MethodOutcome,
}

/// One entry per method that the plan chose.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub methods: Vec<MethodReport>,
}

impl Report {
    pub fn woven(&self) -> usize {
        self.methods.iter().filter(|m| matches!(m.outcome, MethodOutcome::Woven { .. })).count()
    }

    pub fn refusals(&self) -> impl Iterator<Item = (usize, &Refusal)> {
        self.methods.iter().filter_map(|m| match &m.outcome {
            MethodOutcome::Refused(r) => Some((m.index, r)),
            _ => None,
        })
    }
}

/// What became of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// No method was woven; the class stays as it was.
    Unchanged(Report),
    Woven {
        bytes: Vec<u8>,
        report: Report,
    },
}

impl Outcome {
    pub fn report(&self) -> &Report {
        match self {
            Self::Unchanged(report) | Self::Woven { report, .. } => report,
        }
    }
}
