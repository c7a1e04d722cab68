//! What a plan says of classes. Which are woven by the patterns, and which never are, is decided in
//! `tare-java-names`; which methods are refused, in the weaver. Here are the parts of the JDK that
//! the search below roots has to know, and how the agent asks.

use tare_classfile::{ClassFile, annotations};
use tare_java_names::{ClassChoice, NotWoven};
use tare_protocol::{ExactPlan, MethodPattern};

/// Parts of the JDK that nothing else in it calls, which yet many programs have objects for:
/// managed beans, and handlers of XML.
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

/// Classes through whose objects a program gets to those parts by the name of another class: of a
/// proxy or an iterator.
const ENTRANCES: [(&str, u8); 4] = [
    ("javax/management/MBeanServerInvocationHandler", 0),
    ("com/sun/xml/internal/stream/XMLEventReaderImpl", 1),
    ("com/sun/xml/internal/stream/EventFilterSupport", 1),
    ("javax/xml/stream/util/EventReaderDelegate", 1),
];

/// The methods, by position, of one of the JVM's own classes that bear one of these marks.
pub fn marked(loader: u32, bytes: &[u8], marks: &[&str]) -> Vec<usize> {
    // Nearly no class mentions the marks at all, and looking for them is quicker than parsing.
    let mentions = loader == 0 && marks.iter().any(|mark| contains(bytes, mark.as_bytes()));
    let class = mentions.then(|| ClassFile::parse(bytes).ok()).flatten();
    class.map_or_else(Vec::new, |class| annotations::marked_methods(&class, marks))
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// Which classes a plan has woven, whatever roots there are.
pub fn choice(plan: &ExactPlan) -> ClassChoice<'_> {
    ClassChoice { include: &plan.include, exclude: &plan.exclude, also: &plan.also }
}

/// Whether a class is among those to weave, whatever roots there are.
pub fn is_included(plan: &ExactPlan, name: &str) -> bool {
    choice(plan).asked_for(name).is_ok()
}

pub fn is_excluded(plan: &ExactPlan, name: &str) -> bool {
    choice(plan).is_excluded(name)
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

/// Why a class that is not woven is not.
pub fn why_outside(plan: &ExactPlan, name: &str) -> NotWoven {
    choice(plan).of(name).err().unwrap_or(NotWoven::NotIncluded)
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

    #[test]
    fn a_plan_chooses_classes_as_every_other_part_of_tare_does() {
        let plan =
            ExactPlan { exclude: vec!["com.acme.log.**".parse().unwrap()], ..ExactPlan::default() };
        for (class, why) in [
            ("com/acme/log/Log", NotWoven::Excluded),
            ("java/lang/String", NotWoven::OfJdk),
            ("com/acme/Orders$$Lambda.0x00007f12", NotWoven::Hidden),
            ("jdk/internal/misc/Unsafe", NotWoven::ProbesCallIt),
        ] {
            assert!(!is_included(&plan, class), "{class}");
            assert_eq!(why_outside(&plan, class), why, "{class}");
        }
        assert!(is_included(&plan, "com/acme/Orders"));
    }
}
