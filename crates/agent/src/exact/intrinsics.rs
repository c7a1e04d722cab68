//! Methods in whose place HotSpot runs code of its own.
//!
//! Its compilers do that with a method that has the number of an intrinsic, whatever its body is;
//! a woven body would be run as long as its callers are interpreted, and no longer. So the number
//! is taken away from woven methods, right after the JVM has made them. Loading the class again
//! without probes makes them anew, with their number. (Compiler directives have an option for it
//! that has no effect, in JDK 17 to 25: HotSpot reads it before it is set.)
//!
//! Where the number is comes from the tables that libjvm exports for its own tools. Nothing is
//! written before the method was recognised by the length of its code, and all memory is reached by
//! system calls that bear a wrong address.

use super::own_memory::{read, write};
use super::{Between, FROM_THE_START, Recording, dotted, locked, redefined, rules};
use crate::jvm::classes::{Classes, name_of};
use crate::jvm::{Failure, Jni, Jvmti};
use crate::vm_tables::Tables;
use jvmti_bindings::sys::jni::{jclass, jmethodID};
use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;
use std::sync::atomic::Ordering::Relaxed;
use tare_classfile::{ClassFile, Constant, ConstantPool};
use tare_java_names::never_woven;
use tare_protocol::Activity;
use tare_weaver::{MethodOutcome, Report};

/// The JDK marks what its compilers may replace.
pub const MARK: &str = "Ljdk/internal/vm/annotation/IntrinsicCandidate;";

/// The interpreter does that, too: a woven body would never be run.
const NEVER_RUN: [(&str, &[&str]); 5] = [
    (
        "java/lang/Math",
        &[
            "abs(D)D",
            "sin(D)D",
            "cos(D)D",
            "tan(D)D",
            "tanh(D)D",
            "cbrt(D)D",
            "sqrt(D)D",
            "log(D)D",
            "log10(D)D",
            "pow(DD)D",
            "exp(D)D",
            "fma(DDD)D",
            "fma(FFF)F",
        ],
    ),
    ("java/lang/StrictMath", &["sqrt(D)D"]),
    ("java/lang/Float", &["float16ToFloat(S)F", "floatToFloat16(F)S"]),
    ("java/lang/ref/Reference", &["get()Ljava/lang/Object;"]),
    ("java/util/zip/CRC32C", &["updateBytes(I[BII)I", "updateDirectByteBuffer(IJII)I"]),
];

/// What is said when a number could not be taken away.
pub const STILL_ON: &str = "the JVM's compilers replace some JDK methods by intrinsics; their counts \
                            may be too low";

/// What is said of a caller that the JVM does not let us load again.
const NOT_RENEWED: &str = "it calls methods that were intrinsics before the recording and cannot be \
                           retransformed; where it was compiled already, those calls are missing";

/// What is said of calls that leave no trace at their caller.
const NOT_FOUND: (&str, &str) = (
    "constant method handles",
    "code compiled before this recording, while their methods were intrinsics, cannot be found \
     and deoptimised; its calls through them are missing",
);

/// Why those are not woven.
pub const REASON: &str = "the JVM runs an intrinsic in its place, even in the interpreter";

/// Whether no woven body of a method would ever be run.
pub fn is_never_run(class: &str, method: &[u8], descriptor: &[u8]) -> bool {
    NEVER_RUN.iter().filter(|(name, _)| *name == class).any(|(_, methods)| {
        methods.iter().any(|known| {
            let (name, rest) = known.split_at(known.find('(').unwrap_or(known.len()));
            name.as_bytes() == method && rest.as_bytes() == descriptor
        })
    })
}

/// A woven method that may be an intrinsic.
pub struct Candidate {
    pub name: Vec<u8>,
    pub descriptor: Vec<u8>,
    pub code_length: u32,
}

/// The candidates of each class that was woven, by name.
#[derive(Default)]
pub struct Candidates {
    classes: HashMap<String, Vec<Candidate>>,
    /// Those whose callers may have been compiled while they were intrinsics.
    fresh: HashSet<(Vec<u8>, Vec<u8>)>,
    /// Whether some are woven to be counted, and not only to see what reflection reveals.
    counted: bool,
    /// Methods that are no intrinsics for now, and methods that still are.
    pub off: u64,
    pub on: u64,
}

