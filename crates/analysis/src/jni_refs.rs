//! Global and weak references of native code: who makes them, and which are not deleted.

use std::collections::BTreeMap;
use tare_profile::facts::keys;
use tare_profile::{ContextId, JniReferences, MethodKind, Profile};

/// References that were made in one place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JniSite {
    /// The class of the objects; empty if it is not known.
    pub class: String,
    /// The function that made them, with its library; empty if it is not known.
    pub native: String,
    /// The Java method that called native code; empty if there is none.
    pub java: String,
    pub weak: bool,
    pub made: u64,
    /// How many of them are not deleted.
    pub alive: u64,
}

/// All of a recording, those first of which most are not deleted.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct JniRefs {
    pub made: u64,
    pub alive: u64,
    /// Deleted ones that were made before the recording.
    pub older: u64,
    pub sites: Vec<JniSite>,
}

/// What tells sites apart: class, function, method, and whether they are weak.
type Key = (String, String, String, bool);

impl JniRefs {
    /// `None` if the profile tells nothing of them.
    #[must_use]
    pub fn of(profile: &Profile) -> Option<Self> {
        let facts = &profile.run.facts;
        if !facts.has(keys::JNI_MADE) {
            return None;
        }
        let mut places: BTreeMap<ContextId, (String, String, String)> = BTreeMap::new();
        let mut sites: BTreeMap<Key, [i64; 2]> = BTreeMap::new();
        for (_, series) in profile.all_series() {
            let Some(kind) = JniReferences::of(&series.info().kind) else { continue };
            let weak = matches!(kind, JniReferences::Weak | JniReferences::WeakAlive);
            let alive = matches!(kind, JniReferences::GlobalAlive | JniReferences::WeakAlive);
            for row in series.rows() {
                let place =
                    places.entry(row.context).or_insert_with(|| place(profile, row.context));
                let (class, native, java) = place.clone();
                let sums = sites.entry((class, native, java, weak)).or_default();
                sums[usize::from(alive)] += row.value;
            }
        }
        let count = |value: i64| u64::try_from(value).unwrap_or(0);
        let sites = sites.into_iter().map(|((class, native, java, weak), [made, alive])| JniSite {
            class,
            native,
            java,
            weak,
            made: count(made),
            alive: count(alive),
        });
        let mut sites: Vec<JniSite> = sites.collect();
        sites.sort_by_key(|site| std::cmp::Reverse((site.alive, site.made)));
        Some(JniRefs {
            made: sites.iter().map(|site| site.made).sum(),
            alive: sites.iter().map(|site| site.alive).sum(),
            older: facts.get(keys::JNI_DELETED_OLDER).unwrap_or(0),
            sites,
        })
    }
}

/// Class, native function and Java method of a stack.
fn place(profile: &Profile, context: ContextId) -> (String, String, String) {
    let (mut class, mut native, mut java) = (String::new(), String::new(), String::new());
    for frame in profile.contexts.frames(context) {
        let id = profile.frames.get(frame).method;
        let method = profile.methods.get(id);
        match method.kind {
            MethodKind::Class => class = profile.method_name(id),
            MethodKind::Native if native.is_empty() => {
                let module = profile.strings.get(method.module);
                // What the JVM does for somebody is that one's.
                if !module.starts_with("libjvm") {
                    native = format!("{} ({module})", profile.method_name(id));
                }
            }
            MethodKind::Java => {
                java = profile.method_name(id);
                break;
            }
            MethodKind::Special if native.is_empty() && java.is_empty() => {
                native = profile.method_name(id);
            }
            _ => {}
        }
    }
    (class, native, java)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_profile::{Frame, Method, Row, SeriesInfo, ThreadId, ValueKind};

    #[test]
    fn those_that_are_not_deleted_come_first() {
        let mut profile = Profile::new();
        assert_eq!(JniRefs::of(&profile), None);
        let mut stack = |frames: &[(MethodKind, &str, &str)]| {
            let frames: Vec<_> = frames
                .iter()
                .map(|(kind, name, module)| {
                    let [name, module] = [name, module].map(|text| profile.strings.intern(text));
                    let method = Method { kind: *kind, name, module, ..Method::default() };
                    let method = profile.methods.intern(method);
                    profile.frames.intern(Frame::of(method))
                })
                .collect();
            profile.contexts.stack(frames)
        };
        use MethodKind::{Class, Java, Native};
        let leak = stack(&[
            (Java, "main", ""),
            (Java, "leak", ""),
            (Native, "leak_it", "libleak.so"),
            (Native, "JNIEnv::f", "libjvm.so"),
            (Class, "Order", ""),
        ]);
        let tidy = stack(&[(Native, "tidy", "libtidy.so")]);
        for (kind, rows) in [
            (JniReferences::Global, &[(tidy, 50), (leak, 7), (leak, 3)][..]),
            (JniReferences::GlobalAlive, &[(tidy, 50), (leak, 10), (tidy, -49)]),
            (JniReferences::Weak, &[(tidy, 2)]),
        ] {
            let info = SeriesInfo::new("jni", ValueKind::from(kind));
            let series = profile.add_series(info);
            for (context, value) in rows {
                let row = Row::new(*context, ThreadId::UNKNOWN, *value);
                profile.series_mut(series).push(row);
            }
        }
        profile.run.facts.set(keys::JNI_MADE, &62);
        profile.run.facts.set(keys::JNI_DELETED_OLDER, &5);
        let refs = JniRefs::of(&profile).unwrap();
        assert_eq!((refs.made, refs.alive, refs.older), (62, 11, 5));
        let [first, second, third] = &refs.sites[..] else { panic!("{refs:?}") };
        assert_eq!((first.class.as_str(), first.java.as_str()), ("Order", "leak"));
        assert_eq!(
            (first.native.as_str(), first.made, first.alive),
            ("leak_it (libleak.so)", 10, 10)
        );
        assert_eq!(
            (second.native.as_str(), second.alive, second.weak),
            ("tidy (libtidy.so)", 1, false)
        );
        assert_eq!((third.made, third.alive, third.weak), (2, 0, true));
    }
}
