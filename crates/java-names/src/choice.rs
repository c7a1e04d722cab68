//! Which classes are woven, by their names: what the patterns ask for, and what never is, whatever
//! they say, and why. The agent, `tare instrument` and the prediction of what weaving costs all ask
//! here. Which methods of a woven class are refused is the weaver's business.

use crate::jdk::is_jdk;
use crate::pattern::Pattern;
use std::fmt;

/// What the user chose.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClassChoice<'a> {
    /// Without any: everything but the JDK.
    pub include: &'a [Pattern],
    pub exclude: &'a [Pattern],
    /// Woven even if excluded.
    pub also: &'a [Pattern],
}

/// Why a class is not woven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotWoven {
    /// It is part of what probes call, of whatever build.
    ProbeRuntime,
    ProbesCallIt,
    EndsConstructors,
    ChangesThread,
    Excluded,
    OfJdk,
    NotIncluded,
    Hidden,
}

impl fmt::Display for NotWoven {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NotWoven::ProbeRuntime => "it is a part of Tare",
            NotWoven::ProbesCallIt => "the probes themselves call it",
            NotWoven::EndsConstructors => {
                "every constructor ends in it, and the JVM changes it for finalizers"
            }
            NotWoven::ChangesThread => "it changes which thread is the current one",
            NotWoven::Excluded => "--exclude names its class",
            NotWoven::OfJdk => "its class is the JDK's, and no --include names it",
            NotWoven::NotIncluded => "no --include names its class",
            NotWoven::Hidden => "the JVM lets nobody change a hidden class",
        })
    }
}

impl NotWoven {
    /// Whether it would not be woven whatever was asked for, which the user may want to know.
    #[must_use]
    pub fn is_refusal(self) -> bool {
        use NotWoven::{ChangesThread, EndsConstructors, Hidden, ProbesCallIt};
        matches!(self, ProbesCallIt | EndsConstructors | ChangesThread | Hidden)
    }
}

impl ClassChoice<'_> {
    /// Whether a class is woven, and if not, why not.
    pub fn of(&self, class: &str) -> Result<(), NotWoven> {
        match never_woven(class) {
            Some(never) => Err(never),
            None => self.asked_for(class),
        }
    }

    /// Whether the patterns mean a class that could be woven, were it not for [`never_woven`].
    pub fn asked_for(&self, class: &str) -> Result<(), NotWoven> {
        let fits = |patterns: &[Pattern]| patterns.iter().any(|p| p.fits_class(class));
        let asked = if is_probe_runtime(class) {
            Err(NotWoven::ProbeRuntime)
        } else if fits(self.also) {
            Ok(())
        } else if fits(self.exclude) {
            Err(NotWoven::Excluded)
        } else if self.include.is_empty() && is_jdk(class) {
            Err(NotWoven::OfJdk)
        } else if !self.include.is_empty() && !fits(self.include) {
            Err(NotWoven::NotIncluded)
        } else {
            Ok(())
        };
        asked.and_then(|()| if is_hidden(class) { Err(NotWoven::Hidden) } else { Ok(()) })
    }

    /// Whether a class must stay as it is, also where a root or a region is in it.
    #[must_use]
    pub fn is_excluded(&self, class: &str) -> bool {
        is_probe_runtime(class) || self.exclude.iter().any(|pattern| pattern.fits_class(class))
    }
}

/// Whether a class is what probes call: the agent's, or that of programs woven offline.
#[must_use]
pub fn is_probe_runtime(class: &str) -> bool {
    let class = class.as_bytes();
    [b"java.lang.Tare".as_slice(), b"tare.runtime."].iter().any(|prefix| {
        let same = |(a, b): (&u8, &u8)| a == b || (*a == b'.' && *b == b'/');
        class.len() >= prefix.len() && prefix.iter().zip(class).all(same)
    })
}