impl Candidates {
    pub fn note(&mut self, class: &str, candidates: Vec<Candidate>) {
        if !candidates.is_empty() {
            self.classes.insert(class.to_owned(), candidates);
        }
    }

    /// Whether some wait for their class to be there.
    pub fn any(&self) -> bool {
        !self.classes.is_empty()
    }

    /// Takes the numbers away from the methods of a class that is there now.
    pub fn switch_off(&mut self, jvmti: Jvmti, name: &str, class: jclass) {
        let Some(candidates) = self.classes.remove(name) else { return };
        let methods = jvmti.methods(class).unwrap_or_default();
        for candidate in candidates {
            let method = methods
                .iter()
                .find(|m| m.name == candidate.name && m.descriptor == candidate.descriptor);
            let done = method.zip(places(jvmti)).is_some_and(|(method, places)| {
                places.clear(method.id, candidate.code_length).is_some()
            });
            if done {
                self.off += 1;
                self.fresh.insert((candidate.name, candidate.descriptor));
            } else {
                self.on += 1;
            }
        }
    }
}

impl Recording {
    /// Notes which of the woven methods the JVM's compilers would replace.
    pub(super) fn note_candidates(&self, class: &str, loader: u32, bytes: &[u8], report: &Report) {
        let marked = rules::marked(loader, bytes, &[MARK]);
        let Some(parsed) = (!marked.is_empty()).then(|| ClassFile::parse(bytes).ok()).flatten()
        else {
            return;
        };
        let text = |index| Some(parsed.pool.utf8(index).ok()?.to_vec());
        let woven = report.methods.iter().filter_map(|method| match method.outcome {
            MethodOutcome::Woven { new_len, .. } if marked.contains(&method.index) => {
                let member = parsed.methods.get(method.index)?;
                Some(Candidate {
                    name: text(member.name_index)?,
                    descriptor: text(member.descriptor_index)?,
                    code_length: new_len,
                })
            }
            _ => None,
        });
        let woven: Vec<Candidate> = woven.collect();
        let counted = !woven.is_empty() && self.is_asked_for(class);
        let mut candidates = locked(&self.candidates);
        candidates.counted |= counted;
        candidates.note(class, woven);
    }

    /// A class is ready that was not there before.
    pub(super) fn prepared(&self, class: jclass) {
        if locked(&self.candidates).any() {
            self.switch_intrinsics_off(class);
        }
    }

    /// Has the woven methods of a class run whatever calls them.
    pub(super) fn switch_intrinsics_off(&self, class: jclass) {
        let Some(name) = name_of(self.jvmti, class) else { return };
        let mut candidates = locked(&self.candidates);
        let before = candidates.on;
        candidates.switch_off(self.jvmti, &name, class);
        if candidates.on > before {
            self.refuse(&dotted(&name), STILL_ON);
        }
    }

    /// Nothing is recorded that they could be missing from.
    pub(super) fn renew_no_callers(&self) {
        locked(&self.candidates).fresh.clear();
    }

    pub(super) fn has_callers_to_renew(&self) -> bool {
        !locked(&self.candidates).fresh.is_empty()
    }

    /// Has code thrown away that was compiled while the methods just woven were intrinsics: it does
    /// without their bodies, and HotSpot does not note that it has to do with them. Their callers
    /// are those whose constants name them; a call may go by the name of a supertype. Whether
    /// `between` let it come to its end.
    pub(super) fn renew_callers(
        &self,
        jni: Jni,
        all: &Classes<'_>,
        between: &mut Between<'_>,
    ) -> Result<bool, Failure> {
        let fresh = std::mem::take(&mut locked(&self.candidates).fresh);
        if fresh.is_empty() {
            return Ok(true);
        }
        let mut callers = Vec::new();
        for &class in all.list() {
            let Some(name) = all.name(class) else { continue };
            let passed_by = never_woven(&name).is_some();
            if passed_by || self.has_woven(&name, all.loader(class)) {
                continue;
            }
            let pool = self.jvmti.constant_pool(class).unwrap_or_default();
            if !names_one_of(&pool, &fresh) {
                continue;
            }
            let older = jni.forgets_redefinitions() && redefined::is_changed(jni, all, class);
            if !older && self.jvmti.is_modifiable(class) && !self.is_event(jni, class) {
                callers.push(class);
            } else if self.has_compiled_code_of_before() {
                self.refuse(&dotted(&name), NOT_RENEWED);
            }
        }
        if locked(&self.candidates).counted && self.memory.session > 1 {
            self.refuse(NOT_FOUND.0, NOT_FOUND.1);
        }
        let renewed = self.in_batches(all, &callers, Activity::Renewing, between)?;
        // The JVM gives up what it was compiling meanwhile when any class changes.
        let mut any = all.select(|name, _| name == "java/lang/Void");
        any.retain(|&class| all.link(class).is_ok());
        let _ = self.jvmti.retransform(&any);
        Ok(renewed)
    }

