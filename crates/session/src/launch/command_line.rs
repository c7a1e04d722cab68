//! The command line and the environment by which a program gets the agent.

use crate::error::{Context, Result, refuse};
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::path::Path;
use tare_protocol::AgentOptions;

/// The variable that gives every JVM of a program more options.
pub(super) const TOOL_OPTIONS: &str = "JAVA_TOOL_OPTIONS";

/// Only the launcher itself takes JVM flags first; `javac` and friends want `-J`.
pub fn is_java(program: &OsStr) -> bool {
    Path::new(program).file_name() == Some(OsStr::new("java"))
}

/// The option by which a `java` command makes an archive of classes, wherever it stands.
pub(super) fn archiving(arguments: &[OsString]) -> Option<String> {
    /// Longer files of options there are none.
    const LARGEST: u64 = 1 << 20;
    let words: Vec<String> = arguments.iter().map(|a| a.to_string_lossy().into_owned()).collect();
    // A pipe (`java @<(…)`) can be read once only, and that is up to the program.
    let read = |name: &str| {
        let file = tare_symbols::open_regular(Path::new(name)).ok()?;
        let mut text = String::new();
        file.take(LARGEST).read_to_string(&mut text).ok()?;
        Some(text)
    };
    archiving_option(tare_attach::vm_options(&words, &read, &|name| std::env::var(name).ok()))
}

fn archiving_option(options: Vec<String>) -> Option<String> {
    const SWITCHES: [&str; 4] = [
        "AutoCreateSharedArchive",
        "RecordDynamicDumpInfo",
        "DumpSharedSpaces",
        "DynamicDumpSharedSpaces",
    ];
    let mut found: Vec<String> = Vec::new();
    for option in options {
        let flag = option.strip_prefix("-XX:").unwrap_or_default();
        let switch = |sign| flag.strip_prefix(sign).filter(|name| SWITCHES.contains(name));
        if let Some(off) = switch('-') {
            found.retain(|known| !known.ends_with(off));
        }
        let archives = option == "-Xshare:dump"
            || flag.starts_with("ArchiveClassesAtExit=")
            || flag == "AOTMode=create"
            || switch('+').is_some();
        if archives {
            found.push(option);
        }
    }
    found.pop()
}

pub(super) fn agent_flag(library: &Path, options: &AgentOptions) -> Result<String> {
    let path = library.to_str().context("the path of the agent library is not UTF-8")?;
    if path.contains('=') {
        // The JVM ends the path at the first of these.
        refuse!(
            "the agent library lies in {path}; a JVM cannot load it from a path with '='. \
             Set TARE_CACHE to another directory"
        );
    }
    Ok(format!("-agentpath:{path}={options}"))
}

/// What was there stays, and stays before the agent; our flags come first of all, because the JVM
/// takes the last of contradicting ones.
pub(super) fn tool_options(
    flags: &[&str],
    existing: Option<OsString>,
    flag: &str,
) -> Result<OsString> {
    let quoted = if !flag.contains(char::is_whitespace) {
        flag.to_owned()
    } else if !flag.contains('"') {
        format!("\"{flag}\"")
    } else {
        refuse!(
            "the path of the agent library has both spaces and quotes; \
             set TARE_CACHE to another directory"
        );
    };
    let existing = existing.filter(|value| !value.is_empty());
    let flags = flags.iter().map(OsString::from);
    let all: Vec<OsString> = flags.chain(existing).chain([quoted.into()]).collect();
    Ok(all.join(OsStr::new(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn existing_tool_options_are_kept() {
        let check = |existing: Option<&str>, flag: &str, expected: &str| {
            let value = tool_options(&[], existing.map(OsString::from), flag).unwrap();
            assert_eq!(value, OsString::from(expected));
        };
        check(None, "-agentpath:/a=b", "-agentpath:/a=b");
        check(Some(""), "-agentpath:/a=b", "-agentpath:/a=b");
        check(Some("-Xmx1g"), "-agentpath:/a=b", "-Xmx1g -agentpath:/a=b");
        check(None, "-agentpath:/a b=c", "\"-agentpath:/a b=c\"");
        assert!(tool_options(&[], None, "-agentpath:/a \"b=c").is_err());
        let flags = tool_options(&["-XX:+A", "-XX:+B"], Some("-XX:-B".into()), "-x").unwrap();
        assert_eq!(flags, "-XX:+A -XX:+B -XX:-B -x", "the user's flags come after ours");
    }

    #[test]
    fn options_that_make_archives_are_found() {
        let found = |line: &str| {
            archiving_option(line.split(' ').map(str::to_owned).collect()).unwrap_or_default()
        };
        assert_eq!(
            found("-Xmx1g -XX:ArchiveClassesAtExit=a.jsa -Xrs"),
            "-XX:ArchiveClassesAtExit=a.jsa"
        );
        assert_eq!(found("-Xshare:dump"), "-Xshare:dump");
        assert_eq!(found("-XX:+AutoCreateSharedArchive"), "-XX:+AutoCreateSharedArchive");
        assert_eq!(found("-XX:+AutoCreateSharedArchive -XX:-AutoCreateSharedArchive"), "");
        assert_eq!(found("-Xshare:on -XX:SharedArchiveFile=a.jsa -XX:AOTMode=record"), "");
    }

    #[test]
    fn only_the_launcher_takes_the_flag_itself() {
        for yes in ["java", "/usr/lib/jvm/x/bin/java", "./java"] {
            assert!(is_java(OsStr::new(yes)), "{yes}");
        }
        for no in ["javac", "gradlew", "/opt/java/run.sh", "mvn"] {
            assert!(!is_java(OsStr::new(no)), "{no}");
        }
    }
}
