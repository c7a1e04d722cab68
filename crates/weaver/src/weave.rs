//! Weaves a class: asks the plan about each method and puts the results together.

use crate::body::Stop;
use crate::method::{ClassProbes, Method, Scratch};
use crate::plan::{
    ClassError, MethodInfo, MethodOutcome, MethodPlan, MethodReport, Options, Outcome, Refusal,
    Report,
};
use crate::probes::Probes;
use tare_classfile::writer::{PoolBuilder, Replaced, assemble};
use tare_classfile::{ClassFile, Code, access, annotations};
use tare_java_names::is_jdk;

/// Keeps buffers from class to class; one per thread.
#[derive(Debug, Default)]
pub struct Weaver {
    pub options: Options,
    scratch: Scratch,
    methods: Vec<u8>,
}

impl Weaver {
    pub fn new(options: Options) -> Self {
        Self { options, ..Self::default() }
    }

    /// Weaves the methods for which `plan` returns something.
    pub fn weave<'p>(
        &mut self,
        bytes: &[u8],
        mut plan: impl FnMut(&MethodInfo<'_>) -> Option<MethodPlan<'p>>,
    ) -> Result<Outcome, ClassError> {
        let class = ClassFile::parse(bytes)?;
        let class_name = class.name()?;
        // Indexing the pool costs more than looking at the methods, so it waits for the first one.
        let mut pool: Option<PoolBuilder<'_>> = None;
        let mut known: Vec<(&'p Probes, ClassProbes)> = Vec::new();
        let mut replaced = Vec::new();
        let mut report = Report::default();
        self.methods.clear();
        let changing_thread = changing_thread(&class, class_name);
        for (index, member) in class.methods.iter().enumerate() {
            let name = class.pool.utf8(member.name_index)?;
            let descriptor = class.pool.utf8(member.descriptor_index)?;
            let code = match member.attributes.find_unique(&class.pool, "Code") {
                Ok(Some(a)) => Some(Code::parse(&a).map(|code| (a, code))),
                Ok(None) => None,
                Err(e) => Some(Err(e)),
            };
            let instructions = match &code {
                Some(Ok((_, code))) => code.code,
                _ => &[],
            };
            let access_flags = member.access_flags;
            let info = MethodInfo {
                class: class_name,
                name,
                descriptor,
                access_flags,
                index,
                code_len: instructions.len(),
                file: &class,
                code: instructions,
            };
            let Some(method_plan) = plan(&info) else { continue };
            let id = method_plan.id;
            let outcome = match code {
                None => MethodOutcome::NoCode,
                Some(_) if access_flags & (access::ABSTRACT | access::NATIVE) != 0 => {
                    MethodOutcome::NoCode
                }
                Some(Err(e)) => MethodOutcome::Refused(Refusal::BadCode(e)),
                Some(Ok(_)) if changing_thread.contains(&index) => {
                    MethodOutcome::Refused(Refusal::ChangesThread)
                }
                Some(Ok((code_attribute, code))) => {
                    let pool = pool.get_or_insert_with(|| PoolBuilder::new(&class));
                    let at = known.iter().position(|(p, _)| std::ptr::eq(*p, method_plan.probes));
                    let at = match at {
                        Some(at) => at,
                        None => {
                            let class_probes = ClassProbes::new(method_plan.probes, &class, pool);
                            match class_probes {
                                Ok(c) => known.push((method_plan.probes, c)),
                                Err(_) => return Err(ClassError::PoolFull),
                            }
                            known.len() - 1
                        }
                    };
                    let Some((_, class_probes)) = known.get(at) else { continue };
                    let method =
                        Method { class: &class, member, name, descriptor, code_attribute, code };
                    let start = self.methods.len();
                    let result = method.weave(
                        &method_plan,
                        class_probes,
                        &self.options,
                        pool,
                        &mut self.scratch,
                        &mut self.methods,
                    );
                    match result {
                        Ok(outcome) => {
                            if matches!(outcome, MethodOutcome::Woven { .. }) {
                                let range = start..self.methods.len();
                                replaced.push(Replaced { method: index, range });
                            }
                            outcome
                        }
                        Err(Stop::Refused(r)) => MethodOutcome::Refused(r),
                        Err(Stop::PoolFull) => return Err(ClassError::PoolFull),
                    }
                }
            };
            report.methods.push(MethodReport { index, id, outcome });
        }
        match pool {
            Some(pool) if !replaced.is_empty() => {
                let bytes = assemble(&class, &pool, &replaced, &self.methods);
                Ok(Outcome::Woven { bytes, report })
            }
            _ => Ok(Outcome::Unchanged(report)),
        }
    }
}

/// The methods, by position, that go on on another thread than they were called on. Only classes of
/// the JDK can bear these marks: in others they mean nothing.
fn changing_thread(class: &ClassFile<'_>, name: &[u8]) -> Vec<usize> {
    const MARKS: [&str; 2] = [
        "Ljdk/internal/vm/annotation/ChangesCurrentThread;",
        "Ljdk/internal/vm/annotation/JvmtiMountTransition;",
    ];
    match std::str::from_utf8(name) {
        Ok(name) if is_jdk(name) => annotations::marked_methods(class, &MARKS),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A class with the methods `a` and `b`, of which `b` is marked.
    fn class(name: &str, mark: &str) -> Vec<u8> {
        let mut out = vec![0xca, 0xfe, 0xba, 0xbe, 0, 0, 0, 61, 0, 8];
        let mut text = |text: &str| {
            out.push(1);
            out.extend(u16::try_from(text.len()).unwrap().to_be_bytes());
            out.extend(text.as_bytes());
        };
        for part in [name, "a", "b", "()V", "RuntimeVisibleAnnotations", mark] {
            text(part);
        }
        out.extend([7, 0, 1]); // #7: the class
        out.extend([0, 0x20, 0, 7, 0, 0, 0, 0, 0, 0, 0, 2]);
        out.extend([0x01, 0x00, 0, 2, 0, 4, 0, 0]);
        out.extend([0x01, 0x00, 0, 3, 0, 4, 0, 1, 0, 5, 0, 0, 0, 6, 0, 1, 0, 6, 0, 0]);
        out.extend([0, 0]);
        out
    }

    #[test]
    fn methods_of_the_jdk_that_change_threads_are_found() {
        let found = |name: &str, mark: &str| {
            let bytes = class(name, mark);
            changing_thread(&ClassFile::parse(&bytes).unwrap(), name.as_bytes())
        };
        for mark in ["ChangesCurrentThread", "JvmtiMountTransition"] {
            let mark = format!("Ljdk/internal/vm/annotation/{mark};");
            assert_eq!(found("java/lang/X", &mark), [1]);
            assert_eq!(found("com/acme/X", &mark), [0; 0]);
        }
        assert_eq!(found("java/lang/X", "Ljava/lang/Deprecated;"), [0; 0]);
    }
}
