//! Which classes are to be woven by the patterns, and what never is, whatever they say, and why.
//!
//! The list is short, and everything on it that a pattern asked for is named in the recording.

use tare_classfile::{ClassFile, annotations};
pub use tare_java_names::is_jdk;
use tare_protocol::{ExactPlan, MethodPattern};

const STANDS_ON: &str = "the probes themselves call it";
const CONSTRUCTOR: &str = "every constructor ends in it, and the JVM changes it for finalizers";
const CHANGES_THREAD: &str = "it changes which thread is the current one";

/// Parts of the JDK that nothing else in it calls, which yet many programs have objects for: managed beans, and
/// handlers of XML.
const APART: [&[&str]; 2] = [
    &[
        "javax/management/",
        "java/lang/management/",
        "com/sun/management/",
        "com/sun/jmx/",
        "sun/management/",
    ],
    &[
        "javax/xml/",
        "org/xml/sax/",
        "org/w3c/dom/",
        "com/sun/org/apache/",
        "com/sun/xml/",
        "jdk/xml/",
    ],
];

/// Classes through whose objects a program gets to those parts by the name of another class: of a proxy or an iterator.
const ENTRANCES: [(&str, u8); 4] = [
    ("javax/management/MBeanServerInvocationHandler", 0),
    ("com/sun/xml/internal/stream/XMLEventReaderImpl", 1),
    ("com/sun/xml/internal/stream/EventFilterSupport", 1),
    ("javax/xml/stream/util/EventReaderDelegate", 1),
];

/// The JDK marks such methods for its own compilers.
const MARKS: [&str; 2] = [
    "Ljdk/internal/vm/annotation/ChangesCurrentThread;",
    "Ljdk/internal/vm/annotation/JvmtiMountTransition;",
];

/// Whether a class is of the probe runtime, of whatever build. It is ours, so nobody is told.
pub fn is_runtime(class: &str) -> bool {
    class.starts_with("java/lang/Tare")
}

/// Why a class is never woven. Frames of a continuation are entered on one thread and left on
/// another, also those of its nested classes.
pub fn of_class(class: &str) -> Option<&'static str> {
    match class {
        "java/lang/Object" => Some(CONSTRUCTOR),
        "jdk/internal/misc/Unsafe" => Some(STANDS_ON),
        "java/lang/VirtualThread" => Some(CHANGES_THREAD),
        _ if class.starts_with("jdk/internal/vm/Continuation") => Some(CHANGES_THREAD),
        _ => None,
    }
}

/// The methods, by position, that are never woven, and why. Only the JVM's own classes can bear
/// the marks: in others they mean nothing.
pub fn of_methods(loader: u32, bytes: &[u8]) -> (Vec<usize>, &'static str) {
    (marked(loader, bytes, &MARKS), CHANGES_THREAD)
}

/// The methods, by position, of one of the JVM's own classes that bear one of these marks.
pub fn marked(loader: u32, bytes: &[u8], marks: &[&str]) -> Vec<usize> {
    let marked = || {
        let class = ClassFile::parse(bytes).ok()?;
        let is_marked = |member: &tare_classfile::Member<'_>| {
            let list = member.attributes.find(&class.pool, "RuntimeVisibleAnnotations");
            let mut found = false;
            if let Some(list) = list {
                let _ = annotations::types(list.reader(), |index| {
                    let name = class.pool.utf8(index).unwrap_or_default();
                    found |= marks.iter().any(|mark| mark.as_bytes() == name);
                });
            }
            found
        };
        let methods = class.methods.iter().enumerate();
        Some(methods.filter(|(_, m)| is_marked(m)).map(|(index, _)| index).collect())
    };
    // Nearly no class mentions the marks at all, and looking for them is quicker than parsing.
    let mentions = loader == 0 && marks.iter().any(|mark| contains(bytes, mark.as_bytes()));
    if mentions { marked().unwrap_or_default() } else { Vec::new() }
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// Whether a class is among those to weave, whatever roots there are.
pub fn is_included(plan: &ExactPlan, name: &str) -> bool {
    let included = match plan.include.as_slice() {
        [] => !is_jdk(name) && !name.contains('.'), // Hidden classes have a dot.
        patterns => patterns.iter().any(|p| p.fits_class(name)),
    };
    let also = plan.also.iter().any(|p| p.fits_class(name));
    (included && !is_excluded(plan, name)) || also
}

