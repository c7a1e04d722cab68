//! What a JVM wants with archives of classes (CDS, AOT caches): whether it insists on the one that
//! it has, and whether it makes one, which HotSpot cannot do of classes that were changed.
//!
//! Asked of HotSpot itself, which has read its command line, variables and files of options by
//! then.

use crate::jvm::Jvmti;
use crate::vm_tables::Tables;

/// Before this release HotSpot crashes when it archives classes that were changed, at the JVM's end
/// or when `jcmd` says so.
const ARCHIVES_CHANGED_CLASSES: u32 = 21;

const DYNAMIC: &str = "this JVM dumps a class data archive (-XX:ArchiveClassesAtExit or \
                       -XX:+RecordDynamicDumpInfo), and before JDK 21 HotSpot crashes when \
                       classes were retransformed. Record a run without that option, or sample \
                       (leave out --exact)";
const TRAINING: &str = "this JVM writes an AOT cache (-XX:AOTMode=record or -XX:AOTCacheOutput), \
                        and HotSpot crashes when classes were retransformed. Record a run \
                        without that option, or sample (leave out --exact)";

/// Why no class of this JVM may be changed.
pub fn refusal(jvmti: Jvmti) -> Option<&'static str> {
    let tables = Tables::read(jvmti.inside_libjvm()).ok()?;
    let version = jvmti.java_version();
    let major = version.and_then(|version| version.split('.').next()?.parse().ok()).unwrap_or(0);
    if trains(&tables) {
        return Some(TRAINING);
    }
    let on = |name: &str| tables.flag(name) == Some(true);
    let dynamic = on("DynamicDumpSharedSpaces")
        || on("RecordDynamicDumpInfo")
        || tables.text_flag("ArchiveClassesAtExit").is_some();
    (dynamic && major < ARCHIVES_CHANGED_CLASSES).then_some(DYNAMIC)
}

fn trains(tables: &Tables) -> bool {
    tables.text_flag("AOTMode").as_deref() == Some("record")
        || tables.text_flag("AOTCacheOutput").is_some()
}

/// Whether the JVM insists on its archive: then it refuses to start with a hook as early as ours.
pub fn is_demanded(jvmti: Jvmti) -> bool {
    let Ok(tables) = Tables::read(jvmti.inside_libjvm()) else { return words_demand() };
    let mode = tables.text_flag("AOTMode");
    tables.flag("RequireSharedSpaces") == Some(true)
        || matches!(mode.as_deref(), Some("on" | "required"))
        || demands(tables.arguments().iter().map(String::as_str))
}

/// Whether options demand it; the last word on sharing counts.
fn demands<'a>(options: impl Iterator<Item = &'a str>) -> bool {
    let mut demanded = false;
    for option in options {
        match option {
            "-Xshare:on" | "-XX:+RequireSharedSpaces" | "-XX:AOTMode=on" => demanded = true,
            "-Xshare:auto" | "-Xshare:off" => demanded = false,
            _ => {}
        }
    }
    demanded
}

/// For a JVM that does not tell: what its command line and variables say, without files.
fn words_demand() -> bool {
    let mut words = std::fs::read("/proc/self/cmdline").unwrap_or_default();
    for key in ["JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS"] {
        words.push(b' ');
        words.extend(std::env::var_os(key).unwrap_or_default().into_encoded_bytes());
    }
    let words = words.split(|b| *b == 0 || b.is_ascii_whitespace());
    demands(words.filter_map(|word| std::str::from_utf8(word).ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_on_sharing_counts() {
        let check = |words: &str| demands(words.split(' '));
        assert!(check("-Xmx1g -Xshare:on Main"));
        assert!(check("-Xshare:off -Xshare:on"));
        assert!(check("-XX:AOTMode=on"));
        assert!(!check("-Xshare:on -Xshare:auto"));
        assert!(!check("Main"));
    }
}