    /// The first change of a class that was not announced at the start of the JVM makes HotSpot
    /// throw all compiled code away.
    fn has_compiled_code_of_before(&self) -> bool {
        FROM_THE_START.load(Relaxed) || self.memory.session > 1
    }
}

/// Whether a class can call one of these methods, as far as its constants tell.
fn names_one_of(pool: &[u8], methods: &HashSet<(Vec<u8>, Vec<u8>)>) -> bool {
    let Ok(pool) = ConstantPool::from_bytes(pool) else { return false };
    pool.iter().any(|(_, constant)| match constant {
        Constant::Method { name_and_type, .. }
        | Constant::InterfaceMethod { name_and_type, .. } => {
            pool.name_and_type(name_and_type).is_ok_and(|(name, descriptor)| {
                methods.contains(&(name.to_vec(), descriptor.to_vec()))
            })
        }
        _ => false,
    })
}

/// Where HotSpot keeps what we need of a method.
#[derive(Clone, Copy)]
struct Places {
    constant_part: u64,
    code_size: u64,
    number: u64,
}

fn places(jvmti: Jvmti) -> Option<Places> {
    static PLACES: OnceLock<Option<Places>> = OnceLock::new();
    *PLACES.get_or_init(|| {
        let tables = Tables::read(jvmti.inside_libjvm()).ok()?;
        let offset = |of, name| tables.offset(&[of], name).ok();
        Some(Places {
            constant_part: offset("Method", "_constMethod")?,
            code_size: offset("ConstMethod", "_code_size")?,
            number: offset("Method", "_intrinsic_id")?,
        })
    })
}

impl Places {
    /// An id points to where the method's address is.
    fn clear(self, id: jmethodID, code_length: u32) -> Option<()> {
        let method = u64::from_ne_bytes(read(id as u64)?);
        let constant_part = u64::from_ne_bytes(read(method.checked_add(self.constant_part)?)?);
        let size = u16::from_ne_bytes(read(constant_part.checked_add(self.code_size)?)?);
        if u32::from(size) != code_length {
            return None;
        }
        let number = method.checked_add(self.number)?;
        match u16::from_ne_bytes(read(number)?) {
            0 => Some(()),
            // SAFETY: the number of a method that was recognised; compilers read it, in one piece,
            // when they come across the method.
            _ => unsafe { write(number, [0; 2]) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_cleared_only_in_a_method_that_is_recognised() {
        // A method: the address of its constant part, and its number; the part: its code's size.
        let part = [0_u16, 0, 77];
        let method = [part.as_ptr() as u64, 0x1234_0005];
        let id = &raw const method as u64;
        let places = Places { constant_part: 0, code_size: 4, number: 8 };
        let clear = |length| places.clear((&raw const id).cast_mut().cast(), length);
        assert_eq!(clear(76), None);
        assert_eq!(std::hint::black_box(method)[1], 0x1234_0005);
        assert_eq!(clear(77), Some(()));
        // SAFETY: a local that was written to behind the compiler's back.
        let now = unsafe { (&raw const method[1]).read_volatile() };
        assert_eq!(now, 0x1234_0000);
        assert_eq!(read::<8>(8), None);
    }

    #[test]
    fn methods_go_by_name_and_descriptor() {
        assert!(is_never_run("java/lang/Math", b"abs", b"(D)D"));
        assert!(!is_never_run("java/lang/Math", b"abs", b"(I)I"));
        assert!(!is_never_run("java/lang/Math", b"ab", b"s(D)D"));
        assert!(!is_never_run("a/B", b"abs", b"(D)D"));
    }
}