/// Why a class is never woven, whatever the patterns say. Frames of a continuation are entered on
/// one thread and left on another, also those of its nested classes.
#[must_use]
pub fn never_woven(class: &str) -> Option<NotWoven> {
    let is = |name: &str| {
        let same = |(a, b): (u8, u8)| a == b || (a == b'.' && b == b'/');
        class.len() >= name.len() && name.bytes().zip(class.bytes()).all(same)
    };
    let is_all = |name: &str| class.len() == name.len() && is(name);
    if is_probe_runtime(class) {
        Some(NotWoven::ProbeRuntime)
    } else if is_all("java.lang.Object") {
        Some(NotWoven::EndsConstructors)
    } else if is_all("jdk.internal.misc.Unsafe") {
        Some(NotWoven::ProbesCallIt)
    } else if is_all("java.lang.VirtualThread") || is("jdk.internal.vm.Continuation") {
        Some(NotWoven::ChangesThread)
    } else {
        None
    }
}

/// Whether a class is hidden, by the address in its name. Of lambdas that shows after the name was
/// made stable, too.
#[must_use]
pub fn is_hidden(class: &str) -> bool {
    let has_address = ["/0x", ".0x", "+0x"].iter().any(|mark| class.contains(mark));
    has_address || class.contains("$$Lambda") || (class.contains('/') && class.contains('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(include: &str, exclude: &str, class: &str, expected: Result<(), NotWoven>) {
        let list = |text: &str| -> Vec<Pattern> {
            text.split_whitespace().map(|text| text.parse().unwrap()).collect()
        };
        let (include, exclude) = (list(include), list(exclude));
        let choice = ClassChoice { include: &include, exclude: &exclude, also: &[] };
        // The agent knows classes as class files spell them, recordings as source does.
        for class in [class.to_owned(), class.replace('/', ".")] {
            assert_eq!(choice.of(&class), expected, "{class} of {include:?} but {exclude:?}");
        }
    }

    #[test]
    fn patterns_choose() {
        check("", "", "com/acme/A", Ok(()));
        check("", "", "javax/servlet/A", Err(NotWoven::OfJdk));
        check("javax.**", "", "javax/servlet/A", Ok(()));
        check("javax.**", "", "com/acme/A", Err(NotWoven::NotIncluded));
        check("", "com.acme.**", "com/acme/A", Err(NotWoven::Excluded));
        check("com.**", "com.acme.*", "com/acme/A", Err(NotWoven::Excluded));
    }

    #[test]
    fn some_are_never_woven() {
        check("**", "", "java/lang/Object", Err(NotWoven::EndsConstructors));
        check("**", "", "jdk/internal/misc/Unsafe", Err(NotWoven::ProbesCallIt));
        check("**", "", "java/lang/VirtualThread", Err(NotWoven::ChangesThread));
        check("**", "", "jdk/internal/vm/Continuation$Pinned", Err(NotWoven::ChangesThread));
        check("**", "", "java/lang/TareProbe0123456789abcdef", Err(NotWoven::ProbeRuntime));
        check("**", "", "tare/runtime/Probe", Err(NotWoven::ProbeRuntime));
        check("**", "", "java/lang/Thread", Ok(()));
        check("**", "", "java/lang/ObjectX", Ok(()));
    }

    #[test]
    fn hidden_classes_stay_as_they_are() {
        for include in ["", "**"] {
            for class in ["a/B.0x00007f1200", "a/B$$Lambda.0x00007f1200", "a/B$$Lambda"] {
                check(include, "", class, Err(NotWoven::Hidden));
            }
            check(include, "", "a/B$Lambda", Ok(()));
        }
        check("", "", "java/lang/invoke/LambdaForm$MH.0x0000", Err(NotWoven::OfJdk));
    }

    #[test]
    fn what_is_needed_is_woven_even_if_excluded() {
        let all = ["**".parse().unwrap()];
        let also = ["java.util.concurrent.ForkJoinTask".parse().unwrap()];
        let choice = ClassChoice { include: &[], exclude: &all, also: &also };
        assert_eq!(choice.of("java/util/concurrent/ForkJoinTask"), Ok(()));
        assert_eq!(choice.of("a/B"), Err(NotWoven::Excluded));
    }
}