pub fn is_excluded(plan: &ExactPlan, name: &str) -> bool {
    is_runtime(name) || plan.exclude.iter().any(|p| p.fits_class(name))
}

/// Whether one of some patterns means a method.
pub fn fits_any(patterns: &[MethodPattern], class: &str, method: &[u8], descriptor: &[u8]) -> bool {
    let (Ok(method), Ok(descriptor)) =
        (std::str::from_utf8(method), std::str::from_utf8(descriptor))
    else {
        return false;
    };
    patterns.iter().any(|pattern| pattern.fits(class, method, descriptor))
}

/// Why a class is not among those to weave.
pub fn why_outside(plan: &ExactPlan, name: &str) -> &'static str {
    if let Some(rule) = of_class(name) {
        rule
    } else if is_excluded(plan, name) {
        "--exclude names its class"
    } else if name.contains('.') {
        "the JVM lets nobody change a hidden class"
    } else if plan.include.is_empty() {
        "its class is the JDK's, and no --include names it"
    } else {
        "no --include names its class"
    }
}

/// The part of the JDK, of those that the rest of it does not call, that a class is of.
pub fn part_apart(name: &str) -> Option<u8> {
    let is_of = |prefixes: &&[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
    APART.iter().position(is_of).and_then(|part| u8::try_from(part).ok())
}

/// The part that code may get to without naming it, once a class is loaded.
pub fn entrance(name: &[u8]) -> Option<u8> {
    ENTRANCES.iter().find(|(class, _)| class.as_bytes() == name).map(|(_, part)| *part)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A class with the methods `a` and `b`, of which `b` is marked.
    fn class(mark: &str) -> Vec<u8> {
        let mut out = vec![0xca, 0xfe, 0xba, 0xbe, 0, 0, 0, 61, 0, 8];
        let mut text = |text: &str| {
            out.push(1);
            out.extend(u16::try_from(text.len()).unwrap().to_be_bytes());
            out.extend(text.as_bytes());
        };
        for part in ["X", "a", "b", "()V", "RuntimeVisibleAnnotations", mark] {
            text(part);
        }
        out.extend([7, 0, 1]); // #7: class X
        out.extend([0, 0x20, 0, 7, 0, 0, 0, 0, 0, 0, 0, 2]);
        out.extend([0x01, 0x00, 0, 2, 0, 4, 0, 0]);
        out.extend([0x01, 0x00, 0, 3, 0, 4, 0, 1, 0, 5, 0, 0, 0, 6, 0, 1, 0, 6, 0, 0]);
        out.extend([0, 0]);
        out
    }

    #[test]
    fn marked_methods_of_the_jvms_own_classes_are_left_alone() {
        for mark in MARKS {
            assert_eq!(of_methods(0, &class(mark)).0, [1]);
            assert!(of_methods(1, &class(mark)).0.is_empty());
        }
        assert!(of_methods(0, &class("Ljava/lang/Deprecated;")).0.is_empty());
        assert!(of_methods(0, &class(MARKS[0])[..50]).0.is_empty());
    }

    #[test]
    fn classes_that_are_never_woven() {
        for name in ["java/lang/VirtualThread", "jdk/internal/vm/Continuation$Pinned"] {
            assert_eq!(of_class(name), Some(CHANGES_THREAD));
        }
        assert_eq!(of_class("java/lang/Thread"), None);
    }
}
